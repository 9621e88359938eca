// SPDX-License-Identifier: Apache-2.0
// Profiles of real runs: recorded steps, bodies of control flow, and threads.
#include "core/profile/profile.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/engine/session.h"
#include "core/plan/bodies.h"
#include "core/profile/recorder.h"
#include "core/profile/summary.h"
#include "core/profile/trace.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/session_values.h"

namespace mge {
namespace {

constexpr char kChain[] = R"(
input x : float32[64,64]
const w = float32[64,64]<0.25>
a = MatMul(x, w)
b = Relu(a)
c = MatMul(b, w)
output c
)";

constexpr char kBranches[] = R"(
input x : float32[4,6]
input go : bool[]
a = Relu(x)
b = If(go) captures(a, a) {then_branch=graph {
  capture a
  s = Add(a, a)
  r = Exp(s)
  output r
}, else_branch=graph {
  capture a
  n = Neg(a)
  output n
}} : float32[4,6]
output b
)";

class Profiles : public testing::Test {
 protected:
  void SetUp() override {
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    auto runtime = Runtime::Create(std::move(options));
    ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *runtime;
  }

  std::shared_ptr<Session> Load(const std::string& text, int threads = 1) {
    auto graph = ParseGraphText(text);
    EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
    auto session = Session::Create(runtime_, {*std::move(graph), {}}, {.device = "host", .threads = threads});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return *session;
  }

  absl::Status Run(Session& session, const std::vector<HostValue>& in) {
    Recorder recorder(profile_, session.threads(), runtime_->pool().thread_count());
    RunState control;
    control.observer = &recorder;
    std::vector<HostValue> out(static_cast<size_t>(session.output_count()));
    MGE_RETURN_IF_ERROR(session.Run(in, out, control));
    recorder.Keep();
    return absl::OkStatus();
  }

  static HostValue Flag(bool value) {
    HostValue v;
    v.tensor = Tensor::Scalar(value);
    return v;
  }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Profile> profile_ = std::make_shared<Profile>();
};

TEST_F(Profiles, AddUpToTheWallTime) {
  auto session = Load(kChain);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  Summary s = Summarise(profile_->Read());
  EXPECT_EQ(s.runs, 5u);
  EXPECT_EQ(s.counted, 3u);
  ASSERT_EQ(s.steps.size(), 3u);
  double sum = s.planning_us + s.between_us;
  for (const StepSummary& step : s.steps) {
    EXPECT_EQ(step.calls, 1);
    EXPECT_GT(step.time_us, 0);
    EXPECT_LE(step.least_us, step.median_us);
    sum += step.time_us;
  }
  EXPECT_NEAR(sum, s.wall_us, 1e-6 * s.wall_us);
  EXPECT_GE(s.between_us, 0);
  double by_operator = 0;
  for (const OperatorSummary& op : s.operators) by_operator += op.time_us;
  EXPECT_NEAR(by_operator + s.planning_us + s.between_us, s.wall_us, 1e-6 * s.wall_us);
  EXPECT_EQ(s.operators.front().op, "MatMul");
  EXPECT_EQ(s.operators.front().steps, 2);
}

TEST_F(Profiles, ReportTheWorkOfTheModel) {
  auto session = Load(kChain);
  ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  const Recording r = profile_->Read();
  ASSERT_EQ(r.plans.size(), 1u);
  EXPECT_EQ(r.plans[0].steps[0].flops, 2.0 * 64 * 64 * 64);
  EXPECT_EQ(r.plans[0].steps[0].bytes, 3.0 * 64 * 64 * 4);
  EXPECT_EQ(r.plans[0].steps[1].flops, 64.0 * 64);
  EXPECT_EQ(r.plans[0].steps[1].bytes, 2.0 * 64 * 64 * 4);
}

TEST_F(Profiles, ShowTheStepsOfTheBranchThatRan) {
  auto session = Load(kBranches);
  ASSERT_TRUE(Run(*session, {Numbers({4, 6}), Flag(true)}).ok());
  Recording r = profile_->Read();
  ASSERT_EQ(r.plans.size(), 2u);
  EXPECT_EQ(r.plans[1].parent, 0);
  EXPECT_EQ(r.plans[1].body, "then_branch");
  ASSERT_EQ(r.plans[1].steps.size(), 2u);
  EXPECT_EQ(r.plans[1].steps[1].ops, std::vector<std::string>{"Exp"});
  EXPECT_TRUE(PathOf(r, 1).ends_with(".then_branch")) << PathOf(r, 1);
  ASSERT_TRUE(Run(*session, {Numbers({4, 6}), Flag(false)}).ok());
  ASSERT_TRUE(Run(*session, {Numbers({4, 6}), Flag(true)}).ok());
  r = profile_->Read();
  ASSERT_EQ(r.plans.size(), 3u);
  EXPECT_EQ(r.plans[2].body, "else_branch");
  Summary s = Summarise(r);
  double sum = s.planning_us + s.between_us;
  for (const StepSummary& step : s.steps) sum += step.time_us;
  EXPECT_NEAR(sum, s.wall_us, 1e-6 * s.wall_us);
  EXPECT_GE(s.between_us, 0);
}

TEST_F(Profiles, AddMeasuredTimesToThePlansText) {
  auto session = Load(kBranches);
  const std::vector<HostValue> in = {Numbers({4, 6}), Flag(true)};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Run(*session, in).ok());
  const Recording r = profile_->Read();
  const Summary s = Summarise(r);
  const StepTimes times = TimesOf(*profile_, r, s);
  std::vector<InputType> types;
  for (const HostValue& v : in) types.push_back(TypeOfValue(v));
  auto plan = *session->PlanFor(types);
  for (size_t i = 0; i < plan->units.size(); ++i) {
    std::optional<StepTime> time = times(*plan, static_cast<int32_t>(i));
    ASSERT_TRUE(time) << i;
    EXPECT_GT(time->median_us, 0);
    EXPECT_EQ(time->calls, 1);
  }
  int measured = 0;
  ForEachPlan(*plan, [&](const Plan& p, const std::string&) {
    for (size_t i = 0; i < p.units.size(); ++i) measured += times(p, static_cast<int32_t>(i)).has_value();
  });
  EXPECT_EQ(measured, 4);  // Relu, If, Add, Exp
  auto other = Load(kBranches);
  EXPECT_FALSE(times(**other->PlanFor(types), 0));
}

TEST_F(Profiles, CountEveryCallOfALoopsBody) {
  auto session = Load(R"(
input n : int64[]
input go : bool[]
input x : float32[8]
y = Loop(n, go, x) {body=graph {
  input i : int64[]
  input c : bool[]
  input v : float32[8]
  k = Identity(c)
  w = Exp(v)
  z = Neg(w)
  output k
  output z
}}
output y
)");
  HostValue trips;
  trips.tensor = Tensor::Scalar(int64_t{7});
  ASSERT_TRUE(Run(*session, {trips, Flag(true), Numbers({8})}).ok());
  const Recording r = profile_->Read();
  double calls = 0;
  const Summary s = Summarise(r);
  for (const StepSummary& step : s.steps) {
    const ProfiledStep& p = r.plans[static_cast<size_t>(step.plan)].steps[static_cast<size_t>(step.step)];
    if (p.ops == std::vector<std::string>{"Neg"}) calls = step.calls;
  }
  EXPECT_EQ(calls, 7);
}

TEST_F(Profiles, DropFailedRuns) {
  auto session = Load("input x : float32[4]\ninput i : int64[1]\ny = Gather(x, i)\nz = Relu(y)\noutput z\n");
  HostValue index;
  index.tensor = *Tensor::Create(DType::kI64, {1});
  index.tensor.MutableData<int64_t>()[0] = 9;
  EXPECT_FALSE(Run(*session, {Numbers({4}), index}).ok());
  EXPECT_EQ(profile_->Read().runs.size(), 0u);
  index.tensor.MutableData<int64_t>()[0] = 3;
  EXPECT_TRUE(Run(*session, {Numbers({4}), index}).ok());
  EXPECT_EQ(profile_->Read().runs.size(), 1u);
}

TEST_F(Profiles, NameStepsOfReleasedPlans) {
  auto session = Load(kChain);
  ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  session = Load(kChain);  // makes an equal plan
  ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  session.reset();
  runtime_.reset();
  const Recording r = profile_->Read();
  EXPECT_EQ(r.plans.size(), 1u);
  EXPECT_EQ(Summarise(r).steps.front().calls, 1);
  EXPECT_EQ(r.plans[0].steps[0].ops.front(), "MatMul");
}

TEST_F(Profiles, RecordRunsOfSeveralThreads) {
  auto session = Load(kChain);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) EXPECT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
    });
  }
  for (std::thread& t : threads) t.join();
  const Recording r = profile_->Read();
  EXPECT_EQ(r.runs.size(), 40u);
  EXPECT_EQ(r.plans.size(), 1u);
}

TEST_F(Profiles, ForgetRunsWhenTheyAreReset) {
  auto session = Load(kChain);
  ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  profile_->Reset();
  EXPECT_EQ(Summarise(profile_->Read()).runs, 0u);
  ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  EXPECT_EQ(Summarise(profile_->Read()).steps.size(), 3u);
}

TEST_F(Profiles, GiveTracesWithStepsNestedInTheirPlan) {
  auto session = Load(kBranches);
  ASSERT_TRUE(Run(*session, {Numbers({4, 6}), Flag(true)}).ok());
  const auto trace = nlohmann::json::parse(TraceText(profile_->Read()));
  double begin = -1, end = -1;
  int steps = 0, plans = 0, runs = 0;
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] == "X" && e["cat"] == "run") {
      ++runs;
      begin = e["ts"], end = begin + e["dur"].get<double>();
    }
  }
  for (const auto& e : trace["traceEvents"]) {
    if (e["ph"] != "X" || e["tid"] != 0) continue;
    steps += e["cat"] == "step";
    plans += e["cat"] == "plan";
    EXPECT_GE(e["ts"].get<double>(), begin - 0.01);
    EXPECT_LE(e["ts"].get<double>() + e["dur"].get<double>(), end + 0.01);
  }
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(plans, 2);
  EXPECT_EQ(steps, 4);  // Relu, If, Add, Exp
}

// A fixture that reports a step with shared work to the recorder, as the engine does.
class Sharing : public Profiles {
 protected:
  void Share(Recorder& recorder, ComputePool& pool, uint64_t chunks, uint32_t width, void (*body)(void*, uint64_t)) {
    struct Observed {
      Recorder& recorder;
      void (*body)(void*, uint64_t);
    } observed = {recorder, body};
    recorder.BeginShare();
    pool.ParallelFor(
        chunks, width,
        [](void* self, uint64_t i) {
          auto& o = *static_cast<Observed*>(self);
          const uint32_t thread = ComputePool::ThisThread();
          o.recorder.BeginChunk(thread);
          o.body(nullptr, i);
          o.recorder.EndChunk(thread);
        },
        &observed);
    recorder.EndShare();
  }
};

TEST_F(Sharing, IsRecordedPerThread) {
  auto session = Load(kChain);
  auto plan = session->PlanFor(std::vector<InputType>{TypeOfValue(Numbers({64, 64}))});
  ASSERT_TRUE(plan.ok());
  ComputePool pool(2);
  Recorder recorder(profile_, 3, pool.thread_count());
  recorder.BeginPlanning();
  recorder.EndPlanning();
  recorder.BeginPlan(*plan, "");
  recorder.BeginStep(0);
  // No chunk ends before all have begun, so every thread takes one.
  static std::atomic<int> begun;
  begun = 0;
  Share(recorder, pool, 3, 3, [](void*, uint64_t) {
    ++begun;
    while (begun < 3) std::this_thread::yield();
  });
  recorder.EndStep();
  recorder.EndPlan();
  recorder.Keep();
  const Recording r = profile_->Read();
  ASSERT_EQ(r.runs.size(), 1u);
  std::vector<uint32_t> threads;
  for (const ThreadShare& share : r.runs[0].shares) {
    threads.push_back(share.thread);
    EXPECT_LE(share.busy, share.end - share.begin);
  }
  EXPECT_EQ(threads, (std::vector<uint32_t>{0, 1, 2}));
  const Summary s = Summarise(r);
  EXPECT_EQ(s.width, 3u);
  ASSERT_EQ(s.steps[0].busy.size(), 3u);
  EXPECT_NEAR(s.steps[0].balance, (s.steps[0].busy[0] + s.steps[0].busy[1] + s.steps[0].busy[2]) / 3, 1e-9);
}

TEST_F(Profiles, ReportThatOneOfTwoThreadsDidAllWorkOfAnUnsharedStep) {
  auto session = Load(kChain, 2);
  if (runtime_->pool().thread_count() < 2) GTEST_SKIP() << "one processor";
  ASSERT_TRUE(Run(*session, {Numbers({64, 64})}).ok());
  for (const StepSummary& step : Summarise(profile_->Read()).steps) {
    EXPECT_EQ(step.busy, (std::vector<double>{1, 0}));
    EXPECT_EQ(step.balance, 0.5);
  }
}

}  // namespace
}  // namespace mge
