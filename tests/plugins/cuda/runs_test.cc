// SPDX-License-Identifier: Apache-2.0
// Models on CUDA devices: results, and the calls of the driver that a run makes.
#include <thread>

#include "tests/plugins/cuda/software_driver.h"

namespace mge {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

TEST(CudaRuns, DigitsHasTheNumbersOfTheReference) {
  SoftwareDriver driver(2);
  const std::vector<float> expected = DigitsOnHost();
  for (const char* device : {"cuda0", "gpu1", "cuda0+cuda1", "cuda0+cpu0"}) {
    auto session = LoadDigits(CudaRuntime(), device);
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    for (int run = 0; run < 3; ++run) {  // the third one replays
      auto got = ResultsOf(**session, DigitsInput());
      ASSERT_TRUE(got.ok()) << device << ", run " << run << ": " << FormatError(got.status());
      EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), expected)) << device << ", run " << run;
    }
  }
  EXPECT_GT(driver.Calls("cuLaunchKernel"), 0u);
}

TEST(CudaRuns, ACapturedRunLaunchesOneGraphAndAllocatesNothing) {
  SoftwareDriver driver;
  auto session = LoadDigits(CudaRuntime(), "cuda0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(ResultsOf(**session, DigitsInput()).ok());
  for (int run = 0; run < 20; ++run) {
    const auto calls = driver.CallsOf([&] { EXPECT_TRUE(ResultsOf(**session, DigitsInput()).ok()); });
    EXPECT_EQ(calls.count("cuLaunchKernel"), 0u);
    EXPECT_EQ(calls.at("cuGraphLaunch"), 1u);
    EXPECT_EQ(calls.at("cuMemcpyAsync"), 2u);  // the input, the output
    for (const auto& [name, count] : calls) {
      EXPECT_THAT(name, testing::AnyOf("cuGraphLaunch", "cuMemcpyAsync", "cuEventRecord", "cuStreamWaitEvent",
                                       "cuEventQuery", "cuEventSynchronize"));
    }
    EXPECT_LE(calls.count("cuEventSynchronize") ? calls.at("cuEventSynchronize") : 0, 1u);
  }
}

TEST(CudaRuns, AGraphIsUpdatedIfTheMemoryOfOutputsMoves) {
  SoftwareDriver driver;
  auto session = Session::Load(CudaRuntime(), MGE_SOURCE_DIR "/packaging/digits/digits.onnx",
                               {.device = "cuda0", .outputs_on_device = true});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<std::vector<HostValue>> kept;  // so that each run has other memory for its output
  for (int run = 0; run < 6; ++run) {
    RunState control;
    kept.emplace_back(1);
    const absl::Status status = (*session)->Run(DigitsInput(), kept.back(), control);
    ASSERT_TRUE(status.ok()) << FormatError(status);
  }
  EXPECT_EQ(driver.Calls("cuGraphInstantiateWithFlags"), 1u);
  EXPECT_GE(driver.Calls("cuGraphExecUpdate"), 3u);
  EXPECT_GE(driver.Calls("cuGraphLaunch"), 4u);
}

TEST(CudaRuns, FourDevicesShareAModel) {
  SoftwareDriver driver(4);
  const std::vector<float> expected = DigitsOnHost();
  auto session = LoadDigits(CudaRuntime(), "cuda0+cuda1+cuda2+cuda3");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  for (int run = 0; run < 4; ++run) {
    auto got = ResultsOf(**session, DigitsInput());
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), expected));
  }
  EXPECT_GE(driver.Calls("cuMemcpyPeerAsync"), 3u);  // peers copy directly
}

TEST(CudaRuns, OfSeveralThreadsDoNotDisturbEachOther) {
  SoftwareDriver driver(2);
  const std::vector<float> expected = DigitsOnHost();
  auto session = LoadDigits(CudaRuntime(), "cuda0+cuda1");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int run = 0; run < 25; ++run) {
        auto got = ResultsOf(**session, DigitsInput());
        ASSERT_TRUE(got.ok()) << FormatError(got.status());
        EXPECT_THAT(*got, Pointwise(FloatNear(1e-5f), expected));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

// Branches that are worth a stream of their own.
TEST(CudaRuns, BranchesRunOnSeveralStreams) {
  SoftwareDriver driver;
  constexpr char kModel[] = R"(
input x : float32[512,512]
const a = float32[512,512]<0.01>
const b = float32[512,512]<-0.01>
n = Tanh(x)
p = MatMul(x, a)
q = MatMul(n, b)
s = MatMul(p, a)
t = MatMul(q, b)
y = Add(s, t)
output y
)";
  std::vector<float> expected;
  uint64_t streams = 0;
  for (const char* queues : {"1", "4"}) {
    auto graph = ParseGraphText(kModel);
    auto session =
        Session::Create(CudaRuntime({{"cuda.compute_queues", queues}}), {*std::move(graph), {}}, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    const uint64_t before = driver.Calls("cuStreamCreate");
    for (int run = 0; run < 4; ++run) {
      auto got = ResultsOf(**session, {Numbers({512, 512})});
      ASSERT_TRUE(got.ok()) << FormatError(got.status());
      if (expected.empty()) expected = *got;
      EXPECT_EQ(*got, expected);
    }
    const uint64_t created = driver.Calls("cuStreamCreate") - before;
    EXPECT_GT(created, streams);
    streams = created;
  }
}

TEST(CudaRuns, AnIndexOutOfRangeIsAnErrorOfTheRunAndNotOfTheDevice) {
  SoftwareDriver driver;
  auto graph = ParseGraphText("input x : float32[4]\ninput i : int64[2]\ny = Gather(x, i)\noutput y\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  auto session = Session::Create(CudaRuntime(), {*std::move(graph), {}}, {.device = "cuda0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  auto indices = [](int64_t second) {
    HostValue v;
    v.tensor = *Tensor::Create(DType::kI64, {2});
    v.tensor.MutableData<int64_t>()[0] = 1;
    v.tensor.MutableData<int64_t>()[1] = second;
    return v;
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(ResultsOf(**session, {Numbers({4}), indices(3)}).ok());
    EXPECT_THAT(FormatError(ResultsOf(**session, {Numbers({4}), indices(7)}).status()),
                HasSubstr("index 7 is outside of [-4, 4)"));
  }
  EXPECT_TRUE(ResultsOf(**session, {Numbers({4}), indices(0)}).ok());
}

TEST(CudaRuns, ReleaseEverythingAtTheEnd) {
  SoftwareDriver driver;
  for (int round = 0; round < 2; ++round) {
    {
      auto session = LoadDigits(CudaRuntime(), "cuda0");
      ASSERT_TRUE(session.ok()) << FormatError(session.status());
      for (int64_t images : {3, 3, 3, 5}) ASSERT_TRUE(ResultsOf(**session, DigitsInput(images)).ok());
      EXPECT_GT(driver.Live(), 0);
    }
    EXPECT_EQ(driver.Live(), 0);
  }
}

}  // namespace
}  // namespace mge
