// SPDX-License-Identifier: Apache-2.0
// Elementwise operators: types, shapes, special numbers, accuracy, chains.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/chain.h"
#include "under_test.h"

namespace mge::testing {
namespace {

TEST(Elementwise, ReluOfEveryTypeAndSize) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kI8, DType::kI64}) {
      for (int64_t n : {0, 1, 3, 16, 17, 1000, 40000}) backend.Check(OneNode("Relu", {Random(t, {n})}), Exactly);
    }
  });
}

TEST(Elementwise, AddBroadcasts) {
  OnEveryMachine([](Backend& backend) {
    const std::pair<Shape, Shape> kShapes[] = {{{}, {}},
                                               {{5}, {}},
                                               {{}, {7}},
                                               {{3, 1}, {1, 5}},
                                               {{2, 3, 4, 5}, {3, 1, 1}},
                                               {{2, 3, 4, 5}, {1, 3, 1, 1}},
                                               {{2, 64, 8, 8}, {1, 64, 1, 1}},
                                               {{2, 3, 300}, {300}},
                                               {{2, 3, 300}, {2, 3, 1}},
                                               {{4, 1, 6}, {5, 1}},
                                               {{0, 3}, {1, 3}},
                                               {{1000, 30}, {30}},
                                               {{50, 7, 40}, {50, 1, 40}},
                                               {{2, 3, 4, 5}, {2, 3, 4, 5}}};
    for (const auto& [a, b] : kShapes) {
      for (DType t : {DType::kF32, DType::kF16, DType::kI32}) {
        for (std::vector<int> constants : {std::vector<int>{}, {1}}) {
          backend.Check(OneNode("Add", {Random(t, a), Random(t, b, -3, 3, 2)}, {}, constants), Closely);
        }
      }
    }
  });
}

TEST(Elementwise, UnaryFloatingOperatorsAgreeWithTheReference) {
  struct Op {
    const char* name;
    double low, high;
  };
  const Op kOps[] = {
      {"Abs", -5, 5},    {"Neg", -5, 5},       {"Sign", -2, 2},        {"Ceil", -5, 5},        {"Floor", -5, 5},
      {"Round", -5, 5},  {"Sqrt", 0, 9},       {"Reciprocal", 0.1, 4}, {"Exp", -20, 20},       {"Log", 0.001, 50},
      {"Tanh", -6, 6},   {"Sigmoid", -20, 20}, {"Erf", -5, 5},         {"Softplus", -20, 20},  {"Softsign", -5, 5},
      {"Gelu", -6, 6},   {"Mish", -6, 6},      {"HardSwish", -5, 5},   {"HardSigmoid", -5, 5}, {"Sin", -9, 9},
      {"Cos", -9, 9},    {"Tan", -1.4, 1.4},   {"Asin", -1, 1},        {"Acos", -1, 1},        {"Atan", -9, 9},
      {"Sinh", -5, 5},   {"Cosh", -5, 5},      {"Asinh", -9, 9},       {"Acosh", 1, 9},        {"Atanh", -0.9, 0.9},
      {"Elu", -5, 5},    {"Celu", -5, 5},      {"Selu", -5, 5},        {"LeakyRelu", -5, 5},   {"ThresholdedRelu", -3, 3},
      {"Shrink", -2, 2}, {"IsNaN", -1, 1},     {"IsInf", -1, 1},       {"Identity", -1, 1},    {"Dropout", -1, 1},
      {"Swish", -20, 20}};
  OnEveryMachine([&](Backend& backend) {
    for (const Op& op : kOps) {
      for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
        backend.Check(OneNode(op.name, {Random(t, {3, 41}, op.low, op.high)}), Roughly);
      }
    }
  });
}

TEST(Elementwise, SpecialNumbersKeepTheirMeaning) {
  const double kInf = INFINITY, kNaN = NAN;
  Tensor x = Fill(DType::kF32, {12}, {0.0, -0.0, kInf, -kInf, kNaN, 1e-40, -1e-40, 100, -100, 3e38, -3e38, 1});
  OnEveryMachine([&](Backend& backend) {
    for (const char* op : {"Exp", "Log", "Tanh", "Sigmoid", "Erf", "Softplus", "Relu", "Abs", "Neg", "Floor", "Ceil",
                           "Round", "Sqrt", "IsNaN", "IsInf", "LeakyRelu", "Sign", "Elu"}) {
      backend.Check(OneNode(op, {x}), Roughly);
    }
    Tensor y = Fill(DType::kF32, {12}, {1, 2, 3, 4, 5, kNaN, 6, kInf, -kInf, 7, 8, kNaN});
    for (const char* op : {"Max", "Min", "Add", "Mul", "Equal", "Less", "GreaterOrEqual"})
      backend.Check(OneNode(op, {x, y}), Closely);
  });
}

TEST(Elementwise, BinaryOperatorsOfEveryType) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"}) {
      for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kI16, DType::kI32, DType::kI64,
                      DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
        backend.Check(OneNode(op, {Random(t, {5, 33}, -9, 9), Random(t, {5, 33}, -9, 9, 7)}), Closely);
        backend.Check(OneNode(op, {Random(t, {5, 33}, -9, 9), Random(t, {}, -9, 9, 7)}), Closely);
        backend.Check(OneNode(op, {Random(t, {1}, -9, 9), Random(t, {5, 33}, -9, 9, 7)}), Closely);
      }
    }
    for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
      backend.Check(OneNode("Div", {Random(t, {70}), Random(t, {70}, 0.5, 3, 5)}), Closely);
      backend.Check(OneNode("Mod", {Random(t, {70}), Random(t, {70}, 0.5, 3, 5)}, With({{"fmod", int64_t{1}}})), Closely);
      backend.Check(OneNode("Pow", {Random(t, {70}, 0.1, 4), Random(t, {70}, -2, 2, 5)}), Roughly);
      backend.Check(OneNode("PRelu", {Random(t, {2, 3, 4, 4}), Random(t, {3, 1, 1})}), Closely);
    }
    for (DType t : {DType::kI32, DType::kI64, DType::kU8}) {
      backend.Check(OneNode("Div", {Random(t, {70}, -50, 50), Random(t, {70}, 1, 7, 5)}, {}, {1}), Exactly);
      backend.Check(OneNode("Mod", {Random(t, {70}, -50, 50), Random(t, {70}, 1, 7, 5)}, {}, {1}), Exactly);
    }
    for (const auto& [t, lowest] : {std::pair(DType::kI8, -128.0),
                                    {DType::kI16, -32768.0},
                                    {DType::kI32, -2147483648.0},
                                    {DType::kI64, -9223372036854775808.0}}) {
      const Tensor a = Fill(t, {6}, {lowest, lowest, -7, 7, 7, -7}), b = Fill(t, {6}, {-1, 2, -1, -1, -3, 3});
      for (const char* op : {"Div", "Mod"}) {
        backend.Check(OneNode(op, {a, b}, {}, {1}), Exactly);
        backend.Check(OneNode(op, {a, Fill(t, {}, {-1})}, {}, {1}), Exactly);
      }
    }
    for (const char* op : {"And", "Or", "Xor"}) {
      backend.Check(OneNode(op, {Random(DType::kBool, {70}), Random(DType::kBool, {70}, 0, 1, 5)}), Exactly);
    }
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      backend.Check(OneNode(op, {Random(DType::kI32, {70}, -999, 999), Random(DType::kI32, {70}, -999, 999, 5)}), Exactly);
    }
    backend.Check(OneNode("BitShift", {Random(DType::kU32, {70}, 0, 999), Random(DType::kU32, {70}, 0, 40, 5)},
                          With({{"direction", std::string("LEFT")}})),
                  Exactly);
    backend.Check(OneNode("Not", {Random(DType::kBool, {70})}), Exactly);
    backend.Check(OneNode("Pow", {Random(DType::kI32, {70}, -9, 9), Fill(DType::kI32, {}, {3})}, {}, {1}), Exactly);
    for (double e : {2.0, 3.0, 0.5, -1.0, 1.7}) {
      backend.Check(OneNode("Pow", {Random(DType::kF32, {70}, 0.1, 4), Fill(DType::kF32, {}, {e})}, {}, {1}), Roughly);
    }
  });
}

TEST(Elementwise, PowersOfTwoTypesOfEverySize) {
  OnEveryMachine([&](Backend& backend) {
    auto check = [&](DType base, DType exponent) {
      for (int64_t n : {5, 513, 2000}) {
        backend.Check(OneNode("Pow", {Random(base, {n}, 1, 4), Random(exponent, {n}, 0, 3, 5)}), Roughly);
      }
    };
    for (DType real : {DType::kF32, DType::kF16, DType::kF64}) {
      for (DType integer : {DType::kI8, DType::kU16, DType::kI32, DType::kI64}) {
        check(real, integer);
        check(integer, real);
      }
      check(real, DType::kF32);
    }
  });
}

TEST(Elementwise, VariadicOperatorsBroadcast) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
      for (DType t : {DType::kF32, DType::kF16, DType::kF64}) {
        backend.Check(OneNode(op, {Random(t, {3, 5})}), Closely);
        backend.Check(OneNode(op, {Random(t, {3, 5}), Random(t, {5}, -1, 1, 3), Random(t, {3, 1}, -1, 1, 4)}), Closely);
        backend.Check(OneNode(op, {Random(t, {}), Random(t, {1}, -1, 1, 3), Random(t, {4, 300}, -1, 1, 4)}), Closely);
      }
    }
  });
}

TEST(Elementwise, ShortFloatsAreSummedAsFloatAndRoundedOnce) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF16, DType::kBF16}) {
      const Tensor large = Random(t, {3, 70}, 20000, 30000), more = Random(t, {70}, 20000, 30000, 5);
      backend.Check(OneNode("Mean", {large, more, more, large}), Exactly);
      backend.Check(OneNode("Mean", {more, large}), Exactly);
      backend.Check(OneNode("Sum", {large, more, Random(t, {3, 1}, -60000, -50000)}), Exactly);
    }
  });
}

TEST(Elementwise, WhereAndClip) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF16, DType::kI64, DType::kU8, DType::kBool}) {
      backend.Check(OneNode("Where", {Random(DType::kBool, {3, 1, 40}), Random(t, {1, 5, 40}), Random(t, {}, -2, 2, 9)}),
                    Exactly);
      backend.Check(OneNode("Where", {Random(DType::kBool, {200}), Random(t, {200}), Random(t, {200}, -2, 2, 9)}), Exactly);
    }
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kI8}) {
      Tensor low = Fill(t, {}, {-1}), high = Fill(t, {}, {1});
      backend.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4), low, high}, {}, {1, 2}), Exactly);
      backend.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4), Tensor(), high}), Exactly);
      backend.Check(OneNode("Clip", {Random(t, {5, 60}, -4, 4)}), Exactly);
    }
  });
}

TEST(Elementwise, CastBetweenAllTypes) {
  const DType kTypes[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16, DType::kI32,
                          DType::kI64, DType::kU8,  DType::kU16, DType::kU32,  DType::kU64, DType::kBool};
  OnEveryMachine([&](Backend& backend) {
    for (DType from : kTypes) {
      for (DType to : kTypes) {
        backend.Check(OneNode("Cast", {Random(from, {100}, from == DType::kBool ? 0 : -120, 120)},
                              With({{"to", static_cast<int64_t>(to)}})),
                      Exactly);
      }
    }
    Tensor odd = Fill(DType::kF64, {6}, {1e300, -1e300, NAN, INFINITY, 1.0009765625000002, 65519.999});
    for (DType to : kTypes) backend.Check(OneNode("Cast", {odd}, With({{"to", static_cast<int64_t>(to)}})), Exactly);
  });
}

TEST(Elementwise, ChainsAreClaimedAndComputed) {
  OnEveryMachine([](Backend& backend) {
    Case c = OneNode("Mul", {Random(DType::kF32, {2, 3, 5, 70}), Random(DType::kF32, {3, 1, 1}, 0.5, 2, 2)});
    Then(c, "Sigmoid");
    Then(c, "Add", {Random(DType::kF32, {70}, -1, 1, 3)}, {}, false);
    Then(c, "Max", {Fill(DType::kF32, {}, {0.25})});
    Then(c, "LeakyRelu", {}, With({{"alpha", 0.5f}}));
    Then(c, "Gelu", {}, With({{"approximate", std::string("tanh")}}));
    EXPECT_THAT(backend.Claims(c), ::testing::Contains("elementwise_chain: Mul Sigmoid Add Max LeakyRelu Gelu"));
    backend.Check(c, Roughly);
    Case dense = OneNode("Add", {Random(DType::kF32, {1000}), Random(DType::kF32, {1000}, -1, 1, 2)});
    Then(dense, "Relu");
    backend.Check(dense, Closely);
  });
}

// Compares with results in double, in units in the last place (ULP).
TEST(Elementwise, FunctionsOfFloatAreWithinFourUnitsInTheLastPlace) {
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
  OnEveryMachine([&](Backend& backend) {
    for (const Function& f : kFunctions) {
      Tensor x = Random(DType::kF32, {200000}, f.low, f.high);
      std::vector<double> exact;
      for (int64_t i = 0; i < x.elements(); ++i) exact.push_back(f.f(At(x, i)));
      Tensor y = Fill(DType::kF32, {200000}, exact);
      // The limit is 4.5 units of at most 2^-23 of the value, half a unit of it for the rounding of the expected value.
      std::vector<Tensor> expected = {y};
      backend.Check(
          OneNode(f.op, {x}),
          [](DType) {
            return Tolerance{1e-44, 4.5 * 0x1p-23};
          },
          &expected);
    }
  });
}

}  // namespace
}  // namespace mge::testing
