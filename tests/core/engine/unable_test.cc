// SPDX-License-Identifier: Apache-2.0
// Kernels that are offered but cannot be prepared (MGE_UNIMPLEMENTED), and the kernels and devices that replace them.
#include "tests/core/engine/tuner_test.h"
#include "tests/support/session_values.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kRelu[] = "input x : float32[?]\ny = Relu(x)\noutput y\n";
constexpr char kAll[] = "slow steady loose wrong rough matrix";

TEST(UnableKernels, AreReplacedByTheNextCandidate) {
  Host host;
  host.record() = {.unable = "slow wrong"};
  auto plan = host.PlanOf(kRelu);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[0].kernel, "steady");
  EXPECT_THAT(PlanText(**plan, true),
              HasSubstr("not slow: it cannot be prepared: the compiler said: | no such instruction"));
}

TEST(UnableKernels, AreNotPreparedAgainForTheSameProblem) {
  Host host({Set("plan.cache_count", "1"), Set("plan.ranges", "off")});
  host.record() = {.unable = "slow"};
  auto session = *host.Make(kRelu);
  for (int round = 0; round < 3; ++round) {
    for (int64_t n : {8, 16}) {
      std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {n}}};
      ASSERT_TRUE(session->PlanFor(types).ok());
    }
  }
  EXPECT_EQ(host.record().unable_asked, 2);  // once for each size
}

TEST(UnableKernels, ArePreparedOnceForEqualNodesOfAModel) {
  Host host;
  host.record() = {.unable = "slow wrong"};
  auto plan = host.PlanOf("input x : float32[?]\na = Relu(x)\nb = Exp(a)\ny = Relu(b)\noutput y\n");
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(Kernels(**plan), ElementsAre("steady", "reference", "steady"));
  EXPECT_EQ(host.record().unable_asked, 2);  // "slow", then "wrong"
}

TEST(UnableKernels, LeaveTheirNodeToTheNextDeviceThatIsAllowed) {
  Host host({}, "tuner0,sealed0");
  host.record() = {.unable = kAll};
  auto plan = host.PlanOf(kRelu);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[0].device, "sealed0");
  EXPECT_EQ(DeviceText(**plan), "sealed0");
  auto got = ResultsOf(*host.session, {Numbers({4})});
  EXPECT_TRUE(got.ok()) << FormatError(got.status());
}

TEST(UnableKernels, LeaveTheirNodeToTheReferenceEvaluatorIfThereIsNoOtherDevice) {
  Host host;
  host.record() = {.unable = kAll};
  auto plan = host.PlanOf("input x : float32[?]\na = Relu(x)\nb = Neg(a)\noutput b\n");
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(Kernels(**plan), ElementsAre("reference", "reference"));
  EXPECT_EQ((*plan)->report.reference_steps, 2);
}

TEST(UnableKernels, AreAnErrorIfTheReferenceEvaluatorIsForbidden) {
  Host host({Set("select.strategy", "heuristic_optimized")});
  host.record() = {.unable = kAll};
  EXPECT_THAT(host.Chosen(kRelu), AllOf(HasSubstr("operator Relu has no kernel"), HasSubstr("it cannot be prepared")));
}

TEST(DeviceText, NamesTheDevicesThatDoTheWork) {
  Host host({}, "tuner0,sealed0");
  host.record() = {};
  EXPECT_EQ(DeviceText(**host.PlanOf("input x : float32[?]\ny = Relu(x)\noutput y\n")), "tuner0");
  EXPECT_EQ(DeviceText(**host.PlanOf("input x : float32[?]\ny = Abs(x)\noutput y\n")), "sealed0");
  EXPECT_EQ(DeviceText(**host.PlanOf("input x : float32[?]\na = Relu(x)\ny = Abs(a)\noutput y\n")), "tuner0+sealed0");
}

}  // namespace
}  // namespace mge
