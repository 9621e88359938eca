// SPDX-License-Identifier: Apache-2.0
// Gradients of recorded operators: against finite differences, and of long and branching computations.
#include "core/eager/eager_tape.h"

#include <functional>

#include "tests/core/eager/eager.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

class Tapes : public testing::TestWithParam<const char*> {
 protected:
  // Records f(x) and returns its gradients by x.
  std::vector<std::vector<float>> GradientsOf(const Eager& eager, const std::vector<EagerTensorPtr>& x,
                                              const std::function<EagerTensorPtr(const std::vector<EagerTensorPtr>&)>& f) {
    auto tape = std::make_shared<EagerTape>(eager.get());
    for (const EagerTensorPtr& t : x) EXPECT_TRUE(tape->Watch(t).ok());
    tape->Start();
    const EagerTensorPtr y = f(x);
    tape->Stop();
    auto out = tape->Gradient(y, x);
    EXPECT_TRUE(out.ok()) << FormatError(out.status());
    std::vector<std::vector<float>> all;
    for (const EagerTensorPtr& g : out.ok() ? *out : std::vector<EagerTensorPtr>(x.size())) all.push_back(eager.Get(g));
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Eager, Tapes, testing::Values("host", "cpu0", "virtual0"));

TEST_P(Tapes, GradientOfASmallNetworkIsThatOfFiniteDifferences) {
  const Eager eager(GetParam());
  const std::vector<HostValue> values = {Eager::Waves({5, 3}), Eager::Waves({3, 4}, 2), Eager::Waves({4}, 3),
                                         Eager::Waves({4, 2}, 4)};
  auto network = [&](const std::vector<EagerTensorPtr>& p) {
    const EagerTensorPtr hidden = eager.Apply("Tanh", {eager.Apply("Add", {eager.Apply("MatMul", {p[0], p[1]}), p[2]})});
    const EagerTensorPtr scores = eager.Apply("LogSoftmax", {eager.Apply("MatMul", {hidden, p[3]})});
    return eager.Apply("ReduceMean", {eager.Apply("Mul", {scores, scores})}, With("keepdims", int64_t{0}));
  };
  std::vector<EagerTensorPtr> p;
  for (const HostValue& v : values) p.push_back(eager.Put(v));
  const std::vector<std::vector<float>> gradients = GradientsOf(eager, p, network);
  constexpr float kStep = 1e-2f;
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(gradients[i].size(), static_cast<size_t>(values[i].tensor.elements()));
    for (size_t k = 0; k < gradients[i].size(); k += 3) {
      float loss[2];
      for (const int side : {0, 1}) {
        auto span = values[i].tensor.Data<float>();
        std::vector<float> moved(span.begin(), span.end());
        moved[k] += side ? kStep : -kStep;
        std::vector<EagerTensorPtr> q = p;
        q[i] = eager.Put(values[i].tensor.shape(), moved);
        loss[side] = eager.Get(network(q))[0];
      }
      EXPECT_NEAR(gradients[i][k], (loss[1] - loss[0]) / (2 * kStep), 2e-3) << "parameter " << i << " element " << k;
    }
  }
}

TEST_P(Tapes, GradientsOfATensorThatIsUsedSeveralTimesAreSummed) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put({2}, {2, 3});
  const auto g = GradientsOf(eager, {x}, [&](const auto& p) {
    const EagerTensorPtr square = eager.Apply("Mul", {p[0], p[0]});
    return eager.Apply("Add", {eager.Apply("Mul", {square, p[0]}), eager.Apply("Add", {p[0], p[0]})});  // x^3 + 2 x
  });
  EXPECT_THAT(g[0], Pointwise(FloatNear(1e-4f), std::vector<float>{3 * 4 + 2, 3 * 9 + 2}));
}

TEST_P(Tapes, GoesBackThroughAHundredOperators) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put({4}, {0.1f, 0.2f, 0.3f, 0.4f}), factor = eager.Put({1}, {1.01f});
  const auto g = GradientsOf(eager, {x, factor}, [&](const auto& p) {
    EagerTensorPtr y = p[0];
    for (int i = 0; i < 100; ++i) y = eager.Apply("Mul", {y, p[1]});
    return y;
  });
  const double power = std::pow(1.01, 100);
  EXPECT_THAT(g[0], Each(FloatNear(static_cast<float>(power), 1e-3f)));
  ASSERT_EQ(g[1].size(), 1u);  // of the broadcast factor: 100 f^99 times the sum of x
  EXPECT_NEAR(g[1][0], 100 * std::pow(1.01, 99) * 1.0, 0.05);
}

TEST_P(Tapes, ReadsWhatRandomOperatorsDrew) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put(Eager::Floats({64}, std::vector<float>(64, 1.0f)));
  HostValue yes;
  yes.tensor = Tensor::Scalar<bool>(true);
  const EagerTensorPtr half = eager->HostOperand(Eager::Floats({}, {0.5f})), training = eager->HostOperand(yes);
  std::vector<float> dropped;
  const auto g = GradientsOf(eager, {x}, [&](const auto& p) {
    const EagerTensorPtr y = eager.Apply("Dropout", {p[0], half, training});
    dropped = eager.Get(y);
    return y;
  });
  EXPECT_EQ(g[0], dropped);  // each element is 0 or 2, as its factor is
}

TEST_P(Tapes, NestedTapesGiveSecondDerivatives) {
  const Eager eager(GetParam());
  const EagerTensorPtr x = eager.Put({2}, {2, 3});
  auto outer = std::make_shared<EagerTape>(eager.get());
  ASSERT_TRUE(outer->Watch(x).ok());
  outer->Start();
  auto inner = std::make_shared<EagerTape>(eager.get());
  ASSERT_TRUE(inner->Watch(x).ok());
  inner->Start();
  const EagerTensorPtr y = eager.Apply("Mul", {eager.Apply("Mul", {x, x}), x});
  inner->Stop();
  auto first = inner->Gradient(y, {&x, 1});
  ASSERT_TRUE(first.ok()) << FormatError(first.status());
  outer->Stop();
  auto second = outer->Gradient((*first)[0], {&x, 1});
  ASSERT_TRUE(second.ok()) << FormatError(second.status());
  EXPECT_THAT(eager.Get((*first)[0]), ElementsAre(FloatEq(12), FloatEq(27)));
  EXPECT_THAT(eager.Get((*second)[0]), ElementsAre(FloatEq(12), FloatEq(18)));
}

TEST_P(Tapes, DifferentiatesOperatorsWhoseGradientIsThatOfAReplacement) {
  const Eager eager(GetParam());
  const HostValue x = Eager::Waves({2, 3, 4}), scale = Eager::Waves({4}, 2);
  const EagerTensorPtr a = eager.Put(x), s = eager.Put(scale);
  const auto g = GradientsOf(eager, {a, s}, [&](const auto& p) { return eager.Apply("LayerNormalization", {p[0], p[1]}); });
  EXPECT_EQ(g[0].size(), 24u);
  ASSERT_EQ(g[1].size(), 4u);
  // By the scale: the sum of the normalized elements.
  const std::vector<float> ones(4, 1.0f);
  const std::vector<float> n = eager.Get(eager.Apply("LayerNormalization", {a, eager.Put({4}, ones)}));
  for (size_t c = 0; c < 4; ++c) {
    float sum = 0;
    for (size_t r = 0; r < 6; ++r) sum += n[4 * r + c];
    EXPECT_NEAR(g[1][c], sum, 1e-3);
  }
}

TEST(EagerTape, WeightsOfTheTargetAndSourcesThatItDoesNotDependOn) {
  const Eager eager("cpu0");
  const EagerTensorPtr x = eager.Put({2}, {2, 3}), z = eager.Put({2}, {1, 1});
  auto tape = std::make_shared<EagerTape>(eager.get());
  ASSERT_TRUE(tape->Watch(x).ok());
  ASSERT_TRUE(tape->Watch(z).ok());
  tape->Start();
  const EagerTensorPtr factor = eager.Put({2}, {1, 1});
  const EagerTensorPtr y = eager.Apply("Mul", {eager.Apply("Mul", {x, x}), factor});
  const EagerTensorPtr unrelated = eager.Apply("Relu", {eager.Put({1}, {1})});
  tape->Stop();
  eager.Apply("Neg", {y});
  EXPECT_EQ(tape->size(), 2u);
  const EagerTensorPtr sources[] = {x, z, y, factor};
  auto g = tape->Gradient(y, sources, eager.Put({2}, {10, 100}));
  ASSERT_TRUE(g.ok()) << FormatError(g.status());
  EXPECT_THAT(eager.Get((*g)[0]), ElementsAre(40, 600));
  EXPECT_EQ((*g)[1], nullptr);
  EXPECT_THAT(eager.Get((*g)[2]), ElementsAre(10, 100));
  EXPECT_EQ((*g)[3], nullptr);  // not watched: the tape may have missed operators that read it
  EXPECT_THAT(FormatError(tape->Gradient(y, sources, eager.Put({3}, {1, 2, 3})).status()),
              HasSubstr("do not fit the target"));
  EXPECT_EQ((*tape->Gradient(unrelated, {&x, 1}))[0], nullptr);
}

TEST(EagerTape, MissingRulesAndIntegerTargetsAreErrors) {
  const Eager eager("cpu0");
  const EagerTensorPtr x = eager.Put({2, 2}, {2, 1, 1, 3});
  auto tape = std::make_shared<EagerTape>(eager.get());
  ASSERT_TRUE(tape->Watch(x).ok());
  tape->Start();
  const EagerTensorPtr image = eager.Apply("Reshape", {x, eager.Ints({1, 1, 2, 2})}), index = eager.Apply("ArgMax", {x});
  const EagerTensorPtr norm = eager.Apply("LpPool", {image}, With("kernel_shape", Ints{2, 2}));
  tape->Stop();
  EXPECT_THAT(FormatError(tape->Gradient(norm, {&x, 1}).status()), AllOf(HasSubstr("LpPool"), HasSubstr("no gradient")));
  EXPECT_THAT(FormatError(tape->Gradient(index, {&x, 1}).status()), HasSubstr("int64"));
}

TEST(EagerTape, KeepsWhatItsGradientsNeed) {
  const Eager eager("cpu0");
  auto tape = std::make_shared<EagerTape>(eager.get());
  const EagerTensorPtr x = eager.Put({2}, {2, 3});
  ASSERT_TRUE(tape->Watch(x).ok());
  tape->Start();
  EagerTensorPtr y = x;
  for (int i = 0; i < 3; ++i) y = eager.Apply("Mul", {y, y});  // the earlier ones have no handle any more
  tape->Stop();
  auto g = tape->Gradient(y, {&x, 1});
  ASSERT_TRUE(g.ok()) << FormatError(g.status());
  EXPECT_THAT(eager.Get((*g)[0]), ElementsAre(8 * 128, 8 * 2187));
}

}  // namespace
}  // namespace mge
