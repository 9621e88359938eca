// SPDX-License-Identifier: Apache-2.0
// Failing calls of the driver: each is a clear error, the process lives, nothing leaks, and the next session works unless
// the device is lost.
#include "tests/plugins/cuda/software_driver.h"
#include "tests/plugins/gpu/vendor/failing_calls.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::HasSubstr;

constexpr int kOutOfMemory = 2, kInvalidValue = 1, kLaunchFailed = 719;

// Loads and runs digits, with a recorded and a replayed run and another shape. Returns the first error.
absl::Status UseDigits(const std::shared_ptr<Runtime>& runtime, const std::string& device = "cuda0") {
  auto session = LoadDigits(runtime, device);
  if (!session.ok()) return session.status();
  for (int64_t images : {3, 3, 3, 2}) {
    auto got = ResultsOf(**session, DigitsInput(images));
    if (!got.ok()) return got.status();
  }
  return absl::OkStatus();
}

// Returns the counts of the calls that a use makes, except those that fail only if no context is current.
std::vector<DriverCall> CallsOf(int devices, const std::function<absl::Status()>& use) {
  SoftwareDriver driver(devices);
  const absl::Status status = use();
  EXPECT_TRUE(status.ok()) << FormatError(status);
  std::vector<DriverCall> calls = driver.AllCalls();
  std::erase_if(calls, [](const DriverCall& c) { return c.first == "cuCtxPopCurrent_v2"; });
  return calls;
}

// Fails the calls of all functions that the use makes.
class EveryCall : public testing::TestWithParam<int> {};

TEST_P(EveryCall, ThatFailsIsAnErrorAndNothingLeaks) {
  const auto use = [] { return UseDigits(CudaRuntime()); };
  int failures = 0;
  for (const auto& [function, count] : FailEachCall(kSoftwareDriver, 1, "cuda0", CallsOf(1, use), GetParam(), use)) {
    failures += count;
  }
  EXPECT_GT(failures, 50);
}

// Some functions are called for two devices, for outputs that move, or for times of kernels only.
TEST_P(EveryCall, OfTwoDevicesThatAreMeasuredIsAnErrorAndNothingLeaks) {
  const auto use = [] { return UseTwoDevices("cuda", kSoftwareDriver); };
  const std::vector<DriverCall> calls = CallsOf(2, use);
  for (const char* function : {"cuGraphExecUpdate", "cuEventElapsedTime", "cuDeviceCanAccessPeer", "cuDeviceGetP2PAttribute",
                               "cuMemcpyPeerAsync"}) {
    EXPECT_THAT(calls, testing::Contains(testing::Pair(function, testing::Gt(0u))));
  }
  auto failures = FailEachCall(kSoftwareDriver, 2, "cuda", calls, GetParam(), use);
  EXPECT_GT(failures["cuMemcpyPeerAsync"], 0);
  // Without an update, the run enqueues its steps one by one, unless the device is lost.
  EXPECT_EQ(failures["cuGraphExecUpdate"] > 0, GetParam() == kLaunchFailed);
}

INSTANTIATE_TEST_SUITE_P(Cuda, EveryCall, testing::Values(kInvalidValue, kOutOfMemory, kLaunchFailed));

// Twenty calls of a large model, spread over all calls of all functions.
class CudaFailuresOfLargeModels : public Command {};

TEST_F(CudaFailuresOfLargeModels, AreErrorsAndNothingLeaks) {
  constexpr int kSamples = 20;
  ASSERT_EQ(Mge("zoo resnet50 -o model.onnx").code, 0);
  const auto use = [&](const std::shared_ptr<Runtime>& runtime) -> absl::Status {
    MGE_ASSIGN_OR_RETURN(auto session, Session::Load(runtime, Path("model.onnx"), {.device = "cuda0"}));
    for (int run = 0; run < 3; ++run) MGE_RETURN_IF_ERROR(ResultsOf(*session, {Numbers({1, 3, 224, 224})}).status());
    return absl::OkStatus();
  };
  std::vector<std::pair<std::string, uint64_t>> calls;  // each function, with the number of one of its calls
  uint64_t total = 0;
  {
    SoftwareDriver driver;
    ASSERT_TRUE(use(CudaRuntime()).ok());
    calls = driver.AllCalls();
    for (const auto& [function, count] : calls) total += count;
  }
  for (int sample = 0; sample < kSamples; ++sample) {
    uint64_t n = 1 + total * static_cast<uint64_t>(2 * sample + 1) / (2 * kSamples);
    size_t f = 0;
    while (n > calls[f].second) n -= calls[f++].second;
    if (calls[f].first == "cuCtxPopCurrent_v2") continue;  // fails only if no context is current
    SCOPED_TRACE(fmt::format("{} call {} of {}", calls[f].first, n, calls[f].second));
    SoftwareDriver driver;
    driver.Fail(calls[f].first, n, kOutOfMemory);
    const absl::Status status = use(CudaRuntime());
    if (!ReleasesSomething(calls[f].first)) {
      EXPECT_EQ(driver.Live(), 0) << FormatError(status);
    }
    if (!status.ok()) {
      EXPECT_NE(ErrorId(status), errors::kInternal.id) << FormatError(status);
    }
  }
}

TEST(CudaFailures, OfCopiesBetweenDevicesAreErrors) {
  for (const char* function : {"cuMemcpyPeerAsync", "cuCtxEnablePeerAccess", "cuStreamWaitEvent"}) {
    SoftwareDriver driver(2);
    driver.Fail(function, 1, kInvalidValue);
    const absl::Status status = UseDigits(CudaRuntime(), "cuda0+cuda1");
    EXPECT_THAT(FormatError(status), HasSubstr(std::string(function) + " failed with CUDA_ERROR_INVALID_VALUE"));
    EXPECT_EQ(driver.Live(), 0) << function;
  }
}

TEST(CudaFailures, ASessionWorksAgainAfterACallThatFailedOnce) {
  for (const char* function : {"cuMemAlloc_v2", "cuStreamCreate", "cuGraphInstantiateWithFlags", "cuModuleLoadData"}) {
    SoftwareDriver driver;
    auto runtime = CudaRuntime();
    driver.Fail(function, 1, kOutOfMemory);
    (void)UseDigits(runtime);
    EXPECT_TRUE(UseDigits(runtime).ok()) << function;
  }
}

TEST(CudaFailures, ALostDeviceStaysLostAndOthersWork) {
  SoftwareDriver driver(2);
  auto runtime = CudaRuntime();
  auto on_first = LoadDigits(runtime, "cuda0"), on_second = LoadDigits(runtime, "cuda1");
  ASSERT_TRUE(on_first.ok() && on_second.ok());
  ASSERT_TRUE(ResultsOf(**on_first, DigitsInput()).ok());
  driver.MarkLost(0);
  for (int run = 0; run < 2; ++run) {
    const absl::Status status = ResultsOf(**on_first, DigitsInput()).status();
    EXPECT_EQ(ErrorId(status), errors::kDeviceLost.id) << FormatError(status);
    EXPECT_THAT(FormatError(status), HasSubstr("cuda0"));
  }
  EXPECT_TRUE(ResultsOf(**on_second, DigitsInput()).ok());
}

TEST(CudaFailures, AModelThatIsTooLargeIsAnErrorAndASmallerOneRuns) {
  SoftwareDriver driver(1, 8 << 20);
  auto graph = ParseGraphText("input x : float32[N,1024]\ny = Relu(x)\nz = Neg(x)\noutput y\noutput z\n");
  auto session = Session::Create(CudaRuntime(), {*std::move(graph), {}}, {.device = "cuda0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  const absl::Status status = ResultsOf(**session, {Numbers({4096, 1024})}).status();
  EXPECT_THAT(FormatError(status), HasSubstr("the model does not fit into the memory of device cuda0"));
  EXPECT_TRUE(ResultsOf(**session, {Numbers({2, 1024})}).ok());
}

}  // namespace
}  // namespace mge
