// SPDX-License-Identifier: Apache-2.0
// Bodies of control flow (If, Loop, Scan) in the reports about a plan.
#include "core/plan/bodies.h"

#include <memory>
#include <string>
#include <vector>

#include "core/engine/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/session_values.h"

namespace mge {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kNested[] = R"(
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
    w = Exp(v)
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
output b
)";

class Bodies : public testing::Test {
 protected:
  std::shared_ptr<Session> Load(const std::string& text) {
    RuntimeOptions options;
    options.built_in_plugins = false;
    auto runtime = Runtime::Create(std::move(options));
    EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
    auto graph = ParseGraphText(text);
    EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
    auto session = Session::Create(*runtime, {*std::move(graph), {}}, {.device = "host"});
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return *session;
  }
  static HostValue Flag(bool value) {
    HostValue v;
    v.tensor = Tensor::Scalar(value);
    return v;
  }
  static std::shared_ptr<const Plan> PlanFor(Session& session, const std::vector<HostValue>& in) {
    std::vector<InputType> types;
    for (const HostValue& v : in) types.push_back(TypeOfValue(v));
    return *session.PlanFor(types);
  }
  static std::vector<std::string> Paths(const Plan& plan) {
    std::vector<std::string> paths;
    ForEachPlan(plan, [&](const Plan&, const std::string& path) { paths.push_back(path); });
    return paths;
  }
};

TEST_F(Bodies, AreInThePlansTextBeforeAnyRun) {
  auto session = Load(kNested);
  const std::string text = PlanText(*PlanFor(*session, {Numbers({4, 6}), Flag(true)}), /*why=*/true);
  for (const char* word : {".then_branch:", ".else_branch:", ".body:", "Exp", "Neg", "Tanh"})
    EXPECT_THAT(text, HasSubstr(word));
}

TEST_F(Bodies, BelongToAPlanOnceTheyHaveRun) {
  auto session = Load(kNested);
  const std::vector<HostValue> in = {Numbers({4, 6}), Flag(true)};
  auto plan = PlanFor(*session, in);
  EXPECT_EQ(Paths(*plan), std::vector<std::string>{""});
  ASSERT_TRUE(ResultsOf(*session, in).ok());
  const std::vector<std::string> paths = Paths(*plan);
  ASSERT_EQ(paths.size(), 3u);
  EXPECT_TRUE(paths[1].ends_with(".then_branch")) << paths[1];
  EXPECT_TRUE(paths[2].starts_with(paths[1] + "/") && paths[2].ends_with(".body")) << paths[2];
  ASSERT_TRUE(ResultsOf(*session, {in[0], Flag(false)}).ok());
  EXPECT_EQ(Paths(*plan).size(), 4u);
}

TEST_F(Bodies, KeepMemoryForTheNextRunWhichCountsAsMemoryOfThePlan) {
  auto session = Load(R"(
input x : float32[4,6]
input go : bool[]
b = If(go) captures(x, x) {then_branch=graph {
  capture x
  n = Exp(x)
  r = Add(n, n)
  output r
}, else_branch=graph {
  capture x
  n = Tanh(x)
  output n
}} : float32[4,6]
output b
)");
  const std::vector<HostValue> in = {Numbers({4, 6}), Flag(true)};
  auto plan = PlanFor(*session, in);
  ASSERT_TRUE(ResultsOf(*session, in).ok());
  EXPECT_GT(IdleBytes(*plan), plan->attachment->IdleBytes());
  GiveUpIdle(*plan);
  EXPECT_EQ(IdleBytes(*plan), 0);
  EXPECT_TRUE(ResultsOf(*session, in).ok());
}

TEST_F(Bodies, WithTypesKnownOnlyInARunShowAReasonUntilThen) {
  constexpr char kGrowing[] = R"(
input n : int64[]
input go : bool[]
input x : float32[8]
y = Loop(n, go, x) {body=graph {
  input i : int64[]
  input c : bool[]
  input v : float32[K]
  k = Identity(c)
  w = Concat(v, v) {axis=0}
  output k
  output w
}} : float32[K]
output y
)";
  auto session = Load(kGrowing);
  HostValue trips;
  trips.tensor = Tensor::Scalar(int64_t{2});
  const std::vector<HostValue> in = {trips, Flag(true), Numbers({8})};
  auto plan = PlanFor(*session, in);
  EXPECT_THAT(PlanText(*plan, false), HasSubstr("planned during the run"));
  auto result = ResultsOf(*session, in);
  ASSERT_TRUE(result.ok()) << FormatError(result.status());
  EXPECT_EQ(result->size(), 32u);
  EXPECT_THAT(PlanText(*plan, false), Not(HasSubstr("planned during the run")));
  EXPECT_EQ(Paths(*plan).size(), 3u);  // one for each size of v
}

TEST_F(Bodies, ShowMeasuredTimes) {
  auto session = Load(kNested);
  auto plan = PlanFor(*session, {Numbers({4, 6}), Flag(true)});
  auto times = [&](const Plan& of, int32_t unit) -> std::optional<StepTime> {
    if (&of != plan.get() || unit != 0) return std::nullopt;
    return StepTime{.median_us = 120, .share = 0.25, .calls = 1, .off = false};
  };
  const std::string text = PlanText(*plan, false, times);
  EXPECT_THAT(text, HasSubstr("time: 120.0 us in the run"));
  EXPECT_THAT(text, HasSubstr("25.0 % of it"));
  EXPECT_THAT(text, Not(HasSubstr("OFF")));
}

}  // namespace
}  // namespace mge
