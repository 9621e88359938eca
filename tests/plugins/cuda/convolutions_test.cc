// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN, in place of which the tests load a library that records and emulates.
#include <dlfcn.h>

#include "tests/core/cli/command.h"
#include "tests/plugins/cuda/software_driver.h"

namespace mge {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

constexpr char kRecording[] = MGE_BINARY_DIR "/tests/cuda/libcudnn.so";
constexpr char kOld[] = MGE_BINARY_DIR "/tests/cuda/libcudnn_old.so";
constexpr char kCuda[] = MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so";

template <typename T = uint64_t>
T Recorded(const char* what) {
  void* library = dlopen(kRecording, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<T (*)()>(dlsym(library, what))();
}

class CudaConvolutions : public Command {
 protected:
  static std::string Environment(const std::string& library = kRecording) {
    return std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_CUDNN=" + library;
  }
};

// Every form of Conv that operators have, through every engine.
TEST_F(CudaConvolutions, PassTheConformanceKit) {
  const Outcome o = Mge(std::string("sdk test ") + kCuda + " --only Conv --report report", Environment());
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
  const std::string report = Read("report/report.json");
  EXPECT_THAT(report, HasSubstr("cuda.cudnn.0"));
  EXPECT_THAT(report, HasSubstr("cuda.cudnn.2"));
  EXPECT_THAT(report, HasSubstr("cuda.cudnn.reduced.0"));
}

}  // namespace
}  // namespace mge
