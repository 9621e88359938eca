// SPDX-License-Identifier: Apache-2.0
// Settings of the engine, observed on sessions: operations, threads, and the order of asynchronous runs.
#include "core/engine/step_operations.h"

#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"
#include "tests/core/engine/queues.h"
#include "tests/support/forked_child.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

constexpr char kBranches[] = R"(
input x : float32[4,6]
a = Relu(x)
b = Neg(x)
c = Tanh(a)
d = Exp(b)
e = Add(c, d)
f = Mul(e, a)
output f
output e
)";

constexpr char kControlFlow[] = R"(
input x : float32[4,6]
input go : bool[]
a = Relu(x)
b = If(go) captures(a, a) {then_branch=graph {
  capture a
  const yes = bool[]<true>
  const n = int64[]<3>
  r = Loop(n, yes, a) {body=graph {
    input i : int64[]
    input c : bool[]
    input v : float32[4,6]
    k = Identity(c)
    w = Tanh(v)
    z = Neg(w)
    output k
    output z
  }}
  output r
}, else_branch=graph {
  capture a
  n = Tanh(a)
  output n
}} : float32[4,6]
s = Add(b, a)
output s
)";

// Waits for threads that are about to end, which the system lists for a moment.
size_t ThreadsOfTheProcess() {
  size_t count = 0;
  for (int same = 0; same < 10; std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    const auto now = static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
    same = now == count ? same + 1 : 0;
    count = now;
  }
  return count;
}

HostValue Flag(bool value) {
  HostValue v;
  v.tensor = Tensor::Scalar(value);
  return v;
}

// Waits until `count` threads have come, at most 10 seconds. Returns whether they have.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool Come() {
    std::unique_lock lock(mutex_);
    --missing_;
    all_.notify_all();
    return all_.wait_for(lock, std::chrono::seconds(10), [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  int missing_;
};

class EngineSettings : public Queues {
 protected:
  // Starts an asynchronous run that calls ended() when it has ended.
  void Async(RunState& control, const std::vector<HostValue>& in, std::function<void()> ended) {
    session_->Post({.inputs = in, .outputs = std::vector<HostValue>(static_cast<size_t>(session_->output_count()))}, control,
                   [ended = std::move(ended)](absl::Status status, std::vector<HostValue>) {
                     EXPECT_TRUE(status.ok()) << FormatError(status);
                     ended();
                   });
  }
  // Returns whether two asynchronous runs are at their ends at the same time.
  bool TwoRunsAtOnce(const char* device) {
    session_ = Load(kBranches, device);
    const std::vector<HostValue> in = {Numbers({4, 6})};
    RunState one, two;
    Meeting meeting(2);
    std::atomic<int> met{0};
    for (RunState* control : {&one, &two}) Async(*control, in, [&] { met += meeting.Come(); });
    EXPECT_TRUE(runtime_->engine().WaitForAll().ok());
    return met == 2;
  }
};

// The naive engine runs an operation in the thread that pushes it.
TEST_F(EngineSettings, LetACallbackStartRunsOnItsOwnStream) {
  for (const char* engine : {"naive", "threaded"}) {
    SCOPED_TRACE(engine);
    Restart({{"engine.type", engine}});
    session_ = Load(kSmall, "async0:1");
    const std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
    RunState first, second, enqueued;
    std::shared_ptr<RunFence> fence;
    bool ended = false;
    Async(first, in, [&] {
      std::vector<HostValue> out(1);
      auto started = session_->Submit({.inputs = in, .outputs = out, .wait = false}, enqueued);
      ASSERT_TRUE(started.ok()) << FormatError(started.status());
      fence = *started;
      Async(second, in, [&] { ended = true; });
    });
    EXPECT_TRUE(runtime_->engine().WaitForAll().ok());
    EXPECT_TRUE(ended);
    EXPECT_TRUE(fence && fence->Wait(std::chrono::minutes(1)).ok());
  }
}

TEST_F(EngineSettings, RunAPlanAsOneOperationByDefault) {
  session_ = Load(kBranches, "host");
  const size_t threads = ThreadsOfTheProcess();
  ASSERT_TRUE(Run(*session_, {Numbers({4, 6})}).ok());
  EXPECT_EQ(session_->operations(), 1u);
  EXPECT_EQ(ThreadsOfTheProcess(), threads) << "a synchronous run is its caller's";
}

TEST_F(EngineSettings, RunEachStepAsAnOperationWithoutBulk) {
  for (const char* device : {"host", "async0", "async0,host"}) {
    SCOPED_TRACE(device);
    Restart({{"engine.bulk_inference", "false"}});
    Compare(kBranches, device, {Numbers({4, 6})});
    EXPECT_EQ(session_->operations(), session_->last_plan()->steps.size());
    EXPECT_GE(session_->operations(), 6u);
    EXPECT_EQ(control_->captures, 0);
    EXPECT_EQ(control_->replays, 0);
    Compare(kControlFlow, device, {Numbers({4, 6}), Flag(true)});
    EXPECT_EQ(session_->operations(), session_->last_plan()->steps.size());
    Compare(kControlFlow, device, {Numbers({4, 6}), Flag(false)});
  }
}

TEST_F(EngineSettings, RunTheStepsOfTheContinuationAsOperationsToo) {
  Restart({{"engine.bulk_inference", "false"}});
  Compare(R"(
input x : float32[4,6]
a = Relu(x)
n = NonZero(a)
c = Cast(n) {to=1}
d = Neg(c)
output d
)",
          "host", {Numbers({4, 6})});
  EXPECT_GE(session_->operations(), 4u);
}

TEST_F(EngineSettings, ReportTheFailingStepAndRunAgain) {
  const char* model = R"(
input x : float32[4,6]
input i : int64[2]
a = Relu(x)
g = Gather(a, i) {axis=0}
y = Neg(g)
output y
)";
  auto indices = [](int64_t last) {
    HostValue v;
    v.tensor = Tensor::Vector<int64_t>(std::vector<int64_t>{0, last});
    return v;
  };
  std::vector<std::string> errors;
  for (const char* bulk : {"true", "false"}) {
    Restart({{"engine.bulk_inference", bulk}});
    session_ = Load(model, "host");
    auto failed = Run(*session_, {Numbers({4, 6}), indices(9)});
    ASSERT_FALSE(failed.ok());
    errors.push_back(FormatError(failed.status()));
    EXPECT_TRUE(Run(*session_, {Numbers({4, 6}), indices(3)}).ok());
    EXPECT_TRUE(runtime_->engine().WaitForAll().ok()) << "the error belongs to the run";
  }
  EXPECT_EQ(errors[0], errors[1]);
  EXPECT_THAT(errors[0], HasSubstr("Gather"));
}

TEST_F(EngineSettings, ReportAFailingKernelOfAQueueAndRunAgain) {
  Restart({{"engine.bulk_inference", "false"}});
  session_ = Load(kSmall, "async0");
  const std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  ASSERT_TRUE(Run(*session_, in).ok());
  control_->kernel_fails = true;
  auto failed = Run(*session_, in);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(FormatError(failed.status()), HasSubstr("kernel async.relu, node '' (Relu)"));
  EXPECT_TRUE(Run(*session_, in).ok());
}

TEST_F(EngineSettings, StopARunOfOperationsAtItsDeadline) {
  Restart({{"engine.bulk_inference", "false"}});
  session_ = Load(kSmall, "async0");
  const std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  ASSERT_TRUE(Run(*session_, in).ok());
  control_->hangs = true;
  RunState control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  auto late = Run(*session_, in, control);
  control_->hangs = false;
  EXPECT_EQ(ErrorId(late.status()), errors::kTimeout.id) << FormatError(late.status());
  EXPECT_TRUE(Run(*session_, in).ok());
}

TEST_F(EngineSettings, ChooseTheThreadsOfTheSteps) {
  const std::vector<HostValue> in = {Numbers({4, 6})};
  struct Case {
    const char* type;
    size_t threads;  // that the engine starts for the steps
  };
  for (const Case& c : {Case{"naive", 0}, {"ThreadedEngine", 16}, {"threaded_per_device", 3}}) {
    SCOPED_TRACE(c.type);
    Restart({{"engine.type", c.type}, {"engine.bulk_inference", "false"}, {"engine.cpu_worker_threads", "3"}});
    session_ = Load(kBranches, "host");
    const size_t before = ThreadsOfTheProcess();
    ASSERT_TRUE(Run(*session_, in).ok());
    EXPECT_EQ(ThreadsOfTheProcess() - before, c.threads);
  }
}

TEST_F(EngineSettings, RunStepAfterStepOnTheNaiveEngine) {
  const std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  Restart({{"engine.type", "NaiveEngine"}});
  Compare(kSmall, "async0", in);
  EXPECT_EQ(session_->operations(), session_->last_plan()->steps.size());
  EXPECT_EQ(control_->captures, 0);
  EXPECT_EQ(control_->most_at_once, 1) << "a step starts when the one before it has ended, also on another queue";
  EXPECT_EQ(runtime_->Threads(), 1u);
  Restart({});
  Compare(kSmall, "async0", in);
  EXPECT_EQ(session_->operations(), 1u);
  EXPECT_GT(control_->captures, 0);
}

TEST_F(EngineSettings, RunAsynchronouslyOnAsManyThreadsAsTheDeviceHas) {
  Restart({{"engine.cpu_worker_threads", "1"}});
  EXPECT_TRUE(TwoRunsAtOnce("async0")) << "the number of CPU workers is not that of a device with queues";
  Restart({{"engine.cpu_worker_threads", "2"}});
  EXPECT_TRUE(TwoRunsAtOnce("host"));
  Restart({{"engine.cpu_worker_threads", "2"}, {"engine.bulk_inference", "false"}});
  EXPECT_TRUE(TwoRunsAtOnce("host"));
}

TEST_F(EngineSettings, NeedNoSecondWorkerForAsynchronousRunsOfOperations) {
  Restart({{"engine.cpu_worker_threads", "1"}, {"engine.bulk_inference", "false"}});
  session_ = Load(kControlFlow, "host");
  std::vector<RunState> controls(20);
  std::atomic<int> ended{0};
  for (RunState& control : controls) Async(control, {Numbers({4, 6}), Flag(true)}, [&] { ++ended; });
  EXPECT_TRUE(runtime_->engine().WaitForAll().ok());
  EXPECT_EQ(ended, 20);
}

TEST_F(EngineSettings, RunPrioritizedRunsByPriorityOnTheirOwnThreads) {
  for (const char* bulk : {"true", "false"}) {
    SCOPED_TRACE(bulk);
    Restart({{"engine.cpu_priority_threads", "1"}, {"engine.bulk_inference", bulk}});
    session_ = Load(kBranches, "host");
    const std::vector<HostValue> in = {Numbers({4, 6})};
    std::promise<void> begun, open, plain;
    std::mutex mutex;
    std::vector<int> order;
    RunState first, other;
    first.priority = 0;
    Async(first, in, [&] {
      begun.set_value();
      open.get_future().wait();
    });
    begun.get_future().wait();
    Async(other, in, [&] { plain.set_value(); });
    plain.get_future().wait();  // a run without a priority is not delayed
    std::vector<RunState> controls(3);
    for (size_t i = 0; i < 3; ++i) {
      const int priority = std::array{-1, 5, 0}[i];
      controls[i].priority = priority;
      Async(controls[i], in, [&, priority] {
        std::lock_guard lock(mutex);
        order.push_back(priority);
      });
    }
    open.set_value();
    EXPECT_TRUE(runtime_->engine().WaitForAll().ok());
    EXPECT_EQ(order, (std::vector<int>{5, 0, -1}));
  }
  Restart({{"engine.cpu_priority_threads", "3"}});
  session_ = Load(kBranches, "host");
  std::vector<RunState> controls(3);
  Meeting meeting(3);
  std::atomic<int> met{0};
  for (RunState& control : controls) {
    control.priority = 1;
    Async(control, {Numbers({4, 6})}, [&] { met += meeting.Come(); });
  }
  EXPECT_TRUE(runtime_->engine().WaitForAll().ok());
  EXPECT_EQ(met, 3);
}

TEST_F(EngineSettings, GiveAForkedChildItsOwnNumberOfWorkers) {
  Restart({{"engine.cpu_worker_threads", "1"}, {"engine.fork_worker_threads", "2"}});
  EXPECT_EQ(InChild([&] { return TwoRunsAtOnce("host"); }), 0);
}

}  // namespace
}  // namespace mge
