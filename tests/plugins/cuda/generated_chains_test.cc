// SPDX-License-Identifier: Apache-2.0
// Generated chains of every function and of ONNX's cases: NVRTC compiles all of them.
#include "tests/plugins/gpu/vendor/generated_chains.h"

#include "tests/plugins/cuda/software_driver.h"

namespace mge {
namespace {

#define MGE_TEST_NVRTC MGE_BINARY_DIR "/tests/cuda/libnvrtc.so"

class CudaGeneratedChains : public GeneratedChains {
 protected:
  static std::string Environment() {
    return std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_NVRTC=" MGE_TEST_NVRTC;
  }
  static constexpr Libraries kUsed = {kSoftwareDriver, MGE_TEST_NVRTC, "/usr/local/cuda/lib64/libnvrtc.so.13"};
};

TEST_F(CudaGeneratedChains, OfEveryOperatorAndTypeAreCompiledByNvrtc) {
  ExpectEveryFunctionCompiles("cuda", "cuda.nvrtc", kUsed);
}

TEST_F(CudaGeneratedChains, OfTheCasesOfOnnxAreCompiledByNvrtcAndAsOneUnit) {
  ExpectCasesOfOnnxCompileAsOneUnit("cuda0", Environment(), kUsed);
}

// The kit compares each group with its nodes one by one.
TEST_F(CudaGeneratedChains, OfTheConformanceKitAreCompiledByNvrtcAndPassItAsOneUnit) {
  const Outcome o =
      RunWithOneUnit("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so --quick --only graph", Environment(), kUsed);
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
}

}  // namespace
}  // namespace mge
