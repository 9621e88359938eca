// SPDX-License-Identifier: Apache-2.0
// Whole networks of the zoo on a CUDA device: results compared with the CPU, and the driver's calls of a run.
#include "tests/plugins/cuda/software_driver.h"
#include "tests/support/command.h"

namespace mge {
namespace {

// Writes a model of the zoo. Returns its path.
class CudaModels : public Command, public testing::WithParamInterface<const char*> {
 protected:
  std::string Zoo(const std::string& name) const {
    const Outcome o = Mge("zoo " + name + " -o model.onnx");
    EXPECT_EQ(o.code, 0) << o.err;
    return Path("model.onnx");
  }
};

TEST_P(CudaModels, HaveTheNumbersOfTheCpu) {
  const std::string variables =
      std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver + " MGE_CUDA_NVRTC=" MGE_BINARY_DIR "/tests/cuda/libnvrtc.so";
  const Outcome o = Mge("run " + Zoo(GetParam()) + " --device cuda0 --against cpu0", variables);
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_THAT(o.err, testing::Not(testing::HasSubstr("cannot be compiled")));
}

INSTANTIATE_TEST_SUITE_P(Zoo, CudaModels,
                         testing::Values("resnet50", "mobilenetv2", "bert-base", "bert-tiny", "tiny-ops", "tiny-mixed",
                                         "one-op", "eltwise-chain"));

// A process of its own for the kernels would need a context of the GPU beside that of the user's process.
TEST_F(CudaModels, HaveTheirKernelsTimedInTheProcessAndOneWarningSaysSo) {
  const Outcome o =
      Mge("plan " + Zoo("bert-tiny") + " --device cuda0 --why",
          std::string("MGE_CUDA_DRIVER=") + kSoftwareDriver +
              " MGE_FASTRUN_CACHE_TYPE=MEMORY MEGENGINE_EXECUTION_STRATEGY=PROFILE MGB_CONV_PROFILING_TIMEOUT=9");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, testing::HasSubstr("measured "));
  const std::string warning =
      "kernels of cuda0 are timed in this process, without select.profiling_timeout_seconds: the device is not";
  EXPECT_EQ(o.err.find(warning), o.err.rfind(warning)) << o.err;
  EXPECT_THAT(o.err, testing::HasSubstr(warning));
}

TEST_F(CudaModels, ReplayResNet50AsOneGraph) {
  SoftwareDriver driver;
  auto session = Session::Load(CudaRuntime(), Zoo("resnet50"), {.device = "cuda0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<std::pair<std::string, uint64_t>> before;
  for (int run = 0; run < 4; ++run) {  // the last one replays
    before = driver.AllCalls();
    auto got = ResultsOf(**session, {Numbers({1, 3, 224, 224})});
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
  }
  for (const auto& [function, calls] : before) {
    const uint64_t more = driver.Calls(function.c_str()) - calls;
    if (function == "cuGraphLaunch") {
      EXPECT_EQ(more, 1u);
    } else if (more > 0) {
      EXPECT_THAT(function, testing::AnyOf("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemcpyAsync", "cuEventRecord",
                                           "cuStreamWaitEvent", "cuEventQuery", "cuEventSynchronize"));
    }
    if (function == "cuEventSynchronize") {
      EXPECT_LE(more, 1u);
    }
  }
}

// Returns the launches of a run of BERT-base that records.
uint64_t LaunchesOfBert(const std::string& model, std::vector<Assignment> settings) {
  SoftwareDriver driver;
  auto session = Session::Load(CudaRuntime(std::move(settings)), model, {.device = "cuda0"});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  const std::vector<int64_t> tokens(128, 7);
  std::vector<HostValue> ids(1);
  ids[0].tensor = Tensor::Of<int64_t>({1, 128}, tokens);
  EXPECT_TRUE(ResultsOf(**session, ids).ok());  // makes the plan
  const uint64_t before = driver.Calls("cuLaunchKernel");
  EXPECT_TRUE(ResultsOf(**session, ids).ok());  // records
  return driver.Calls("cuLaunchKernel") - before;
}

// Attention is one kernel, and its queries, keys and values are one product. The library's stand-in launches one kernel for
// each call. It has no epilogue for this form of Gelu, which is one launch more in each of the 12 layers.
TEST_F(CudaModels, RunBertBaseWithAtMost100Launches) {
  const Assignment library = {"cuda.cublaslt", MGE_BINARY_DIR "/tests/cuda/libcublasLt.so"};
  for (const char* name : {"bert-base", "bert-base --type float16"}) {
    const std::string model = Zoo(name);
    for (const std::vector<Assignment>& settings : {std::vector<Assignment>{}, std::vector{library}}) {
      const uint64_t launches = LaunchesOfBert(model, settings);
      EXPECT_GE(launches, 12 * 7u) << name;
      EXPECT_LE(launches, 100u) << name;
    }
  }
}

}  // namespace
}  // namespace mge
