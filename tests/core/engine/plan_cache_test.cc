// SPDX-License-Identifier: Apache-2.0
// Sessions that run many shapes: the plans that they keep, and the warnings if they plan too often.
#include "tests/core/engine/tuner_test.h"
#include "tests/support/session_values.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kRelu[] = "input x : float32[?]\ny = Relu(x)\noutput y\n";
constexpr char kTwo[] = "input x : float32[?]\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\noutput y\n";

std::shared_ptr<const Plan> PlanOf(Session& session, int64_t n) {
  std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {n}}};
  auto plan = session.PlanFor(types);
  EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
  return plan.ok() ? *plan : nullptr;
}

TEST(PlansOfASession, AreMadeOncePerShape) {
  Host host;
  host.record() = {};
  auto session = *host.Make(kRelu);
  std::vector<std::shared_ptr<const Plan>> plans;
  for (int64_t n = 1; n <= 40; ++n) plans.push_back(PlanOf(*session, n));
  for (int64_t n = 1; n <= 40; ++n) EXPECT_EQ(PlanOf(*session, n), plans[static_cast<size_t>(n - 1)]);
  EXPECT_THAT(host.warnings, IsEmpty());
}

TEST(PlansOfASession, ThatAreEvictedAndMadeAgainGiveOneWarning) {
  Host host({Set("plan.cache_count", "2")});
  host.record() = {};
  auto session = *host.Make(kRelu);
  for (int round = 0; round < 5; ++round) {
    for (int64_t n : {1, 2, 3}) PlanOf(*session, n);
  }
  EXPECT_THAT(host.warnings, ElementsAre(AllOf(HasSubstr("plans are created repeatedly"), HasSubstr("x[3]"),
                                               HasSubstr("plan.cache_count = 2"), HasSubstr("plan.cache_bytes"))));
}

TEST(PlansOfASession, GiveOneWarningIfNoShapeIsRunTwice) {
  Host host({Set("plan.ranges", "off")});
  host.record() = {};
  auto session = *host.Make(kRelu);
  for (int64_t n = 1; n <= 120; ++n) PlanOf(*session, n);
  EXPECT_THAT(host.warnings, ElementsAre(AllOf(HasSubstr("50 of 50 runs had to create a plan first"), HasSubstr("x[50]"))));
}

TEST(PlansOfASession, GiveNoWarningIfRangesServeTheShapes) {
  Host host;
  host.record() = {};
  auto session = *host.Make(kRelu);
  for (int64_t n = 1; n <= 120; ++n) PlanOf(*session, n);
  EXPECT_THAT(host.warnings, IsEmpty());
}

TEST(PlansOfASession, NameABodyIfItRunsNoShapeTwice) {
  Host host;
  host.record() = {};
  auto session = *host.Make(R"(
input x : float32[?]
const n = int64[]<60>
const go = bool[]<true>
y = Loop(n, go, x) {body=graph {
  input i : int64[]
  input c : bool[]
  input v : float32[K]
  const one = float32[1]<1>
  k = Identity(c)
  w = Concat(v, one) {axis=0}
  output k
  output w
}} : float32[K]
output y
)");
  auto got = ResultsOf(*session, {Numbers({4})});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_EQ(got->size(), 64u);
  EXPECT_THAT(host.warnings, ElementsAre(AllOf(HasSubstr("a body of"), HasSubstr("50 of 50 runs had to create a plan first"),
                                               Not(HasSubstr("pad inputs")))));
}

TEST(PlansOfASession, ExceedTheirMemoryLimitOnlyByThePlanUsedLast) {
  Host host({Set("plan.cache_bytes", "512KiB")});
  host.record() = {};
  auto session = *host.Make(kTwo);
  // Each plan has an arena of at least 512 KiB.
  for (int round = 0; round < 2; ++round) {
    for (int64_t n = 131072; n < 131072 + 20; ++n) {
      auto got = ResultsOf(*session, {Numbers({n})});
      ASSERT_TRUE(got.ok()) << FormatError(got.status());
      EXPECT_LE(host.record().held, 3 * (524288 + 4096)) << n;
    }
  }
  EXPECT_THAT(host.warnings, IsEmpty());  // no plan was evicted
}

TEST(PlansOfASession, KeepTheMemoryOfTheirRunsWithinTheLimit) {
  Host host({Set("plan.ranges", "off")});
  host.record() = {};
  auto session = *host.Make(kTwo);
  for (int64_t n = 1024; n < 1024 + 8; ++n) ASSERT_TRUE(ResultsOf(*session, {Numbers({n})}).ok());
  const uint64_t held = host.record().held;
  for (int64_t n = 1024; n < 1024 + 8; ++n) ASSERT_TRUE(ResultsOf(*session, {Numbers({n})}).ok());
  EXPECT_EQ(host.record().held, held);
}

}  // namespace
}  // namespace mge
