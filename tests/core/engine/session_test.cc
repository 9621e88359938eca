// SPDX-License-Identifier: Apache-2.0
// Sessions on the CPU backend of this build tree, as an application would use them.
#include "core/engine/session.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "gtest/gtest.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MGE_COUNTS_ALLOCATIONS 0
#else
#define MGE_COUNTS_ALLOCATIONS 1
#endif

#if MGE_COUNTS_ALLOCATIONS
// Replacements of the allocation functions. They count the allocations of all threads and libraries of the process.
namespace {
std::atomic<bool> g_counting{false};
std::atomic<int64_t> g_allocations{0};
void Count() {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1, std::memory_order_relaxed);
}
}  // namespace

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* p, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count();
  return __libc_calloc(count, size);
}
void* realloc(void* p, size_t size) {
  Count();
  return __libc_realloc(p, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  Count();
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;
}
}
#endif

namespace mge {
namespace {

constexpr char kModel[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";
constexpr char kPlugins[] = MGE_BINARY_DIR "/lib/mge/plugins";

std::shared_ptr<Runtime> NewRuntime(std::vector<Assignment> settings = {}) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {kPlugins};
  options.sources.call = std::move(settings);
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return runtime.ok() ? *runtime : nullptr;
}

std::shared_ptr<Session> Load(std::shared_ptr<Runtime> runtime, SessionOptions options = {.device = "cpu0"}) {
  auto session = Session::Load(std::move(runtime), kModel, options);
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

std::shared_ptr<Session> OfText(std::string_view graph) {
  onnx::Model model;
  model.graph = *ParseGraphText(graph);
  for (NodeId id = 0; id < model.graph.node_count(); ++id) EXPECT_TRUE(BindNode(model.graph, id).ok());
  return *Session::Create(NewRuntime(), std::move(model), {.device = "cpu0"});
}

HostValue Images(int64_t count, float shift = 0) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {count, 1, 8, 8});
  auto data = v.tensor.MutableData<float>();
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>((i * 37 + 11) % 64) / 64.0f + shift;
  return v;
}

HostValue Probabilities(int64_t count) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {count, 10});
  return v;
}

std::shared_ptr<const Plan> PlanOf(Session& session, int64_t batch) {
  InputType type = {ValueKind::kTensor, DType::kF32, {batch, 1, 8, 8}};
  auto plan = session.PlanFor(std::span<const InputType>(&type, 1));
  EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
  return plan.ok() ? *plan : nullptr;
}

std::vector<float> RunOnce(Session& session, const HostValue& images) {
  std::vector<HostValue> in = {images}, out(1);
  RunState control;
  absl::Status status = session.Run(in, out, control);
  EXPECT_TRUE(status.ok()) << FormatError(status);
  auto data = out[0].tensor.Data<float>();
  return {data.begin(), data.end()};
}

TEST(Session, GivesTheReferenceResultsOnTheCpu) {
  auto runtime = NewRuntime();
  auto cpu = Load(runtime), host = Load(runtime, {.device = "host"});
  std::vector<float> a = RunOnce(*cpu, Images(5)), b = RunOnce(*host, Images(5));
  ASSERT_EQ(a.size(), 50u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
}

TEST(Session, GivesIdenticalResultsToEightThreads) {
  auto session = Load(NewRuntime());
  std::vector<std::vector<float>> expected;
  for (int t = 0; t < 8; ++t) expected.push_back(RunOnce(*session, Images(4, 0.1f * static_cast<float>(t))));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        wrong += RunOnce(*session, Images(4, 0.1f * static_cast<float>(t))) != expected[static_cast<size_t>(t)];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Session, RunsInTwoRuntimesOfOneProcess) {
  auto first = Load(NewRuntime()), second = Load(NewRuntime());
  EXPECT_EQ(RunOnce(*first, Images(2)), RunOnce(*second, Images(2)));
}

TEST(Session, GivesTheSameResultsWhileMemoryIsChecked) {
  auto plain = Load(NewRuntime()), checked = Load(NewRuntime({{"debug.check_memory", "1"}}));
  for (int64_t batch : {1, 3, 8}) EXPECT_EQ(RunOnce(*checked, Images(batch)), RunOnce(*plain, Images(batch)));
}

TEST(Session, GivesTheSameResultsWhileMemoryOfADeviceWithQueuesIsChecked) {
  if (!std::filesystem::exists(std::string(kPlugins) + "/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  auto run = [](const char* checked) {
    auto session = Session::Load(NewRuntime({{"virtual.devices", "1"}, {"debug.check_memory", checked}}), kModel,
                                 {.device = "virtual0"});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return RunOnce(**session, Images(2));
  };
  EXPECT_EQ(run("1"), run("0"));
}

#if MGE_COUNTS_ALLOCATIONS
// Returns the number of allocations on any thread in `runs` runs, after three runs that warm up.
int64_t AllocationsOf(Session& session, int runs) {
  std::vector<HostValue> in = {Images(8)}, out = {Probabilities(8)};
  RunState control;
  bool ok = true;
  for (int warm = 0; warm < 3; ++warm) ok = session.Run(in, out, control).ok() && ok;
  g_allocations = 0;
  g_counting = true;
  for (int i = 0; i < runs; ++i) ok = session.Run(in, out, control).ok() && ok;
  g_counting = false;
  EXPECT_TRUE(ok);
  return g_allocations;
}

TEST(Session, AllocatesNothingInARunOfAKnownShape) {
  // oneDNN and OpenBLAS allocate inside; their candidates say so (MGE_KERNEL_ALLOCATES).
  auto session = Load(NewRuntime({{"cpu.onednn", "0"}, {"cpu.openblas", "0"}}));
  EXPECT_EQ(AllocationsOf(*session, 100), 0);
}

TEST(Session, AllocatesNothingInARunOnQueuesHoweverLongItWaits) {
  if (!std::filesystem::exists(std::string(kPlugins) + "/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  for (const char* latency_us : {"0", "20000"}) {
    auto runtime = NewRuntime({{"virtual.devices", "1"}, {"virtual.latency_us", latency_us}});
    EXPECT_EQ(AllocationsOf(*Load(runtime, {.device = "virtual0"}), 5), 0) << latency_us;
  }
}
#endif

TEST(Session, WritesIntoTheCallersMemory) {
  auto session = Load(NewRuntime());
  std::vector<HostValue> in = {Images(3)}, out = {Probabilities(3)};
  const void* memory = out[0].tensor.data();
  RunState control;
  ASSERT_TRUE(session->Run(in, out, control).ok());
  EXPECT_EQ(out[0].tensor.data(), memory);
  std::vector<float> expected = RunOnce(*session, in[0]);
  EXPECT_EQ(std::memcmp(memory, expected.data(), expected.size() * sizeof(float)), 0);
}

TEST(Session, RefusesOneMemoryForTwoOutputs) {
  auto session = OfText("input x : float32[4]\ny = Relu(x)\nz = Neg(x)\noutput y\noutput z\n");
  Tensor both = *Tensor::Create(DType::kF32, {8});
  auto half = [&](int64_t i) {
    HostValue value;
    value.tensor = both.Within(DType::kF32, {4}, both.Data<float>().data() + i);
    return value;
  };
  std::vector<HostValue> in(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {4});
  RunState control;
  for (int64_t second : {0, 3, 4}) {
    std::vector<HostValue> out = {half(0), half(second)};
    absl::Status status = session->Run(in, out, control);
    EXPECT_EQ(ErrorId(status), second < 4 ? errors::kBadInput.id : 0) << second;
    EXPECT_EQ(FormatError(status).find("output 'z' is given the memory of output 'y'") != std::string::npos, second < 4)
        << FormatError(status);
  }
}

TEST(Session, RefusesPartOfTheMemoryOfAnInputForAnOutput) {
  auto session = OfText("input x : float32[2,3]\ny = Gather(x, i) {axis=0}\nconst i = int64[1]<1>\noutput y\n");
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {2, 3});
  out[0].tensor = in[0].tensor.Within(DType::kF32, {1, 3}, in[0].tensor.Data<float>().data());
  RunState control;
  absl::Status status = session->Run(in, out, control);
  EXPECT_EQ(ErrorId(status), errors::kBadInput.id);
  EXPECT_NE(FormatError(status).find("output 'y' is given the memory of input 'x'"), std::string::npos)
      << FormatError(status);
}

TEST(Session, WritesOutputsOfShapesThatDependOnDataIntoTheCallersMemory) {
  auto session = OfText("input x : float32[4]\ni = NonZero(x)\nt = Transpose(i) {perm=[1,0]}\noutput i\noutput t\n");
  std::vector<HostValue> in(1), out(2);
  const float x[] = {0, 3, 0, 5};
  in[0].tensor = Tensor::Vector<float>(x);
  const std::vector<int64_t> expected = {1, 3};
  int64_t memory[2][2] = {};
  out[0].tensor = Tensor::View(DType::kI64, {1, 2}, memory[0], nullptr);
  out[1].tensor = Tensor::View(DType::kI64, {2, 1}, memory[1], nullptr);
  RunState control;
  absl::Status status = session->Run(in, out, control);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  for (int i : {0, 1}) {
    EXPECT_EQ(out[i].tensor.data(), memory[i]);
    EXPECT_EQ(std::vector<int64_t>(memory[i], memory[i] + 2), expected) << i;
    // The session replaces a tensor that does not fit.
    const HostValue fits = out[i];
    out[i].tensor = *Tensor::Create(DType::kI64, {5});
    status = session->Run(in, out, control);
    EXPECT_TRUE(status.ok()) << FormatError(status);
    EXPECT_EQ(out[i].tensor.shape(), fits.tensor.shape());
    out[i].tensor = Tensor::View(DType::kI64, {2}, memory[i], nullptr);
    status = session->Run(in, out, control);
    EXPECT_EQ(ErrorId(status), errors::kBadInput.id) << i;
    EXPECT_NE(FormatError(status).find("got int64[2]"), std::string::npos) << FormatError(status);
    out[i] = fits;
  }
}

TEST(Session, RefusesInputsThatDoNotFitAndThenRuns) {
  auto session = Load(NewRuntime());
  std::vector<HostValue> in(1), out(1);
  RunState control;
  in[0].tensor = *Tensor::Create(DType::kF32, {2, 1, 9, 8});
  absl::Status status = session->Run(in, out, control);
  EXPECT_EQ(ErrorId(status), errors::kBadInput.id);
  EXPECT_NE(PartsOf(status).what.find("got float32[2,1,9,8]"), std::string::npos) << FormatError(status);
  in[0].tensor = *Tensor::Create(DType::kF64, {2, 1, 8, 8});
  EXPECT_EQ(ErrorId(session->Run(in, out, control)), errors::kBadInput.id);
  in[0].tensor = *Tensor::Create(DType::kF32, {64});
  EXPECT_EQ(ErrorId(session->Run(in, out, control)), errors::kBadInput.id);
  EXPECT_EQ(RunOnce(*session, Images(2)).size(), 20u);
}

TEST(Session, StopsWhenItIsCancelledOrOutOfTimeAndThenRuns) {
  auto session = Load(NewRuntime());
  std::vector<HostValue> in = {Images(1)}, out(1);
  RunState cancelled;
  cancelled.cancel = 1;
  EXPECT_EQ(ErrorId(session->Run(in, out, cancelled)), errors::kCancelled.id);
  RunState late;
  late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(ErrorId(session->Run(in, out, late)), errors::kTimeout.id);
  EXPECT_EQ(RunOnce(*session, in[0]).size(), 10u);
}

TEST(Session, AppliesTheDefaultTimeLimitToEachRunSeparately) {
  auto session = Load(NewRuntime({{"run.timeout_seconds", "20s"}}));
  std::vector<HostValue> in = {Images(1)}, out(1);
  RunState control;
  EXPECT_TRUE(session->Run(in, out, control).ok());
  EXPECT_FALSE(control.deadline) << "the first run's deadline holds for the next";
}

TEST(Session, TimesProblemsThatDifferOnlyInWeightsOnce) {
  auto runtime = NewRuntime({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}, {"threads", "1"}});
  onnx::Model model;
  model.graph = *ParseGraphText(R"(
input x : float32[256,256]
const v = float32[256,256]<1>
const w = float32[256,256]<3>
const b = float32[256]<1>
const c = float32[256]<3>
y = Gemm(x, v, b)
z = Gemm(y, w, c)
output z
)");
  for (NodeId id = 0; id < model.graph.node_count(); ++id) ASSERT_TRUE(BindNode(model.graph, id).ok());
  auto session = Session::Create(runtime, std::move(model), {.device = "cpu0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {256, 256}}};
  auto plan = *(*session)->PlanFor(types);
  std::vector<double> times;
  for (const Unit& u : plan->units) {
    if (u.kind == Unit::Kind::kKernel && u.measured_us > 0) times.push_back(u.measured_us);
  }
  if (times.empty()) GTEST_SKIP() << "this build has one kernel for it";
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0], times[1]) << "the second was timed by itself";
}

TEST(Session, StaysWithinTheBudgetOfItsDevice) {
  auto session = Load(NewRuntime({{"memory.limit", "cpu0=256KiB"}}));
  std::vector<HostValue> in = {Images(4096)}, out(1);
  RunState control;
  absl::Status status = session->Run(in, out, control);
  EXPECT_EQ(KindOf(status), ErrorKind::kMemory) << FormatError(status);
  EXPECT_NE(FormatError(status).find("cpu0"), std::string::npos);
  EXPECT_EQ(RunOnce(*session, Images(1)).size(), 10u);
}

TEST(Session, TakesTheMemoryThatItsPlanStates) {
  auto session = Load(NewRuntime());
  auto plan = PlanOf(*session, 16);
  ASSERT_TRUE(plan);
  auto instance = InstanceStore::Of(*plan).Acquire();
  ASSERT_TRUE(instance.ok());
  EXPECT_EQ((*instance)->arena_bytes(), plan->report.arena_bytes);
  EXPECT_GE(plan->report.arena_bytes, plan->report.lower_bound_bytes);
  EXPECT_GT(plan->report.packed_bytes, 0);
  EXPECT_EQ(plan->report.measured_constant_bytes, plan->report.packed_bytes + plan->report.uploaded_bytes);
  EXPECT_EQ(plan->report.reference_steps, 0);
}

TEST(Session, SharesPackedConstantsAmongItsPlans) {
  auto session = Load(NewRuntime());
  std::set<const void*> forms[2];
  std::vector<std::shared_ptr<const Plan>> plans;
  for (int64_t batch : {16, 17}) {
    auto plan = PlanOf(*session, batch);
    ASSERT_TRUE(plan);
    for (const ConstantBase& c : plan->constants) {
      if (c.packed) forms[plans.size()].insert(c.tensor.data());
    }
    plans.push_back(std::move(plan));
  }
  EXPECT_FALSE(forms[0].empty());
  EXPECT_EQ(forms[0], forms[1]);
  EXPECT_LT(plans[1]->report.measured_constant_bytes, plans[0]->report.measured_constant_bytes);
}

TEST(Session, UsesABackendsSettingAsItIsWhenTheSessionIsCreated) {
  auto runtime = NewRuntime(), other = NewRuntime();
  auto kernels = [&] { return PlanText(*PlanOf(*Load(other), 1), true); };
  const std::string usual = kernels();
  if (usual.find("avx") == std::string::npos) GTEST_SKIP() << "of this processor nothing can be forbidden";
  runtime->devices().StartAll();
  ASSERT_TRUE(runtime->registry().Set("cpu.isa", "portable").ok());
  EXPECT_EQ(kernels().find("avx"), std::string::npos) << kernels();
  ASSERT_TRUE(runtime->registry().Set("cpu.isa", "").ok());  // resets the setting
  EXPECT_EQ(kernels(), usual);
}

TEST(Session, MayHaveABackendsSettingChangedFromALogCallback) {
  std::shared_ptr<Runtime> runtime;
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {kPlugins};
  options.logger = Logger(
      LogLevel::kDebug,
      [](void* to, LogLevel, std::string_view) {
        if (auto& r = *static_cast<std::shared_ptr<Runtime>*>(to)) (void)r->registry().Set("cpu.isa", "portable");
      },
      &runtime);
  auto created = Runtime::Create(std::move(options));
  ASSERT_TRUE(created.ok()) << FormatError(created.status());
  runtime = *created;
  for (const auto& device : runtime->devices().all()) {
    const mge_host* host = device->backend().host();
    if (device->name() == "cpu0") host->log(host->self, MGE_LOG_ERROR, "a message", 9);
  }
  EXPECT_FALSE(RunOnce(*Load(runtime), Images(1)).empty());
  runtime.reset();
}

TEST(Session, RunsAsynchronouslyOnTheConfiguredEngine) {
  for (const char* engine : {"naive", "threaded", "threaded_per_device"}) {
    auto session = Load(NewRuntime({{"engine.type", engine}}));
    std::vector<float> expected = RunOnce(*session, Images(2));
    std::atomic<bool> done{false};
    std::thread::id where;
    std::vector<float> got;
    RunState control;
    session->Post({.inputs = {Images(2)}, .outputs = std::vector<HostValue>(1)}, control,
                  [&](absl::Status status, std::vector<HostValue> out) {
                    EXPECT_TRUE(status.ok());
                    auto data = out[0].tensor.Data<float>();
                    got.assign(data.begin(), data.end());
                    where = std::this_thread::get_id();
                    done = true;
                  });
    while (!done) std::this_thread::yield();
    EXPECT_EQ(got, expected);
    EXPECT_EQ(where == std::this_thread::get_id(), std::string_view(engine) == "naive");
  }
}

// An observer that holds each chunk until four threads run one.
class FourThreads : public RunObserver {
 public:
  void BeginPlan(const std::shared_ptr<const Plan>&, std::string_view) override {}
  void EndPlan() override {}
  void BeginStep(int32_t) override {}
  void EndStep() override {}
  void BeginPlanning() override {}
  void EndPlanning() override {}
  void BeginShare() noexcept override {}
  void EndShare() noexcept override {}
  void BeginChunk(uint32_t thread) noexcept override {
    threads_.fetch_or(1u << thread);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (Count() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  void EndChunk(uint32_t) noexcept override {}
  int Count() const { return std::popcount(threads_.load()); }

 private:
  std::atomic<uint32_t> threads_{0};  // one bit per thread
};

TEST(Session, OnMultithread4RunsAKernelOnFourThreadsOnAnyMachine) {
  auto runtime = NewRuntime({{"MGE_DEFAULT_DEVICE", "multithread4:0"}});
  auto session = Load(runtime, {});
  EXPECT_EQ(session->threads(), 4u);
  FourThreads observer;
  RunState control;
  control.observer = &observer;
  std::vector<HostValue> in = {Images(512)}, out(1);
  absl::Status status = session->Run(in, out, control);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  EXPECT_EQ(observer.Count(), 4);
  EXPECT_EQ(Load(NewRuntime())->threads(), static_cast<uint32_t>(UsableThreads()));  // others are not changed
}

}  // namespace
}  // namespace mge
