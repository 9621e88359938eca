// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/cpu_backend.h"

namespace mge::testing {
namespace {

Attributes With(std::string name, AttributeValue value) {
  Attributes a;
  a.Set(std::move(name), std::move(value));
  return a;
}

TEST(CpuElementwise, ReluOfEveryTypeAndSize) {
  ForEachIsa([](Backend& cpu) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI8, DType::kI64}) {
      for (int64_t n : {0, 1, 3, 16, 17, 1000, 40000}) cpu.Check(OneNode("Relu", {Random(t, {n})}), Exactly);
    }
  });
}

TEST(CpuElementwise, AddBroadcasts) {
  ForEachIsa([](Backend& cpu) {
    const std::pair<Shape, Shape> kShapes[] = {
        {{}, {}}, {{5}, {}}, {{}, {7}}, {{3, 1}, {1, 5}}, {{2, 3, 4, 5}, {3, 1, 1}}, {{2, 3, 4, 5}, {1, 3, 1, 1}},
        {{2, 64, 8, 8}, {1, 64, 1, 1}}, {{2, 3, 300}, {300}}, {{2, 3, 300}, {2, 3, 1}}, {{4, 1, 6}, {5, 1}},
        {{0, 3}, {1, 3}}, {{1000, 30}, {30}}, {{50, 7, 40}, {50, 1, 40}}, {{2, 3, 4, 5}, {2, 3, 4, 5}}};
    for (const auto& [a, b] : kShapes) {
      for (DType t : {DType::kF32, DType::kF16, DType::kI32}) {
        for (std::vector<int> constants : {std::vector<int>{}, {1}}) {
          cpu.Check(OneNode("Add", {Random(t, a), Random(t, b, -3, 3, 2)}, {}, constants), Closely);
        }
      }
    }
  });
}

TEST(CpuElementwise, UnaryFloatingOperatorsAgreeWithTheReference) {
  struct Op {
    const char* name;
    double low, high;
  };
  const Op kOps[] = {{"Abs", -5, 5}, {"Neg", -5, 5}, {"Sign", -2, 2}, {"Ceil", -5, 5}, {"Floor", -5, 5},
                     {"Round", -5, 5}, {"Sqrt", 0, 9}, {"Reciprocal", 0.1, 4}, {"Exp", -20, 20}, {"Log", 0.001, 50},
                     {"Tanh", -6, 6}, {"Sigmoid", -20, 20}, {"Erf", -5, 5}, {"Softplus", -20, 20}, {"Softsign", -5, 5},
                     {"Gelu", -6, 6}, {"Mish", -6, 6}, {"HardSwish", -5, 5}, {"HardSigmoid", -5, 5}, {"Sin", -9, 9},
                     {"Cos", -9, 9}, {"Tan", -1.4, 1.4}, {"Asin", -1, 1}, {"Acos", -1, 1}, {"Atan", -9, 9},
                     {"Sinh", -5, 5}, {"Cosh", -5, 5}, {"Asinh", -9, 9}, {"Acosh", 1, 9}, {"Atanh", -0.9, 0.9},
                     {"Elu", -5, 5}, {"Celu", -5, 5}, {"Selu", -5, 5}, {"LeakyRelu", -5, 5}, {"ThresholdedRelu", -3, 3},
                     {"Shrink", -2, 2}, {"IsNaN", -1, 1}, {"IsInf", -1, 1}, {"Identity", -1, 1}, {"Dropout", -1, 1}};
  ForEachIsa([&](Backend& cpu) {
    for (const Op& op : kOps) {
      for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        cpu.Check(OneNode(op.name, {Random(t, {3, 41}, op.low, op.high)}), Roughly);
      }
    }
  });
}

TEST(CpuElementwise, SpecialNumbersKeepTheirMeaning) {
  const double kInf = INFINITY, kNaN = NAN;
  Tensor x = Fill(DType::kF32, {12}, {0.0, -0.0, kInf, -kInf, kNaN, 1e-40, -1e-40, 100, -100, 3e38, -3e38, 1});
  ForEachIsa([&](Backend& cpu) {
    for (const char* op : {"Exp", "Log", "Tanh", "Sigmoid", "Erf", "Softplus", "Relu", "Abs", "Neg", "Floor", "Ceil",
                           "Round", "Sqrt", "IsNaN", "IsInf", "LeakyRelu", "Sign", "Elu"}) {
      cpu.Check(OneNode(op, {x}), Roughly);
    }
    Tensor y = Fill(DType::kF32, {12}, {1, 2, 3, 4, 5, kNaN, 6, kInf, -kInf, 7, 8, kNaN});
    for (const char* op : {"Max", "Min", "Add", "Mul", "Equal", "Less", "GreaterOrEqual"}) cpu.Check(OneNode(op, {x, y}), Closely);
  });
}

TEST(CpuElementwise, BinaryOperatorsOfEveryType) {
  ForEachIsa([](Backend& cpu) {
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}) {
      for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                      DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
        cpu.Check(OneNode(op, {Random(t, {5, 33}, -9, 9), Random(t, {5, 33}, -9, 9, 7)}), Closely);
        cpu.Check(OneNode(op, {Random(t, {5, 33}, -9, 9), Random(t, {}, -9, 9, 7)}), Closely);
        cpu.Check(OneNode(op, {Random(t, {1}, -9, 9), Random(t, {5, 33}, -9, 9, 7)}), Closely);
      }
    }
    for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
      cpu.Check(OneNode("Div", {Random(t, {70}), Random(t, {70}, 0.5, 3, 5)}), Closely);
      cpu.Check(OneNode("Mod", {Random(t, {70}), Random(t, {70}, 0.5, 3, 5)}, With("fmod", int64_t{1})), Closely);
      cpu.Check(OneNode("Pow", {Random(t, {70}, 0.1, 4), Random(t, {70}, -2, 2, 5)}), Roughly);
      cpu.Check(OneNode("PRelu", {Random(t, {2, 3, 4, 4}), Random(t, {3, 1, 1})}), Closely);
    }
    for (DType t : {DType::kI32, DType::kI64, DType::kU8}) {
      cpu.Check(OneNode("Div", {Random(t, {70}, -50, 50), Random(t, {70}, 1, 7, 5)}, {}, {1}), Exactly);
      cpu.Check(OneNode("Mod", {Random(t, {70}, -50, 50), Random(t, {70}, 1, 7, 5)}, {}, {1}), Exactly);
    }
    for (const char* op : {"And", "Or", "Xor"}) {
      cpu.Check(OneNode(op, {Random(DType::kBool, {70}), Random(DType::kBool, {70}, 0, 1, 5)}), Exactly);
    }
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      cpu.Check(OneNode(op, {Random(DType::kI32, {70}, -999, 999), Random(DType::kI32, {70}, -999, 999, 5)}), Exactly);
    }
    cpu.Check(OneNode("BitShift", {Random(DType::kU32, {70}, 0, 999), Random(DType::kU32, {70}, 0, 40, 5)},
                      With("direction", std::string("LEFT"))), Exactly);
    cpu.Check(OneNode("Not", {Random(DType::kBool, {70})}), Exactly);
    cpu.Check(OneNode("Pow", {Random(DType::kI32, {70}, -9, 9), Fill(DType::kI32, {}, {3})}, {}, {1}), Exactly);
    for (double e : {2.0, 3.0, 0.5, -1.0, 1.7}) {
      cpu.Check(OneNode("Pow", {Random(DType::kF32, {70}, 0.1, 4), Fill(DType::kF32, {}, {e})}, {}, {1}), Roughly);
    }
  });
}

TEST(CpuElementwise, IntegersAreNotDividedByWhatCouldBeZero) {
  auto outcome = Cpu().Offers(OneNode("Div", {Random(DType::kI32, {4}, 1, 5), Random(DType::kI32, {4}, 1, 5)}));
  EXPECT_TRUE(outcome.candidates.empty());
  ASSERT_FALSE(outcome.refusals.empty());
  EXPECT_NE(outcome.refusals[0].find("divisor"), std::string::npos);
}

TEST(CpuElementwise, VariadicOperatorsBroadcast) {
  ForEachIsa([](Backend& cpu) {
    for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
      for (DType t : {DType::kF32, DType::kF16, DType::kF64}) {
        cpu.Check(OneNode(op, {Random(t, {3, 5})}), Closely);
        cpu.Check(OneNode(op, {Random(t, {3, 5}), Random(t, {5}, -1, 1, 3), Random(t, {3, 1}, -1, 1, 4)}), Closely);
        cpu.Check(OneNode(op, {Random(t, {}), Random(t, {1}, -1, 1, 3), Random(t, {4, 300}, -1, 1, 4)}), Closely);
      }
    }
  });
}

TEST(CpuElementwise, WhereAndClip) {
  ForEachIsa([](Backend& cpu) {
    for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kBool}) {
      cpu.Check(OneNode("Where", {Random(DType::kBool, {3, 1, 40}), Random(t, {1, 5, 40}), Random(t, {}, -2, 2, 9)}), Exactly);
      cpu.Check(OneNode("Where", {Random(DType::kBool, {200}), Random(t, {200}), Random(t, {200}, -2, 2, 9)}), Exactly);
    }
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kI8}) {
      Tensor low = Fill(t, {}, {-1}), high = Fill(t, {}, {1});
      cpu.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4), low, high}, {}, {1, 2}), Exactly);
      cpu.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4), Tensor(), high}), Exactly);
      cpu.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4)}), Exactly);
    }
  });
}

TEST(CpuElementwise, CastBetweenAllTypes) {
  const DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kI16, DType::kI32,
                          DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool};
  ForEachIsa([&](Backend& cpu) {
    for (DType from : kTypes) {
      for (DType to : kTypes) {
        cpu.Check(OneNode("Cast", {Random(from, {100}, from == DType::kBool ? 0 : -120, 120)},
                          With("to", static_cast<int64_t>(to))), Exactly);
      }
    }
    Tensor odd = Fill(DType::kF64, {6}, {1e300, -1e300, NAN, INFINITY, 1.0009765625000002, 65519.999});
    for (DType to : kTypes) cpu.Check(OneNode("Cast", {odd}, With("to", static_cast<int64_t>(to))), Exactly);
  });
}

TEST(CpuElementwise, ChainsAreClaimedAndComputedInOnePass) {
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
    ValueId x = in("x", Random(t, {2, 3, 5, 70})), s = in("s", Random(t, {3, 1, 1}, 0.5, 2, 2)), k = in("t", Random(t, {}, 0, 1, 3));
    ValueId b = node("Add", {node("Mul", {x, s}), k});
    ValueId f = node("Add", {node("Mul", {node("Sigmoid", {b}), b}), node("Relu", {x})});
    c.graph.outputs() = {f};
    ForEachIsa([&](Backend& cpu) {
      EXPECT_THAT(cpu.Claims(c), ::testing::Contains("elementwise_chain: Mul Add Sigmoid Mul Relu Add"));
      cpu.Check(c, Roughly);
    });
  }
}

TEST(CpuElementwise, AGroupMayHaveSeveralOutputs) {
  Case c;
  c.name = "two outputs";
  Tensor x = Random(DType::kF32, {1000});
  ValueId v = c.graph.AddInput("x", {x.dtype(), true, x.shape(), {}});
  c.inputs = {x};
  std::vector<ValueId> outputs;
  for (const char* op : {"Exp", "Neg", "Abs"}) {
    Node n;
    n.op = op;
    n.name = op;
    n.version = 24;
    n.inputs = {v};
    v = c.graph.AddTemporary("v");
    n.outputs = {v};
    c.graph.AddNode(std::move(n));
    outputs.push_back(v);
  }
  c.graph.outputs() = {outputs[0], outputs[2]};
  ForEachIsa([&](Backend& cpu) { cpu.Check(c, Closely); });
}

TEST(CpuElementwise, AChainOfTwoHundredOperatorsIsOneGroup) {
  Case c;
  c.name = "200 operators";
  Tensor x = Random(DType::kF32, {16}, 0.1, 1);
  ValueId v = c.graph.AddInput("x", {x.dtype(), true, x.shape(), {}});
  c.inputs = {x};
  const char* kOps[] = {"Tanh", "Sigmoid", "Relu", "Abs", "Sqrt"};
  for (int i = 0; i < 200; ++i) {
    Node n;
    n.op = kOps[i % 5];
    n.name = "n" + std::to_string(i);
    n.version = 24;
    n.inputs = {v};
    v = c.graph.AddTemporary("v");
    n.outputs = {v};
    c.graph.AddNode(std::move(n));
  }
  c.graph.outputs() = {v};
  auto claims = Cpu().Claims(c);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(std::count(claims[0].begin(), claims[0].end(), ' '), 200);
  Cpu().Check(c, Roughly);
}

// Errors in units in the last place, against double.
TEST(CpuElementwise, FunctionsOfFloatAreWithinFourUnitsInTheLastPlace) {
  struct Function {
    const char* op;
    double (*f)(double);
    double low, high;
  };
  const Function kFunctions[] = {
      {"Exp", [](double x) { return std::exp(x); }, -87, 88},
      {"Log", [](double x) { return std::log(x); }, 1e-30, 1e5},
      {"Log", [](double x) { return std::log(x); }, 0.5, 2},
      {"Tanh", [](double x) { return std::tanh(x); }, -9, 9},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80},
      {"Erf", [](double x) { return std::erf(x); }, -4.5, 4.5},
      {"Softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, -80, 80},
  };
  ForEachIsa([&](Backend& cpu) {
    for (const Function& f : kFunctions) {
      Tensor x = Random(DType::kF32, {200000}, f.low, f.high);
      std::vector<double> exact;
      for (int64_t i = 0; i < x.elements(); ++i) exact.push_back(f.f(At(x, i)));
      Tensor y = Fill(DType::kF32, {200000}, exact);
      // Half a unit for the rounding of the expected value: 4.5 units, at most 2^-23 of the value each.
      std::vector<Tensor> expected = {y};
      cpu.Check(OneNode(f.op, {x}), [](DType) { return Tolerance{1e-44, 4.5 * 0x1p-23}; }, &expected);
    }
  });
}

}  // namespace
}  // namespace mge::testing
