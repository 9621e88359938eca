// SPDX-License-Identifier: Apache-2.0
// Settings of memory on a CUDA device, seen in the calls of the driver.
#include "tests/plugins/cuda/software_driver.h"

namespace mge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;

Device& DeviceOf(Runtime& runtime) { return *runtime.devices().Resolve("cuda0", "the test")->devices.front().device; }

// Returns a session of a model of `rows` x 1024 numbers whose arena has two buffers at a time: 8 KiB per row.
std::shared_ptr<Session> SessionOf(const std::shared_ptr<Runtime>& runtime, const std::string& rows) {
  auto graph = ParseGraphText("input x : float32[" + rows +
                              ",1024]\na = Relu(x)\nb = Softmax(a)\nc = Sub(a, b)\nd = Softmax(c)\n"
                              "y = ReduceSum(d) {keepdims=1}\noutput y\n");
  auto session = Session::Create(runtime, {*std::move(graph), {}}, {.device = "cuda0"});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return *session;
}

std::vector<float> RunRows(Session& session, int64_t rows) {
  auto result = ResultsOf(session, {Numbers({rows, 1024})});
  EXPECT_TRUE(result.ok()) << FormatError(result.status());
  return result.ok() ? *result : std::vector<float>();
}

// Returns the number of the driver's calls that allocate memory of the device.
uint64_t Allocations(const SoftwareDriver& driver) { return driver.Calls("cuMemAlloc_v2") + driver.Calls("cuMemCreate"); }

// Runs take pages of ranges of addresses, which later runs of other models use. At the end of a run, none is in use.
TEST(CudaMemory, IsSharedPageByPageInTheModesOfGe) {
  uint64_t peak[5] = {};
  std::vector<float> first, second;
  for (const int mode : {0, 3, 4}) {
    SCOPED_TRACE(mode);
    SoftwareDriver driver;
    const auto runtime = RuntimeOver("cuda", kSoftwareDriver, {}, {{"GE_USE_STATIC_MEMORY", std::to_string(mode)}});
    auto variable = SessionOf(runtime, "N"), fixed = SessionOf(runtime, "1024");
    for (int round = 0; round < 2; ++round) {
      const std::vector<float> a = RunRows(*variable, 900), b = RunRows(*fixed, 1024);
      RunRows(*variable, 700);
      if (first.empty()) first = a, second = b;
      EXPECT_EQ(a, first);
      EXPECT_EQ(b, second);
    }
    peak[mode] = DeviceOf(*runtime).Stats().peak_charged;
    if (mode != 0) {
      EXPECT_GT(driver.Calls("cuMemAddressReserve"), 0u);
      EXPECT_GT(driver.Calls("cuMemCreate"), 0u);
      EXPECT_EQ(driver.Calls("cuMemMap"), driver.Calls("cuMemCreate"));
      const uint64_t before = Allocations(driver);
      RunRows(*variable, 700), RunRows(*variable, 900);
      EXPECT_EQ(Allocations(driver), before);
    }
    if (mode == 4) {
      EXPECT_EQ(DeviceOf(*runtime).Stats().pool.in_use, 0u);
    }
  }
  EXPECT_LT(peak[3] + 5 * kMiB, peak[0]);
  EXPECT_LT(peak[4] + 5 * kMiB, peak[0]);
}

// The variable of MegEngine. Without it, the memory grows with the runs.
TEST(CudaMemory, ThatIsReservedIsAllocatedBeforeTheFirstRun) {
  for (const char* value : {"b:33554432", "0"}) {
    SCOPED_TRACE(value);
    SoftwareDriver driver(1, 256 * kMiB);
    const auto runtime = RuntimeOver("cuda", kSoftwareDriver, {}, {{"MGB_CUDA_RESERVE_MEMORY", value}});
    auto session = SessionOf(runtime, "N");
    const InputType input = TypeOfValue(Numbers({900, 1024}));
    ASSERT_TRUE(session->PlanFor(std::span(&input, 1)).ok());
    const uint64_t planned = Allocations(driver);
    const auto pool = DeviceOf(*runtime).Stats().pool;
    for (int64_t rows : {900, 700, 1000, 900}) RunRows(*session, rows);
    if (value != std::string_view("0")) {
      EXPECT_EQ(DeviceOf(*runtime).Stats().pool.slab_acquires, pool.slab_acquires);
      EXPECT_GE(pool.committed, 32 * kMiB - kMiB);
      EXPECT_LE(Allocations(driver), planned + 3);  // the fault words of new queues
    } else {
      EXPECT_LT(pool.committed, 32 * kMiB);
      EXPECT_GT(Allocations(driver), planned + 3);
      EXPECT_GT(DeviceOf(*runtime).Stats().pool.slab_acquires, pool.slab_acquires);
    }
  }
}

// A measurement of the second plan needs a copy of the constants, which the first one has in the device's memory.
TEST(CudaMemory, StaysWithinItsLimitWhileKernelsAreMeasured) {
  const auto plan = [&](const std::string& limit) {
    SoftwareDriver driver;
    const auto runtime = CudaRuntime({{"select.strategy", "profile"},
                                      {"select.tensor_core_conversion", "1"},  // allows more than one candidate
                                      {"select.cache_type", "memory"},
                                      {"select.measuring_seconds", "0.001"},
                                      {"memory.pool", "naive"},
                                      {"memory.limit", limit}});
    auto graph = ParseGraphText("input x : float32[N,256]\nconst w = float32[256,512]<0.5>\ny = MatMul(x, w)\noutput y\n");
    auto session = Session::Create(runtime, {*std::move(graph), {}}, {.device = "cuda0"});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    for (int64_t rows : {4, 8}) {
      const absl::Status status = ResultsOf(**session, {Numbers({rows, 256})}).status();
      EXPECT_TRUE(status.ok()) << FormatError(status);
    }
    Device& device = DeviceOf(*runtime);
    EXPECT_LE(device.Stats().peak_charged, device.budget().limit());
    const auto last = (*session)->last_plan();
    return last ? PlanText(*last, true) : std::string();
  };
  const auto refused = HasSubstr("the memory limit of device cuda0 would be exceeded");
  EXPECT_THAT(plan("cuda0=700KiB"), refused);
  EXPECT_THAT(plan("cuda0=16MiB"), testing::AllOf(HasSubstr("measured "), Not(refused)));
}

}  // namespace
}  // namespace mge
