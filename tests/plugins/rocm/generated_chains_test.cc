// SPDX-License-Identifier: Apache-2.0
// Generated chains of every function and of ONNX's cases: hiprtc compiles all of them.
#include "tests/plugins/gpu/vendor/generated_chains.h"

namespace mge {
namespace {

#define MGE_TEST_DRIVER MGE_BINARY_DIR "/lib/mge/test/libamdhip64.so.5"
#define MGE_TEST_HIPRTC MGE_BINARY_DIR "/tests/rocm/libhiprtc.so"

class RocmGeneratedChains : public GeneratedChains {
 protected:
  static constexpr Libraries kUsed = {MGE_TEST_DRIVER, MGE_TEST_HIPRTC, "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"};
};

TEST_F(RocmGeneratedChains, OfEveryOperatorAndTypeAreCompiledByHiprtc) {
  ExpectEveryFunctionCompiles("rocm", "rocm.hiprtc", kUsed);
}

TEST_F(RocmGeneratedChains, OfTheCasesOfOnnxAreCompiledByHiprtcAndAsOneUnit) {
  ExpectCasesOfOnnxCompileAsOneUnit("rocm0", "MGE_ROCM_DRIVER=" MGE_TEST_DRIVER " MGE_ROCM_HIPRTC=" MGE_TEST_HIPRTC, kUsed);
}

}  // namespace
}  // namespace mge
