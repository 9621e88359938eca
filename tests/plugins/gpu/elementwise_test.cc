// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/emulated_backend.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(GpuElementwise, ReluOfEveryTypeAndSize) {
  ForEachMachine([](Backend& gpu) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI8, DType::kI64}) {
      for (int64_t n : {0, 1, 3, 16, 17, 1000, 40000}) gpu.Check(OneNode("Relu", {Random(t, {n})}), Exactly);
    }
  });
}

TEST(GpuElementwise, AddBroadcasts) {
  ForEachMachine([](Backend& gpu) {
    const std::pair<Shape, Shape> kShapes[] = {
        {{}, {}}, {{5}, {}}, {{}, {7}}, {{3, 1}, {1, 5}}, {{2, 3, 4, 5}, {3, 1, 1}}, {{2, 3, 4, 5}, {1, 3, 1, 1}},
        {{2, 64, 8, 8}, {1, 64, 1, 1}}, {{2, 3, 300}, {300}}, {{2, 3, 300}, {2, 3, 1}}, {{4, 1, 6}, {5, 1}},
        {{0, 3}, {1, 3}}, {{1000, 30}, {30}}, {{50, 7, 40}, {50, 1, 40}}, {{2, 3, 4, 5}, {2, 3, 4, 5}}};
    for (const auto& [a, b] : kShapes) {
      for (DType t : {DType::kF32, DType::kF16, DType::kI32}) {
        for (std::vector<int> constants : {std::vector<int>{}, {1}}) {
          gpu.Check(OneNode("Add", {Random(t, a), Random(t, b, -3, 3, 2)}, {}, constants), Closely);
        }
      }
    }
  });
}

TEST(GpuElementwise, UnaryFloatingOperatorsAgreeWithTheReference) {
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
  ForEachMachine([&](Backend& gpu) {
    for (const Op& op : kOps) {
      for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        gpu.Check(OneNode(op.name, {Random(t, {3, 41}, op.low, op.high)}), Roughly);
      }
    }
  });
}

TEST(GpuElementwise, SpecialNumbersKeepTheirMeaning) {
  const double kInf = INFINITY, kNaN = NAN;
  Tensor x = Fill(DType::kF32, {12}, {0.0, -0.0, kInf, -kInf, kNaN, 1e-40, -1e-40, 100, -100, 3e38, -3e38, 1});
  ForEachMachine([&](Backend& gpu) {
    for (const char* op : {"Exp", "Log", "Tanh", "Sigmoid", "Erf", "Softplus", "Relu", "Abs", "Neg", "Floor", "Ceil",
                           "Round", "Sqrt", "IsNaN", "IsInf", "LeakyRelu", "Sign", "Elu"}) {
      gpu.Check(OneNode(op, {x}), Roughly);
    }
    Tensor y = Fill(DType::kF32, {12}, {1, 2, 3, 4, 5, kNaN, 6, kInf, -kInf, 7, 8, kNaN});
    for (const char* op : {"Max", "Min", "Add", "Mul", "Equal", "Less", "GreaterOrEqual"})
      gpu.Check(OneNode(op, {x, y}), Closely);
  });
}

TEST(GpuElementwise, BinaryOperatorsOfEveryType) {
  ForEachMachine([](Backend& gpu) {
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}) {
      for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                      DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
        gpu.Check(OneNode(op, {Random(t, {5, 33}, -9, 9), Random(t, {5, 33}, -9, 9, 7)}), Closely);
        gpu.Check(OneNode(op, {Random(t, {5, 33}, -9, 9), Random(t, {}, -9, 9, 7)}), Closely);
        gpu.Check(OneNode(op, {Random(t, {1}, -9, 9), Random(t, {5, 33}, -9, 9, 7)}), Closely);
      }
    }
    for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
      gpu.Check(OneNode("Div", {Random(t, {70}), Random(t, {70}, 0.5, 3, 5)}), Closely);
      gpu.Check(OneNode("Mod", {Random(t, {70}), Random(t, {70}, 0.5, 3, 5)}, With("fmod", int64_t{1})), Closely);
      gpu.Check(OneNode("Pow", {Random(t, {70}, 0.1, 4), Random(t, {70}, -2, 2, 5)}), Roughly);
      gpu.Check(OneNode("PRelu", {Random(t, {2, 3, 4, 4}), Random(t, {3, 1, 1})}), Closely);
    }
    for (DType t : {DType::kI32, DType::kI64, DType::kU8}) {
      gpu.Check(OneNode("Div", {Random(t, {70}, -50, 50), Random(t, {70}, 1, 7, 5)}, {}, {1}), Exactly);
      gpu.Check(OneNode("Mod", {Random(t, {70}, -50, 50), Random(t, {70}, 1, 7, 5)}, {}, {1}), Exactly);
    }
    for (const char* op : {"And", "Or", "Xor"}) {
      gpu.Check(OneNode(op, {Random(DType::kBool, {70}), Random(DType::kBool, {70}, 0, 1, 5)}), Exactly);
    }
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      gpu.Check(OneNode(op, {Random(DType::kI32, {70}, -999, 999), Random(DType::kI32, {70}, -999, 999, 5)}), Exactly);
    }
    gpu.Check(OneNode("BitShift", {Random(DType::kU32, {70}, 0, 999), Random(DType::kU32, {70}, 0, 40, 5)},
                      With("direction", std::string("LEFT"))), Exactly);
    gpu.Check(OneNode("Not", {Random(DType::kBool, {70})}), Exactly);
    gpu.Check(OneNode("Pow", {Random(DType::kI32, {70}, -9, 9), Fill(DType::kI32, {}, {3})}, {}, {1}), Exactly);
    for (double e : {2.0, 3.0, 0.5, -1.0, 1.7}) {
      gpu.Check(OneNode("Pow", {Random(DType::kF32, {70}, 0.1, 4), Fill(DType::kF32, {}, {e})}, {}, {1}), Roughly);
    }
  });
}

TEST(GpuElementwise, AnIntegerDividedByZeroIsTheRunsError) {
  for (const char* op : {"Div", "Mod"}) {
    std::vector<Tensor> never = {Fill(DType::kI32, {3}, {0, 0, 0})};
    auto outcome = Emulated().Check(OneNode(op, {Fill(DType::kI32, {3}, {1, 2, 3}), Fill(DType::kI32, {3}, {1, 0, 1})}),
                                    Exactly, &never);
    ASSERT_FALSE(outcome.codes.empty());
    EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
    EXPECT_THAT(outcome.errors[0], ::testing::HasSubstr("division of 2 by 0"));
  }
}

TEST(GpuElementwise, VariadicOperatorsBroadcast) {
  ForEachMachine([](Backend& gpu) {
    for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
      for (DType t : {DType::kF32, DType::kF16, DType::kF64}) {
        gpu.Check(OneNode(op, {Random(t, {3, 5})}), Closely);
        gpu.Check(OneNode(op, {Random(t, {3, 5}), Random(t, {5}, -1, 1, 3), Random(t, {3, 1}, -1, 1, 4)}), Closely);
        gpu.Check(OneNode(op, {Random(t, {}), Random(t, {1}, -1, 1, 3), Random(t, {4, 300}, -1, 1, 4)}), Closely);
      }
    }
  });
}

TEST(GpuElementwise, WhereAndClip) {
  ForEachMachine([](Backend& gpu) {
    for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kBool}) {
      gpu.Check(OneNode("Where", {Random(DType::kBool, {3, 1, 40}), Random(t, {1, 5, 40}), Random(t, {}, -2, 2, 9)}),
                Exactly);
      gpu.Check(OneNode("Where", {Random(DType::kBool, {200}), Random(t, {200}), Random(t, {200}, -2, 2, 9)}), Exactly);
    }
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kI8}) {
      Tensor low = Fill(t, {}, {-1}), high = Fill(t, {}, {1});
      gpu.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4), low, high}, {}, {1, 2}), Exactly);
      gpu.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4), Tensor(), high}), Exactly);
      gpu.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4)}), Exactly);
    }
  });
}

TEST(GpuElementwise, CastBetweenAllTypes) {
  const DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kI16, DType::kI32,
                          DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64, DType::kBool};
  ForEachMachine([&](Backend& gpu) {
    for (DType from : kTypes) {
      for (DType to : kTypes) {
        gpu.Check(OneNode("Cast", {Random(from, {100}, from == DType::kBool ? 0 : -120, 120)},
                          With("to", static_cast<int64_t>(to))), Exactly);
      }
    }
    Tensor odd = Fill(DType::kF64, {6}, {1e300, -1e300, NAN, INFINITY, 1.0009765625000002, 65519.999});
    for (DType to : kTypes) gpu.Check(OneNode("Cast", {odd}, With("to", static_cast<int64_t>(to))), Exactly);
  });
}

TEST(GpuElementwise, ChainsAreClaimedAndComputedInOnePass) {
  ForEachMachine([](Backend& gpu) {
    Case c = OneNode("Mul", {Random(DType::kF32, {2, 3, 5, 70}), Random(DType::kF32, {3, 1, 1}, 0.5, 2, 2)});
    Then(c, "Sigmoid");
    Then(c, "Add", {Random(DType::kF32, {70}, -1, 1, 3)}, {}, false);
    Then(c, "Max", {Fill(DType::kF32, {}, {0.25})});
    Then(c, "LeakyRelu", {}, With("alpha", 0.5f));
    Then(c, "Gelu", {}, With("approximate", std::string("tanh")));
    EXPECT_THAT(gpu.Claims(c), ::testing::Contains("elementwise_chain: Mul Sigmoid Add Max LeakyRelu Gelu"));
    EXPECT_THAT(gpu.Check(c, Roughly).candidates, ::testing::ElementsAre("gpu.chain"));
    Case dense = OneNode("Add", {Random(DType::kF32, {1000}), Random(DType::kF32, {1000}, -1, 1, 2)});
    Then(dense, "Relu");
    EXPECT_THAT(gpu.Check(dense, Closely).candidates, ::testing::ElementsAre("gpu.chain"));
  });
}

TEST(GpuElementwise, LongChainsAreCutWhereAKernelEnds) {
  Case c = OneNode("Tanh", {Random(DType::kF32, {16}, 0.1, 1)});
  for (int i = 1; i < 70; ++i) Then(c, i % 2 ? "Sigmoid" : "Sqrt");
  auto claims = Emulated().Claims(c);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(std::count(claims[0].begin(), claims[0].end(), ' '), 32);
}

TEST(GpuElementwise, WhatAChainCannotHoldIsNotClaimed) {
  Case other_type = OneNode("Relu", {Random(DType::kF16, {16})});
  Then(other_type, "Exp");
  EXPECT_TRUE(Emulated().Claims(other_type).empty());
  Case read_twice = OneNode("Relu", {Random(DType::kF32, {16})});
  ValueId relu = read_twice.graph.outputs()[0];
  Then(read_twice, "Exp");
  read_twice.graph.outputs().push_back(relu);
  EXPECT_TRUE(Emulated().Claims(read_twice).empty());
}

}  // namespace
}  // namespace mge::testing
