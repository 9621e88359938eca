// SPDX-License-Identifier: Apache-2.0
// Lets the n-th allocation fail, for every n until a run needs fewer, with and without all later allocations.
// Each call of the API must return a typed status and leak nothing. The same process must then run a good model.
// A run of a known shape must neither allocate nor lock.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "mge/mge.h"
#include "tests/core/api/load_bytes.h"
#include "tests/support/onnx_builder.h"

// ---------------------------------------------------------------- allocations of this process, including its backends

namespace {

std::atomic<bool> g_armed{false};
std::atomic<int64_t> g_count{0};  // allocations since g_armed was set
std::atomic<int64_t> g_live{0};   // objects of operator new that are alive
int64_t g_first = 0, g_last = 0;  // range of the allocations that fail

bool Fails() {
  if (!g_armed.load(std::memory_order_relaxed)) return false;
  const int64_t n = g_count.fetch_add(1, std::memory_order_relaxed) + 1;
  return n >= g_first && n <= g_last;
}

void* Allocate(size_t bytes, size_t alignment) noexcept {
  void* out = nullptr;
  if (Fails() || posix_memalign(&out, std::max(alignment, sizeof(void*)), bytes ? bytes : 1) != 0) return nullptr;
  return out;
}
void* New(size_t bytes, size_t alignment) noexcept {
  void* out = Allocate(bytes, alignment);
  if (out) g_live.fetch_add(1, std::memory_order_relaxed);
  return out;
}
void* NewOrThrow(size_t bytes, size_t alignment) {
  if (void* out = New(bytes, alignment)) return out;
  throw std::bad_alloc();
}
void Delete(void* object) noexcept {
  if (!object) return;
  g_live.fetch_sub(1, std::memory_order_relaxed);
  std::free(object);
}
constexpr size_t kMin = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(size_t n) { return NewOrThrow(n, kMin); }
void* operator new[](size_t n) { return NewOrThrow(n, kMin); }
void* operator new(size_t n, std::align_val_t a) { return NewOrThrow(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a) { return NewOrThrow(n, static_cast<size_t>(a)); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return New(n, kMin); }
void* operator new[](size_t n, const std::nothrow_t&) noexcept { return New(n, kMin); }
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return New(n, static_cast<size_t>(a)); }
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept { return New(n, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { Delete(p); }
void operator delete[](void* p) noexcept { Delete(p); }
void operator delete(void* p, size_t) noexcept { Delete(p); }
void operator delete[](void* p, size_t) noexcept { Delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { Delete(p); }
void operator delete[](void* p, std::align_val_t) noexcept { Delete(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { Delete(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { Delete(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { Delete(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { Delete(p); }

namespace {

thread_local bool g_counts_locks = false;
thread_local int64_t g_locks = 0;  // locks of this thread while it counts them

}  // namespace

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  static std::atomic<int (*)(pthread_mutex_t*)> real{nullptr};
  auto* lock = real.load(std::memory_order_relaxed);
  if (!lock) {
    lock = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
    real.store(lock, std::memory_order_relaxed);
  }
  if (g_counts_locks) ++g_locks;
  return lock(mutex);
}

// Allocates the memory of tensors and arenas.
extern "C" void* aligned_alloc(size_t alignment, size_t bytes) noexcept { return Allocate(bytes, alignment); }

namespace mge {
namespace {

using namespace onnx_builder;  // NOLINT: its functions build models
using testing::HasSubstr;

constexpr int32_t kMemory = 6;

// Returns a model with constants to pack and fold, shape arithmetic, a loop, and names too long for inline storage.
std::string Model() {
  Proto body = GraphProto({.nodes = {NodeProto("Add", {"state", "a_value_of_the_graph_outside"}, {"next"}),
                                     NodeProto("Neg", {"next"}, {"part"})},
                           .inputs = {ValueInfo("i", DType::kI64, {}), ValueInfo("more", DType::kBool, {}),
                                      ValueInfo("state", DType::kF32, {"N", 3})},
                           .outputs = {ValueInfo("more", DType::kBool, {}), ValueInfo("next", DType::kF32, {"N", 3}),
                                       ValueInfo("part", DType::kF32, {"N", 3})}});
  return ModelProto(
      {.graph = GraphProto(
           {.nodes = {NodeProto("Conv", {"x", "kernel_of_the_convolution"}, {"c"},
                                {.attributes = {IntsAttr("pads", {1, 1, 1, 1})}}),
                      NodeProto("Relu", {"c"}, {"r"}), NodeProto("Shape", {"r"}, {"s"}),
                      NodeProto("Slice", {"s", "zero", "one"}, {"batch"}),
                      NodeProto("Concat", {"batch", "rest"}, {"to"}, {.attributes = {IntAttr("axis", 0)}}),
                      NodeProto("Reshape", {"r", "to"}, {"flat"}),
                      NodeProto("MatMul", {"flat", "weights_of_the_last_layer"}, {"m"}),
                      NodeProto("Add", {"m", "bias"}, {"a_value_of_the_graph_outside"}),
                      NodeProto("Loop", {"trips", "", "a_value_of_the_graph_outside"}, {"last", "all"},
                                {.attributes = {GraphAttr("body", body)}}),
                      NodeProto("Softmax", {"last"}, {"y"}, {.attributes = {IntAttr("axis", 1)}})},
            .inputs = {ValueInfo("x", DType::kF32, {"N", 1, 4, 4})},
            .outputs = {ValueInfo("y", DType::kF32, {"N", 3})},
            .initializers = {FloatTensor("kernel_of_the_convolution", {2, 1, 3, 3}, std::vector<float>(18, 0.125f)),
                             FloatTensor("weights_of_the_last_layer", {32, 3}, std::vector<float>(96, 0.0625f)),
                             FloatTensor("bias", {3}, {0, 0.5f, 1}), IntTensor("zero", {0}), IntTensor("one", {1}),
                             IntTensor("rest", {32}),
                             TensorHead("trips", DType::kI64, {}) + PackedIntField(field::tensor::kInt64s, {2})}})});
}

// The result of a call. Its memory exists before the call, so storing it cannot fail.
struct Answer {
  int32_t exit_code = 0, id = 0;
  char text[4096] = "";

  // Stores and releases `status`. Returns true if it is an error.
  bool Failed(mge_status* status) {
    if (!status) return false;
    exit_code = mge_status_exit_code(status);
    id = mge_status_id(status);
    std::strncpy(text, mge_status_text(status), sizeof(text) - 1);
    mge_status_release(status);
    return true;
  }
};

struct Results {
  std::atomic<int> calls{0};
  float values[6] = {};
};

const char* const kDirectories[] = {MGE_BINARY_DIR "/lib/mge/plugins"};

Answer CreateRuntime(mge_runtime** out) {
  static const char* const kSettings[] = {"virtual.devices=1", "threads=2", "select.strategy=heuristic"};
  mge_runtime_options options = {};
  options.struct_size = sizeof(options);
  options.settings = kSettings;
  options.setting_count = std::size(kSettings);
  options.plugin_directories = kDirectories;
  options.plugin_directory_count = 1;
  options.no_built_in_plugins = 1;
  options.no_environment = 1;
  options.log = [](void*, int32_t, const char*, size_t) {};
  Answer answer;
  answer.Failed(mge_runtime_create(&options, out));
  return answer;
}

// Loads, plans and runs a model, runs it asynchronously, and closes the session. Returns the first error.
Answer UseModel(mge_runtime* runtime, const char* device, const std::string& bytes, Results& results) {
  struct Objects {
    mge_session* session = nullptr;
    mge_tensor *input = nullptr, *output = nullptr;
    mge_string* text = nullptr;
    ~Objects() {
      mge_string_release(text);
      mge_tensor_release(output);
      mge_tensor_release(input);
      mge_session_release(session);
    }
  } o;
  Answer answer;
  mge_session_options options = {};
  options.struct_size = sizeof(options);
  options.device = device;
  if (answer.Failed(LoadBytes(runtime, bytes, &options, &o.session))) return answer;
  const int64_t dims[] = {2, 1, 4, 4};
  if (answer.Failed(mge_tensor_create(MGE_DTYPE_F32, dims, 4, &o.input))) return answer;
  for (int i = 0; i < 32; ++i) static_cast<float*>(mge_tensor_data(o.input))[i] = static_cast<float>(i) / 16;
  if (answer.Failed(mge_session_plan(o.session, &o.input, 1, "text", 1, &o.text))) return answer;
  if (answer.Failed(mge_session_run(o.session, &o.input, 1, &o.output, 1, nullptr, nullptr))) return answer;
  std::memcpy(results.values, mge_tensor_data(o.output), sizeof(results.values));
  struct Ended {
    Answer answer;
    std::atomic<int> calls{0};
    bool same = true;
    const float* expected;
  } ended;
  ended.expected = results.values;
  mge_run_options how;
  mge_run_options_init(&how);
  how.state = &ended;
  how.done = [](void* state, mge_status* status, mge_tensor** outputs, size_t count) {
    auto& ended = *static_cast<Ended*>(state);
    if (!ended.answer.Failed(status)) ended.same = std::memcmp(mge_tensor_data(outputs[0]), ended.expected, 24) == 0;
    for (size_t i = 0; i < count; ++i) mge_tensor_release(outputs[i]);
    ended.calls.store(1);
    ended.calls.notify_all();
  };
  mge_status* refused = mge_session_run(o.session, &o.input, 1, nullptr, 0, &how, nullptr);
  if (answer.Failed(refused)) return answer;
  ended.calls.wait(0);
  if (ended.answer.exit_code) return ended.answer;
  if (!ended.same) std::abort();
  return answer;
}

// Calls act() while the n-th allocation fails; with `for_ever`, every later one fails too. Returns true if one failed.
bool WithFailure(int64_t n, bool for_ever, const std::function<void()>& act) {
  g_first = n;
  g_last = for_ever ? INT64_MAX : n;
  g_count = 0;
  g_armed = true;
  act();
  g_armed = false;
  return g_count >= n;
}

// Returns the number of the allocation to test after `n`. Skips some numbers from 60 on, except in the long form of the
// test.
int64_t After(int64_t n) {
  static const bool every = std::getenv("MGE_TEST_EVERY_ALLOCATION") != nullptr;
  return every || n < 60 ? n + 1 : n + 1 + n / 12;
}

// Returns the reason why `answer` is not allowed, "" if it is. `reached`: an allocation failed.
std::string WhyWrong(const Answer& answer, bool reached, bool for_ever) {
  if (answer.exit_code == 0) return reached && for_ever ? "it succeeds without memory" : "";
  const bool typed = answer.exit_code == kMemory && answer.id == 601 && std::strstr(answer.text, "error[E0601] ");
  return typed ? "" : fmt::format("kind {}, id {}: {}", answer.exit_code, answer.id, answer.text);
}

// Returns the least number of live objects after up to `times` calls of good(). Stops at `enough` objects.
// One call is not enough: caches vary a little, and a thread that delivered its result may still be releasing its objects.
int64_t LeastLeft(const std::function<Answer()>& good, Answer& answer, int times, int64_t enough) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < times && least > enough; ++i) {
    answer = good();
    for (int ms = 0; ms < 10 && g_live > enough; ++ms) usleep(1000);
    least = std::min<int64_t>(least, g_live);
  }
  return least;
}

// Calls act() with every allocation failing in turn. Expects that good() then succeeds and that nothing leaks.
void FailEverywhere(const std::function<Answer()>& act, const std::function<Answer()>& good) {
  Answer after;
  int64_t before = LeastLeft(good, after, 12, 0);
  for (bool for_ever : {false, true}) {
    int failures = 0;
    bool reached = true;
    for (int64_t n = 1; reached; n = After(n)) {
      Answer answer;
      reached = WithFailure(n, for_ever, [&] { answer = act(); });
      failures += answer.exit_code != 0;
      int64_t left = LeastLeft(good, after, 20, before);
      if (left > before) {  // a leak repeats with every call, a cache does not grow again
        before = left;
        WithFailure(n, for_ever, [&] { act(); });
        left = LeastLeft(good, after, 100, before);
      }
      std::string wrong = WhyWrong(answer, reached, for_ever);
      if (wrong.empty() && after.exit_code != 0) wrong = fmt::format("a good model after it: {}", after.text);
      if (wrong.empty() && left > before) wrong = fmt::format("{} objects are lost: {}", left - before, answer.text);
      ASSERT_EQ(wrong, "") << "allocation " << n << (for_ever ? " and all later ones" : "");
    }
    EXPECT_GT(failures, 50);
  }
}

// In a child process, creates and releases a runtime while the n-th allocation fails, then again without failures.
// Returns the reason why the outcome is not allowed, "" if it is. Sets `*reached` if an allocation failed.
std::string WhyWrongInAChild(int64_t n, bool for_ever, bool* reached) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    Answer answer;
    bool there = false;
    const bool failed = WithFailure(n, for_ever, [&] {
      mge_runtime* runtime = nullptr;
      answer = CreateRuntime(&runtime);
      there = g_count >= n;
      mge_runtime_release(runtime);
    });
    std::string wrong = WhyWrong(answer, there, for_ever);
    mge_runtime* runtime = nullptr;
    if (Answer after = CreateRuntime(&runtime); wrong.empty() && after.exit_code != 0)
      wrong = fmt::format("the next one: {}", after.text);
    mge_runtime_release(runtime);
    const bool told = write(ends[1], wrong.data(), wrong.size()) == static_cast<ssize_t>(wrong.size());
    _exit(!told ? 2 : failed ? 1 : 0);
  }
  close(ends[1]);
  std::string wrong(4096, '\0');
  wrong.resize(static_cast<size_t>(std::max<ssize_t>(read(ends[0], wrong.data(), wrong.size()), 0)));
  close(ends[0]);
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no child";
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) return fmt::format("the process ended with status {}", status);
  *reached = WEXITSTATUS(status) == 1;
  return wrong;
}

TEST(OutOfMemory, InCreatingTheFirstRuntimeIsATypedErrorAndTheNextOneCanBeCreated) {
  for (bool for_ever : {false, true}) {
    bool reached = true;
    int64_t n = 1;
    for (; reached; n = After(n)) {
      const std::string wrong = WhyWrongInAChild(n, for_ever, &reached);
      ASSERT_EQ(wrong, "") << "allocation " << n << (for_ever ? " and all later ones" : "");
    }
    EXPECT_GT(n, 1000);
  }
}

TEST(OutOfMemory, InCreatingARuntimeIsATypedErrorAndLeaksNothing) {
  auto make = [] {
    mge_runtime* runtime = nullptr;
    Answer answer = CreateRuntime(&runtime);
    g_armed = false;  // only the creation fails
    mge_runtime_release(runtime);
    return answer;
  };
  FailEverywhere(make, make);
}

class ModelOutOfMemory : public testing::TestWithParam<const char*> {};

TEST_P(ModelOutOfMemory, InUsingASessionIsATypedErrorAndTheRuntimeStillWorks) {
  const std::string bytes = Model();
  mge_runtime* runtime = nullptr;
  Answer created = CreateRuntime(&runtime);
  ASSERT_EQ(created.exit_code, 0) << created.text;
  Results expected, got;
  Answer first = UseModel(runtime, GetParam(), bytes, expected);
  ASSERT_EQ(first.exit_code, 0) << first.text;
  FailEverywhere([&] { return UseModel(runtime, GetParam(), bytes, got); },
                 [&] {
                   Answer answer = UseModel(runtime, GetParam(), bytes, got);
                   EXPECT_EQ(std::memcmp(got.values, expected.values, sizeof(got.values)), 0);
                   // The number of free blocks in the device's pool depends on the order of earlier requests.
                   Answer emptied;
                   EXPECT_FALSE(emptied.Failed(mge_device_empty_cache(runtime, GetParam()))) << emptied.text;
                   return answer;
                 });
  mge_runtime_release(runtime);
}

// Returns the allocations of all threads and the locks of this thread in 100 runs of a model with one operator, after runs
// that warm up. The outputs are given. The tensors lie in plain host memory, or on the device if `on_device`. Two shapes
// alternate if `alternating`.
struct Costs {
  int64_t allocations = 0, locks = 0;
};
Costs CostsOfRuns(mge_runtime* runtime, const char* device, bool on_device, bool alternating) {
  const std::string bytes = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                                             .inputs = {ValueInfo("x", DType::kF32, {"N", 4})},
                                                             .outputs = {ValueInfo("y", DType::kF32, {"N", 4})}})});
  Answer answer;
  mge_session* session = nullptr;
  mge_session_options options = {};
  options.struct_size = sizeof(options);
  options.device = device;
  EXPECT_FALSE(answer.Failed(LoadBytes(runtime, bytes, &options, &session))) << answer.text;
  mge_tensor *in[2] = {}, *out[2] = {};
  for (int i = 0; i < 2; ++i) {
    const int64_t dims[] = {2 + i, 4};
    for (mge_tensor** tensor : {&in[i], &out[i]}) {
      EXPECT_FALSE(answer.Failed(on_device ? mge_tensor_create_on(runtime, device, MGE_DTYPE_F32, dims, 2, tensor)
                                           : mge_tensor_create(MGE_DTYPE_F32, dims, 2, tensor)))
          << answer.text;
    }
    if (void* data = mge_tensor_data(in[i])) std::memset(data, 0, mge_tensor_bytes(in[i]));
  }
  bool ok = true;
  auto run = [&](int i) {
    const int k = alternating ? i % 2 : 0;
    ok = !answer.Failed(mge_session_run(session, &in[k], 1, &out[k], 1, nullptr, nullptr)) && ok;
  };
  for (int i = 0; i < 6; ++i) run(i);
  Costs costs;
  g_locks = 0;
  g_counts_locks = true;
  WithFailure(INT64_MAX, false, [&] {
    for (int i = 0; i < 100; ++i) run(i);
  });
  g_counts_locks = false;
  costs = {g_count, g_locks};
  EXPECT_TRUE(ok) << answer.text;
  for (int i = 0; i < 2; ++i) {
    mge_tensor_release(in[i]);
    mge_tensor_release(out[i]);
  }
  mge_session_release(session);
  return costs;
}

TEST(RunEntry, AllocatesNothingAndTakesNoLock) {
  mge_runtime* runtime = nullptr;
  Answer created = CreateRuntime(&runtime);
  ASSERT_EQ(created.exit_code, 0) << created.text;
  for (bool on_device : {false, true}) {
    const Costs costs = CostsOfRuns(runtime, "cpu0", on_device, false);
    EXPECT_EQ(costs.allocations, 0) << on_device;
    EXPECT_EQ(costs.locks, 0) << on_device;
    EXPECT_EQ(CostsOfRuns(runtime, "cpu0", on_device, true).allocations, 0) << on_device;
  }
  // The queues of the virtual GPU lock, and allocate now and then. An allocation of the host would occur in each of 100 runs.
  for (bool alternating : {false, true}) {
    EXPECT_LT(CostsOfRuns(runtime, "virtual0", true, alternating).allocations, 100) << alternating;
  }
  mge_runtime_release(runtime);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelOutOfMemory, testing::Values("host", "cpu0", "virtual0"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mge
