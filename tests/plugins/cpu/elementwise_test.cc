// SPDX-License-Identifier: Apache-2.0
// Divisions that the CPU backend refuses, and groups that only its chain kernels support.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(Elementwise, DivisionsByPossiblyZeroIntegersAreNotOffered) {
  auto outcome = UnderTest().Offers(OneNode("Div", {Random(DType::kI32, {4}, 1, 5), Random(DType::kI32, {4}, 1, 5)}));
  EXPECT_TRUE(outcome.candidates.empty());
  ASSERT_FALSE(outcome.refusals.empty());
  EXPECT_NE(outcome.refusals[0].find("divisor"), std::string::npos);
}

TEST(Elementwise, QuotientsAndRemaindersOfIntegersAreExact) {
  const std::tuple<DType, double, double> kRanges[] = {{DType::kI8, -128, 127},
                                                       {DType::kU8, 0, 255},
                                                       {DType::kI16, -32768, 32767},
                                                       {DType::kU16, 0, 65535},
                                                       {DType::kI32, -2147483648.0, 2147483647.0},
                                                       {DType::kU32, 0, 4294967295.0},
                                                       {DType::kI64, -9e15, 9e15}};
  constexpr int64_t kCount = 3001;
  OnEveryMachine([&](Backend& backend) {
    for (const auto& [t, low, high] : kRanges) {
      for (double limit : {7.0, 130.0, 40000.0, 3e9}) {
        // Multiples of the divisors, and their neighbours, are where a rounded quotient would be wrong.
        const double most = std::min(limit, high);
        Tensor a = Random(t, {kCount}, low, high), b = Random(t, {kCount}, 1, most, 5);
        std::vector<double> near;
        for (int64_t i = 0; i < kCount; ++i) {
          const double divisor = At(b, i), whole = std::trunc(At(a, i) / divisor) * divisor;
          near.push_back(std::clamp(whole + static_cast<double>(i % 3 - 1), low, high));
        }
        for (const Tensor& x : {a, Fill(t, {kCount}, near)}) {
          for (const char* op : {"Div", "Mod"}) {
            backend.Check(OneNode(op, {x, b}, {}, {1}), Exactly);
            backend.Check(OneNode(op, {x, Fill(t, {}, {std::floor(most)})}, {}, {1}), Exactly);
          }
        }
      }
    }
  });
}

TEST(Elementwise, AChainMayReadAValueTwice) {
  Case c;
  c.name = "chain";
  auto in = [&](const char* name, Tensor t) {
    ValueId v = c.graph.AddInput(name, {t.dtype(), true, t.shape(), {}});
    c.inputs.push_back(std::move(t));
    return v;
  };
  auto node = [&](const char* op, std::vector<ValueId> inputs) {
    Node n;
    n.op = op;
    n.name = op;
    n.version = 24;
    n.inputs = std::move(inputs);
    ValueId out = c.graph.AddTemporary("v");
    n.outputs = {out};
    c.graph.AddNode(std::move(n));
    return out;
  };
  for (DType t : {DType::kF32, DType::kF16}) {
    c = Case();
    c.name = "chain";
    ValueId x = in("x", Random(t, {2, 3, 5, 70})), s = in("s", Random(t, {3, 1, 1}, 0.5, 2, 2)),
            k = in("t", Random(t, {}, 0, 1, 3));
    ValueId b = node("Add", {node("Mul", {x, s}), k});
    ValueId f = node("Add", {node("Mul", {node("Sigmoid", {b}), b}), node("Relu", {x})});
    c.graph.outputs() = {f};
    OnEveryMachine([&](Backend& backend) {
      EXPECT_THAT(backend.Claims(c), ::testing::Contains("elementwise_chain: Mul Add Sigmoid Mul Relu Add"));
      backend.Check(c, Roughly);
    });
  }
}

TEST(Elementwise, AGroupMayHaveSeveralOutputs) {
  Case c = OneNode("Exp", {Random(DType::kF32, {1000})});
  ValueId first = c.graph.outputs()[0];
  Then(c, "Neg");
  Then(c, "Abs");
  c.graph.outputs().insert(c.graph.outputs().begin(), first);
  OnEveryMachine([&](Backend& backend) { backend.Check(c, Closely); });
}

// A chain must round each result to its type before the next operator reads it, as single nodes do.
TEST(Elementwise, AChainOfSixteenBitFloatsGivesTheBitsOfItsNodes) {
  for (DType t : {DType::kF16, DType::kBF16}) {
    for (int64_t n : {1, 5, 37, 3000}) {
      Case c = OneNode("Mul", {Random(t, {n}, -4, 4, 1), Random(t, {n}, -4, 4, 2)});
      ValueId product = c.graph.outputs()[0];
      Then(c, "Add", {Random(t, {n}, -4, 4, 3)}, {}, false);
      Then(c, "Relu");
      Then(c, "Div", {Random(t, {1}, 1, 3, 4)});
      Then(c, "Floor");
      Then(c, "Sub", {Random(t, {n}, -4, 4, 5)}, {}, false);
      c.graph.outputs().push_back(product);
      OnEveryMachine([&](Backend& backend) {
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("elementwise_chain: Mul Add Relu Div Floor Sub"));
        backend.Check(c, Exactly);
      });
    }
    Case cast = OneNode("Mul", {Random(t, {2000}, -90, 90, 1), Random(t, {2000}, -90, 90, 2)});
    Then(cast, "Cast", {}, With({{"to", int64_t{7}}}));
    OnEveryMachine([&](Backend& backend) { backend.Check(cast, Exactly); });
  }
}

// Compares with results in long double, in units in the last place (ULP).
TEST(Elementwise, FunctionsAreWithinFourUnitsInTheLastPlaceForEveryArgument) {
  using Real = long double;
  struct Function {
    const char* op;
    Real (*f)(Real);
    double low, high;
  };
  const Function kFunctions[] = {
      {"Sin", [](Real x) { return std::sin(x); }, -20, 20},
      {"Sin", [](Real x) { return std::sin(x); }, -3e6, 3e6},
      {"Sin", [](Real x) { return std::sin(x); }, -1e30, 1e30},
      {"Cos", [](Real x) { return std::cos(x); }, -20, 20},
      {"Cos", [](Real x) { return std::cos(x); }, -3e6, 3e6},
      {"Tan", [](Real x) { return std::tan(x); }, -20, 20},
      {"Tan", [](Real x) { return std::tan(x); }, -3e6, 3e6},
      {"Asin", [](Real x) { return std::asin(x); }, -1, 1},
      {"Acos", [](Real x) { return std::acos(x); }, -1, 1},
      {"Atan", [](Real x) { return std::atan(x); }, -4, 4},
      {"Atan", [](Real x) { return std::atan(x); }, -1e6, 1e6},
      {"Sinh", [](Real x) { return std::sinh(x); }, -2, 2},
      {"Sinh", [](Real x) { return std::sinh(x); }, -89, 89},
      {"Cosh", [](Real x) { return std::cosh(x); }, -89, 89},
      {"Asinh", [](Real x) { return std::asinh(x); }, -2, 2},
      {"Asinh", [](Real x) { return std::asinh(x); }, -1e20, 1e20},
      {"Acosh", [](Real x) { return std::acosh(x); }, 1, 3},
      {"Acosh", [](Real x) { return std::acosh(x); }, 1, 1e20},
      {"Atanh", [](Real x) { return std::atanh(x); }, -1, 1},
      {"Exp", [](Real x) { return std::exp(x); }, -80, 80},
      {"Log", [](Real x) { return std::log(x); }, 1e-30, 1e5},
      {"Log", [](Real x) { return std::log(x); }, 0.5, 2},
      {"Tanh", [](Real x) { return std::tanh(x); }, -9, 9},
      {"Sigmoid", [](Real x) { return 1 / (1 + std::exp(-x)); }, -80, 80},
      {"Softplus", [](Real x) { return std::max<Real>(x, 0) + std::log1p(std::exp(-std::abs(x))); }, -80, 80},
  };
  constexpr int64_t kCount = 20000;
  OnEveryMachine([&](Backend& backend) {
    for (const Function& f : kFunctions) {
      for (DType t : {DType::kF32, DType::kF64}) {
        Tensor x = Random(t, {kCount}, f.low, f.high);
        std::vector<double> exact;
        for (int64_t i = 0; i < kCount; ++i) exact.push_back(static_cast<double>(f.f(At(x, i))));
        std::vector<Tensor> expected = {Fill(t, {kCount}, exact)};
        // 4.5 units of at most 2^-23 or 2^-52 of the value, half a unit of it for the rounding of the expected value.
        backend.Check(
            OneNode(f.op, {x}),
            [](DType type) {
              return Tolerance{1e-44, 4.5 * (type == DType::kF32 ? 0x1p-23 : 0x1p-52)};
            },
            &expected);
      }
    }
  });
}

TEST(Elementwise, SpecialNumbersOfTrigonometricAndHyperbolicFunctionsKeepTheirMeaning) {
  const double kInf = INFINITY, kNaN = NAN;
  OnEveryMachine([&](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
      Tensor x = Fill(t, {13}, {0.0, -0.0, kInf, -kInf, kNaN, 1e-40, -1e-40, 100, -100, 6e4, -6e4, 1, -1});
      for (const char* op : {"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Exp",
                             "Log", "Tanh", "Sigmoid", "Softplus"}) {
        backend.Check(OneNode(op, {x}), Roughly);
      }
    }
  });
}

TEST(Elementwise, AChainOfTwoHundredOperatorsIsOneGroup) {
  const char* kOps[] = {"Tanh", "Sigmoid", "Relu", "Abs", "Sqrt"};
  Case c = OneNode(kOps[0], {Random(DType::kF32, {16}, 0.1, 1)});
  for (int i = 1; i < 200; ++i) Then(c, kOps[i % 5]);
  auto claims = UnderTest().Claims(c);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(std::count(claims[0].begin(), claims[0].end(), ' '), 200);
  UnderTest().Check(c, Roughly);
}

}  // namespace
}  // namespace mge::testing
