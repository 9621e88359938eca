// SPDX-License-Identifier: Apache-2.0
// mge.Assign and mge.Accumulate: values written to the memory of others, and states that keep them for later runs.
#include <algorithm>

#include "tests/plugins/virtual/sessions/virtual_session.h"

namespace mge {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;
using testing::Pointwise;

class Updates : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    runtime_ = NewRuntime({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
    ASSERT_NE(runtime_, nullptr);
  }
  void Start(std::string_view text) {
    auto session = Load(runtime_, text, GetParam());
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    session_ = *session;
  }
  std::vector<float> Run(const std::vector<HostValue>& in) {
    auto r = ResultsOf(*session_, in);
    EXPECT_TRUE(r.ok()) << FormatError(r.status());
    return r.ok() ? *r : std::vector<float>();
  }
  // Returns the error of the model's first run.
  std::string ErrorOf(std::string_view text, const std::vector<HostValue>& in) {
    auto session = Load(runtime_, text, GetParam());
    absl::Status status = session.status();
    if (session.ok()) status = ResultsOf(**session, in).status();
    EXPECT_FALSE(status.ok());
    return FormatError(status);
  }
  std::string Why() const { return PlanText(*session_->last_plan(), true); }
  // Returns the number of kernels of the last plan.
  int Kernels() const {
    const auto& units = session_->last_plan()->units;
    return static_cast<int>(
        std::count_if(units.begin(), units.end(), [](const Unit& u) { return u.kind == Unit::Kind::kKernel; }));
  }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Devices, Updates, testing::Values("cpu0", "virtual0"));

HostValue Vector(std::vector<float> elements) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {static_cast<int64_t>(elements.size())});
  std::copy(elements.begin(), elements.end(), v.tensor.MutableData<float>().begin());
  return v;
}

TEST_P(Updates, AStateKeepsItsValueBetweenRuns) {
  Start(R"(input g : float32[3]
const w = float32[3]<1, 2, 3>
next = Sub(w, g)
v = mge::Assign(w, next)
y = Mul(v, g)
output y
)");
  EXPECT_THAT(Run({Vector({1, 1, 1})}), ElementsAre(0, 1, 2));    // w = 0 1 2
  EXPECT_THAT(Run({Vector({2, 2, 2})}), ElementsAre(-4, -2, 0));  // w = -2 -1 0
  EXPECT_THAT(Run({Vector({1, 0, 1})}), ElementsAre(-3, 0, -1));
  EXPECT_THAT(Run({Vector({1, 1, 1})}), ElementsAre(-4, -2, -2));
  EXPECT_THAT(Why(), HasSubstr("v over w (required)"));
}

TEST_P(Updates, TheKernelThatComputesAValueWritesItToTheState) {
  Start("input g : float32[3]\nconst w = float32[3]<1>\nnext = Sub(w, g)\nv = mge::Assign(w, next)\noutput v\n");
  EXPECT_THAT(Run({Vector({1, 2, 3})}), ElementsAre(0, -1, -2));
  EXPECT_EQ(Kernels(), 1) << Why();
  // A value with another reader is copied.
  Start(
      "input g : float32[3]\nconst w = float32[3]<1>\nnext = Sub(w, g)\nv = mge::Assign(w, next)\ny = Neg(next)\n"
      "output v\noutput y\n");
  EXPECT_THAT(Run({Vector({1, 2, 3})}), ElementsAre(0, -1, -2, 0, 1, 2));
  EXPECT_THAT(Run({Vector({1, 2, 3})}), ElementsAre(-1, -3, -5, 1, 3, 5));
}

TEST_P(Updates, AConstantAndAnInputCanBeAssigned) {
  Start(
      "input x : float32[2]\nconst w = float32[2]<1>\nconst c = float32[2]<5, 6>\na = Add(w, x)\nv = mge::Assign(w, c)\n"
      "output a\n");
  EXPECT_THAT(Run({Vector({1, 2})}), ElementsAre(2, 3));
  EXPECT_THAT(Run({Vector({1, 2})}), ElementsAre(6, 8));  // the update takes place although nothing reads its output
  Start("input x : float32[2]\nconst w = float32[2]<1>\na = Neg(w)\nv = mge::Assign(w, x)\noutput a\n");
  EXPECT_THAT(Run({Vector({3, 4})}), ElementsAre(-1, -1));
  EXPECT_THAT(Run({Vector({5, 6})}), ElementsAre(-3, -4));
}

TEST_P(Updates, ReadersOfTheOldValueComeFirst) {
  Start("input x : float32[2]\na = Abs(x)\nb = mge::Accumulate(a, x)\nc = Neg(a)\noutput b\noutput c\n");
  EXPECT_THAT(Run({Vector({1, -2})}), ElementsAre(2, 0, -1, -2));
}

TEST_P(Updates, AProductIsAddedToItsTarget) {
  Start(R"(input x : float32[5,7]
input b : float32[7,3]
input z : float32[5,3]
acc = Abs(z)
p = MatMul(x, b)
y = mge::Accumulate(acc, p)
output y
)");
  const std::vector<HostValue> in = {Numbers({5, 7}), Numbers({7, 3}, 2), Numbers({5, 3}, 3)};
  const std::vector<float> got = Run(in);
  EXPECT_EQ(Kernels(), 2) << Why();
  EXPECT_THAT(Why(), HasSubstr("y over acc (required)"));
  Start(
      "input x : float32[5,7]\ninput b : float32[7,3]\ninput z : float32[5,3]\nacc = Abs(z)\np = MatMul(x, b)\n"
      "y = Add(acc, p)\noutput y\n");
  EXPECT_THAT(got, Pointwise(FloatNear(1e-4f), Run(in)));
}

TEST_P(Updates, AKernelThatCannotAddGetsASeparateAddition) {
  Start(R"(input x : float32[3]
const sum = float32[3]<0>
t = Exp(x)
y = mge::Accumulate(sum, t)
output y
)");
  EXPECT_THAT(Run({Vector({0, 0, 0})}), ElementsAre(1, 1, 1));
  EXPECT_THAT(Run({Vector({0, 0, 0})}), ElementsAre(2, 2, 2));
  EXPECT_EQ(Kernels(), 2) << Why();
  EXPECT_THAT(Why(), HasSubstr("cannot add to its output"));
}

// The weights are large enough that the CPU packs them: in a step, because they change.
TEST_P(Updates, AProductReadsTheStateThatTheRunHasUpdated) {
  Start(R"(input x : float32[64,64]
input g : float32[64,512]
const w = float32[64,512]<0.5>
next = Sub(w, g)
v = mge::Assign(w, next)
y = MatMul(x, v)
output y
)");
  const HostValue x = Numbers({64, 64}), g = Numbers({64, 512}, 3);
  std::vector<float> w(64 * 512, 0.5f);
  for (int round = 0; round < 4; ++round) {
    const std::vector<float> got = Run({x, g});
    ASSERT_EQ(got.size(), size_t{64 * 512});
    for (size_t i = 0; i < w.size(); ++i) w[i] -= g.tensor.Data<float>()[i];
    for (size_t row : {size_t{0}, size_t{63}}) {
      for (size_t column : {size_t{0}, size_t{17}, size_t{511}}) {
        float sum = 0;
        for (size_t k = 0; k < 64; ++k) sum += x.tensor.Data<float>()[row * 64 + k] * w[k * 512 + column];
        EXPECT_NEAR(got[row * 512 + column], sum, 1e-2) << "round " << round << ", " << row << ", " << column;
      }
    }
  }
  if (GetParam() == std::string("cpu0")) {
    EXPECT_THAT(Why(), HasSubstr("packs state 'v' into"));
  }
}

TEST_P(Updates, PlansForSeveralShapesShareTheState) {
  Start(R"(input x : float32[N,2]
const w = float32[2]<1>
s = ReduceSum(x) {keepdims=0}
e = Expand(s, two)
const two = int64[1]<2>
v = mge::Accumulate(w, e)
y = Add(x, v)
output y
)");
  HostValue one = Numbers({1, 2}), three = Numbers({3, 2});
  for (HostValue* v : {&one, &three})
    std::fill(v->tensor.MutableData<float>().begin(), v->tensor.MutableData<float>().end(), 1.f);
  EXPECT_THAT(Run({one}), Each(4));
  EXPECT_THAT(Run({three}), Each(10));
  EXPECT_THAT(Run({one}), Each(12));
}

TEST_P(Updates, AnUpdateOfMemoryThatMustKeepItsElementsIsAnError) {
  const std::vector<HostValue> in = {Vector({1, 2})};
  EXPECT_THAT(ErrorOf("input x : float32[2]\ny = mge::Accumulate(x, x)\noutput y\n", in),
              HasSubstr("cannot write to the memory of 'x'"));
  EXPECT_THAT(ErrorOf("input x : float32[2]\na = Abs(x)\ny = mge::Accumulate(a, x)\noutput y\noutput a\n", in),
              HasSubstr("it is an output of the graph"));
  EXPECT_THAT(ErrorOf("input x : float32[2]\na = Abs(x)\ny = mge::Accumulate(a, x)\nz = Add(a, y)\noutput z\n", in),
              HasSubstr("reads it after the update"));
  EXPECT_THAT(ErrorOf("input x : float32[2]\nconst w = float32[3]<1>\ny = mge::Assign(w, x)\noutput y\n", in),
              HasSubstr("expected one shape"));
}

}  // namespace
}  // namespace mge
