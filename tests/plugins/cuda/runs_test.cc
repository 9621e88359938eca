// SPDX-License-Identifier: Apache-2.0
// Models on CUDA devices: results, and the calls of the driver that a run makes.
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/plugins/cuda/software_driver.h"
#include "tests/plugins/gpu/vendor/native_streams.h"

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
  RunWithMovingOutputs(CudaRuntime(), "cuda0");
  EXPECT_EQ(driver.Calls("cuGraphInstantiateWithFlags"), 4u);
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

TEST(CudaRuns, AreOrderedWithAStreamOfTheApplication) {
  SoftwareDriver driver;
  const std::vector<float> expected = DigitsOnHost();
  const int64_t before = driver.Live();
  ExpectOrderWithAStream(driver, CudaRuntime(), "cuda0",
                         {"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxPushCurrent_v2",
                          "cuCtxPopCurrent_v2", "cuStreamCreate", "cuStreamDestroy_v2"},
                         expected);
  EXPECT_EQ(driver.Live(), before);
}

TEST(CudaRuns, AStreamThatTheDriverRefusesIsAnError) {
  SoftwareDriver driver;
  const auto runtime = CudaRuntime();
  auto session = LoadDigits(runtime, "cuda0");
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  int object = 0;
  auto stream = NativeStream::On((*session)->device(), &object);
  ASSERT_TRUE(stream.ok()) << FormatError(stream.status());
  driver.Fail("cuEventRecord", driver.Calls("cuEventRecord") + 1, 400);  // CUDA_ERROR_INVALID_HANDLE
  EXPECT_THAT(FormatError(RunFence::OfStream(runtime, *stream).status()), HasSubstr("cuEventRecord"));
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

// Ten dimensions are too many for the kernels of a GPU. The CPU merges them into fewer.
TEST(CudaRuns, LeaveAStepWithoutAKernelToTheCpu) {
  constexpr char kModel[] = R"(
input x : float32[2,512]
const ten = int64[10]<2,2,2,2,2,2,2,2,2,2>
const two = int64[2]<2,512>
a = Relu(x)
b = Reshape(a, ten)
c = Transpose(b) {perm=[9,7,8,6,5,3,4,1,2,0]}
d = Reshape(c, two)
e = Neg(d)
output e
)";
  SoftwareDriver driver;
  const auto runtime = CudaRuntime();
  const auto load = [&](const char* device) {
    auto session = Session::Create(runtime, {*ParseGraphText(kModel), {}}, {.device = device});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return *session;
  };
  const std::vector<HostValue> in = {Numbers({2, 512})};
  const auto expected = ResultsOf(*load("host"), in);
  const auto session = load("cuda0,cpu0");
  for (int run = 0; run < 3; ++run) {
    const auto got = ResultsOf(*session, in);
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(*got, *expected);
  }
  std::vector<std::string> places;
  for (const Unit& u : session->last_plan()->units) {
    if (u.kind == Unit::Kind::kKernel) places.push_back(u.device);
  }
  EXPECT_THAT(places, testing::ElementsAre("cuda0", "cpu0", "cuda0")) << PlanText(*session->last_plan(), true);
}

// A copy of the driver whose copies take time, 16 ms each. Each device receives four inputs and returns four outputs. The
// first output can follow after one copy, so the least time is five copies. It is eight if inputs and outputs alternate.
TEST(CudaRuns, CopyBothWaysAtOnce) {
  constexpr std::chrono::microseconds kCopy{16'384};
  const std::string folder = testing::TempDir() + "mge_slow_copies_" + std::to_string(getpid()),
                    file = folder + "/libcuda.so.1";
  std::filesystem::create_directory(folder);
  std::filesystem::copy_file(kSoftwareDriver, file);
  std::ofstream(file + ".conf") << "bandwidth 0.001\n";
  std::string text;
  std::vector<HostValue> in;
  for (int i = 0; i < 8; ++i) {
    in.push_back(Numbers({4096}, i));
    text += "input x" + std::to_string(i) + " : float32[4096]\n";
  }
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    text += "y" + n + " = Relu(x" + n + ") on \"cuda" + std::to_string(i % 2) + "\"\n";
  }
  for (int i = 0; i < 8; ++i) text += "output y" + std::to_string(i) + "\n";
  {
    const DriverInSoftware driver(file.c_str(), 2);
    auto session =
        Session::Create(RuntimeOver("cuda", file.c_str()), {*ParseGraphText(text), {}}, {.device = "cuda0+cuda1"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    for (int run = 0; run < 3; ++run) ASSERT_TRUE(ResultsOf(**session, in).ok());
    auto shortest = std::chrono::steady_clock::duration::max();
    for (int attempt = 0; attempt < 20 && shortest >= 8 * kCopy; ++attempt) {  // repeats, because the machine may be busy
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_TRUE(ResultsOf(**session, in).ok());
      shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
    }
    EXPECT_GE(shortest, 5 * kCopy);
    EXPECT_LT(shortest, 8 * kCopy) << PlanText(*(*session)->last_plan(), true);
  }
  std::filesystem::remove_all(folder);
}

// An application may use the driver itself.
TEST(CudaRuns, LeaveTheContextOfTheApplicationCurrent) {
  SoftwareDriver driver(2);
  auto runtime = CudaRuntime();
  void* library = dlopen(kSoftwareDriver, RTLD_NOW | RTLD_NOLOAD);
  const auto function = [&](const char* name) { return dlsym(library, name); };
  const auto push = reinterpret_cast<int (*)(void*)>(function("cuCtxPushCurrent_v2"));
  const auto pop = reinterpret_cast<int (*)(void**)>(function("cuCtxPopCurrent_v2"));
  auto session = LoadDigits(runtime, "cuda0");  // starts the driver
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  void *own = nullptr, *current = nullptr;
  ASSERT_EQ(reinterpret_cast<int (*)(void**, int)>(function("cuDevicePrimaryCtxRetain"))(&own, 1), 0);
  ASSERT_EQ(push(own), 0);
  for (int64_t images : {3, 3, 3, 2}) ASSERT_TRUE(ResultsOf(**session, DigitsInput(images)).ok());
  for (const char* device : {"cuda0+cuda1", "cuda0,cpu0"}) {
    auto other = LoadDigits(runtime, device);
    ASSERT_TRUE(other.ok()) << FormatError(other.status());
    ASSERT_TRUE(ResultsOf(**other, DigitsInput()).ok());
  }
  driver.Fail("cuLaunchKernel", driver.Calls("cuLaunchKernel") + 1, 1);
  EXPECT_FALSE(ResultsOf(**session, DigitsInput(7)).ok());
  session->reset();
  runtime.reset();
  ASSERT_EQ(pop(&current), 0);
  EXPECT_EQ(current, own);
  EXPECT_NE(pop(&current), 0);  // there is no other one
  reinterpret_cast<int (*)(int)>(function("cuDevicePrimaryCtxRelease_v2"))(1);
}

// One operator from the start of the backend to its end: one image, one context, and few calls.
TEST(CudaRuns, StartAndEndWithFewCallsOfTheDriver) {
  SoftwareDriver driver;
  std::string record;
  uint64_t sum = 0;
  const auto calls = driver.CallsOf([&] {
    auto graph = ParseGraphText("input x : float32[4,4]\ny = Relu(x)\noutput y\n");
    auto session = Session::Create(CudaRuntime(), {*std::move(graph), {}}, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    ASSERT_TRUE(ResultsOf(**session, {Numbers({4, 4})}).ok());
  });
  for (const auto& [name, count] : calls) {
    record += name + " " + std::to_string(count) + "\n";
    if (name != "cuEventQuery") sum += count;  // the host asks until the run ends
  }
  for (const char* once : {"cuInit", "cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuLaunchKernel"}) {
    EXPECT_EQ(calls.count(once) ? calls.at(once) : 0, 1u) << once;
  }
  EXPECT_LE(sum, 220u) << record;
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
