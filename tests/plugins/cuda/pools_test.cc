// SPDX-License-Identifier: Apache-2.0
// Pools by cuDNN, in place of which the tests load a library that records and emulates.
#include <dlfcn.h>

#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::HasSubstr;

constexpr char kRecording[] = MGE_BINARY_DIR "/tests/cuda/libcudnn.so";

class CudaPools : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (!std::filesystem::exists(kRecording)) GTEST_SKIP() << "built without cuDNN's header";
  }
  std::string Environment() const {
    return "MGE_CUDA_DRIVER=" + std::string(kSoftwareDriver) + " MGE_CUDA_CUDNN=" + kRecording +
           " MGE_CACHE_DIR=" + Path("cache");
  }
};

// Every form of the operators, through the engine of the library and the backend's own kernel.
TEST_F(CudaPools, PassTheConformanceKit) {
  const Outcome o =
      Mge("sdk test " MGE_BINARY_DIR "/lib/mge/plugins/mge_cuda.so --only MaxPool --only AveragePool --report report",
          Environment());
  EXPECT_EQ(o.code, 0) << o.out.substr(0, 4000);
  EXPECT_THAT(Read("report/report.json"), HasSubstr("cuda.cudnn.0"));
}

// The heuristics name the engine as a fallback, so a measurement decides.
TEST_F(CudaPools, ComeAfterTheOwnKernelUnlessTimesAreMeasured) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  const std::string model =
      Model("model.onnx",
            {NodeProto("MaxPool", {"x"}, {"y"},
                       {.attributes = {IntsAttr("kernel_shape", {3, 3}), IntsAttr("pads", {1, 1, 1, 1})}})},
            {}, {int64_t{1}, int64_t{2}, int64_t{8}, int64_t{8}});
  const Outcome plan = Mge("plan " + model + " --device cuda0 --why", Environment());
  EXPECT_THAT(plan.out, testing::ContainsRegex("MaxPool +gpu.pool"));
  EXPECT_THAT(plan.out, HasSubstr("not cuda.cudnn.0: no estimate"));
  const Outcome measured =
      Mge("plan " + model + " --device cuda0 --why", Environment() + " MEGENGINE_EXECUTION_STRATEGY=PROFILE");
  EXPECT_THAT(measured.out, testing::AnyOf(HasSubstr("not cuda.cudnn.0: no estimate, measured"),
                                           testing::ContainsRegex("MaxPool +cuda.cudnn.0")));
}

}  // namespace
}  // namespace mge
