// SPDX-License-Identifier: Apache-2.0
// Kernels that serve more than one use: a fused group that also writes an inner value, and kernels for several shapes.
#include <algorithm>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

class SharedKernels : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = NewRuntime({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
    ASSERT_NE(runtime_, nullptr);
  }
  std::shared_ptr<Session> Start(std::string_view text, const std::string& device = "virtual0") {
    auto session = Load(runtime_, text, device);
    EXPECT_TRUE(session.ok()) << FormatError(session.status());
    return session.ok() ? *session : nullptr;
  }
  static std::vector<float> Run(Session& session, const std::vector<HostValue>& in) {
    auto r = ResultsOf(session, in);
    EXPECT_TRUE(r.ok()) << FormatError(r.status());
    return r.ok() ? *r : std::vector<float>();
  }
  static int KernelsOf(const Plan& plan) {
    return static_cast<int>(
        std::count_if(plan.units.begin(), plan.units.end(), [](const Unit& u) { return u.kind == Unit::Kind::kKernel; }));
  }
  std::shared_ptr<Runtime> runtime_;
};

TEST_F(SharedKernels, AFusedGroupWritesAnInnerValueThatOthersRead) {
  constexpr std::string_view kGraph = R"(input x : float32[6,8]
input z : float32[6,8]
a = Add(x, z)
b = Relu(a)
c = Mul(b, x)
d = Softmax(b)
output a
output c
output d
)";
  const std::vector<HostValue> in = {Numbers({6, 8}), Numbers({6, 8}, 5)};
  auto session = Start(kGraph), cpu = Start(kGraph, "cpu0");
  for (int round = 0; round < 3; ++round) EXPECT_THAT(Run(*session, in), Pointwise(FloatNear(1e-5f), Run(*cpu, in)));
  const std::string why = PlanText(*session->last_plan(), true);
  EXPECT_EQ(KernelsOf(*session->last_plan()), 2) << why;  // Add+Relu+Mul, Softmax
  EXPECT_THAT(why, HasSubstr("virtual.elementwise_chain"));
}

TEST_F(SharedKernels, AFusedGroupMayReadItsInnerValueTwice) {
  constexpr std::string_view kGraph = R"(input x : float32[37]
a = Neg(x)
b = Sigmoid(a)
c = Mul(a, b)
d = Exp(c)
output d
)";
  auto session = Start(kGraph), cpu = Start(kGraph, "cpu0");
  EXPECT_THAT(Run(*session, {Numbers({37})}), Pointwise(FloatNear(1e-5f), Run(*cpu, {Numbers({37})})));
  EXPECT_EQ(KernelsOf(*session->last_plan()), 1) << PlanText(*session->last_plan(), true);
}

TEST_F(SharedKernels, APlanForASecondShapeDerivesItsKernels) {
  auto session =
      Start("input x : float32[N,8]\ninput z : float32[N,8]\na = Add(x, z)\nb = Softmax(a)\nc = Exp(b)\noutput c\n");
  const std::vector<float> two = Run(*session, {Numbers({2, 8}), Numbers({2, 8}, 2)});
  EXPECT_EQ(session->last_plan()->report.rebound_kernels, 0);
  const std::vector<float> three = Run(*session, {Numbers({3, 8}), Numbers({3, 8}, 2)});
  const Plan& plan = *session->last_plan();
  EXPECT_EQ(KernelsOf(plan), 3);
  EXPECT_EQ(plan.report.rebound_kernels, 2);  // the elementwise ones; Softmax was prepared
  ASSERT_EQ(three.size(), 24u);
  auto cpu =
      Start("input x : float32[N,8]\ninput z : float32[N,8]\na = Add(x, z)\nb = Softmax(a)\nc = Exp(b)\noutput c\n", "cpu0");
  EXPECT_THAT(three, Pointwise(FloatNear(1e-5f), Run(*cpu, {Numbers({3, 8}), Numbers({3, 8}, 2)})));
  EXPECT_EQ(Run(*session, {Numbers({2, 8}), Numbers({2, 8}, 2)}), two);  // the kernels of the first plan are as before
}

}  // namespace
}  // namespace mge
