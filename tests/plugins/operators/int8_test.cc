// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of bytes. Sums are exact, so results must equal those of the reference evaluators.
#include "gtest/gtest.h"
#include "tests/plugins/operators/exact.h"
#include "under_test.h"

namespace mge::testing {
namespace {

const std::pair<DType, DType> kTypes[] = {
    {DType::kU8, DType::kI8}, {DType::kI8, DType::kI8}, {DType::kU8, DType::kU8}, {DType::kI8, DType::kU8}};

// The zero points of B: none, 0, one number, or one per column.
enum class Zero { kNone, kSymmetric, kOne, kPerColumn };
const Zero kZeros[] = {Zero::kNone, Zero::kSymmetric, Zero::kOne, Zero::kPerColumn};

Tensor ZeroOf(DType t, Zero zero, int64_t columns, uint64_t seed) {
  if (zero == Zero::kNone) return {};
  if (zero == Zero::kPerColumn) return Bytes(t, {columns}, seed);
  return Number(t, zero == Zero::kOne ? 5 : t == DType::kU8 ? 128 : 0);
}

std::vector<int> ConstantsIf(bool constant, std::vector<int> inputs) { return constant ? inputs : std::vector<int>(); }

// ---------------------------------------------------------------- matrices

Case MatMulInteger(DType a, DType b, Shape x, Shape w, Zero zero, bool constant) {
  const int64_t n = w.back();
  std::vector<Tensor> inputs = {Bytes(a, std::move(x), 1), Bytes(b, std::move(w), 2)};
  if (zero != Zero::kNone) {
    inputs.push_back(Number(a, 3));
    inputs.push_back(ZeroOf(b, zero, n, 3));
  }
  return OneNode("MatMulInteger", std::move(inputs), {},
                 ConstantsIf(constant, zero == Zero::kNone ? std::vector<int>{1} : std::vector<int>{1, 3}));
}

TEST(MatMulInteger, EveryPairOfTypesAndZeroPoints) {
  OnEveryMachine([](Backend& backend) {
    for (auto [a, b] : kTypes) {
      for (Zero zero : kZeros) {
        for (bool constant : {true, false}) {
          CheckOffered(backend, MatMulInteger(a, b, {13, 36}, {36, 50}, zero, constant));
          CheckOffered(backend, MatMulInteger(a, b, {7, 19}, {19, 16}, zero, constant));
        }
      }
    }
  });
}

TEST(MatMulInteger, ComputesEveryRemainderOfRowsAndColumns) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t m : {1, 2, 3, 5, 6, 7, 11, 12, 13, 25, 49, 97}) {
      for (int64_t n : {1, 8, 15, 16, 17, 31, 33, 48, 64, 65, 130}) {
        CheckOffered(backend, MatMulInteger(DType::kU8, DType::kI8, {m, 20}, {20, n}, Zero::kOne, true));
      }
    }
  });
}

TEST(MatMulInteger, LongSumsWrapAsThoseOfTheReference) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t k : {1, 2, 3, 4, 255, 1024, 40000}) {
      CheckOffered(backend, MatMulInteger(DType::kU8, DType::kU8, {5, k}, {k, 9}, Zero::kNone, true));
      CheckOffered(backend, MatMulInteger(DType::kI8, DType::kI8, {5, k}, {k, 9}, Zero::kOne, true));
    }
  });
}

TEST(MatMulInteger, LargestProductsAreExact) {
  OnEveryMachine([](Backend& backend) {
    for (double low : {-128.0, 127.0}) {
      Case c = OneNode("MatMulInteger",
                       {Random(DType::kU8, {6, 64}, 255, 255, 1), Random(DType::kI8, {64, 64}, low, low, 2)}, {}, {1});
      CheckOffered(backend, c);
    }
  });
}

TEST(MatMulInteger, BatchesBroadcast) {
  OnEveryMachine([](Backend& backend) {
    for (bool constant : {true, false}) {
      auto check = [&](Shape a, Shape b) {
        CheckOffered(backend, MatMulInteger(DType::kI8, DType::kI8, std::move(a), std::move(b), Zero::kOne, constant));
      };
      check({3, 5, 7}, {7, 9});
      check({3, 5, 8}, {3, 8, 9});
      check({5, 8}, {3, 8, 9});
      check({2, 1, 5, 7}, {3, 7, 9});
      check({1, 4, 5, 7}, {2, 1, 7, 9});
      check({7}, {7, 9});
    }
  });
}

TEST(MatMulInteger, LargeEnoughToBeSplit) {
  OnEveryMachine([](Backend& backend) {
    CheckOffered(backend, MatMulInteger(DType::kU8, DType::kI8, {300, 128}, {128, 200}, Zero::kOne, true));
    CheckOffered(backend, MatMulInteger(DType::kU8, DType::kI8, {20, 300}, {300, 700}, Zero::kOne, false));
  });
}

TEST(MatMulInteger, NothingToSumGivesZeros) {
  OnEveryMachine([](Backend& backend) {
    CheckOffered(backend, MatMulInteger(DType::kU8, DType::kI8, {3, 0}, {0, 4}, Zero::kNone, false));
    CheckOffered(backend, MatMulInteger(DType::kU8, DType::kI8, {0, 4}, {4, 5}, Zero::kNone, false));
  });
}

Case QLinearMatMul(DType a, DType b, DType y, Shape x, Shape w, Zero zero, bool constant) {
  const int64_t n = w.back();
  const bool columns = zero == Zero::kPerColumn;
  return OneNode("QLinearMatMul",
                 {Bytes(a, std::move(x), 1), Number(DType::kF32, 0.021), Number(a, 7), Bytes(b, std::move(w), 2),
                  columns ? Scales({n}, 3) : Number(DType::kF32, 0.013), ZeroOf(b, zero, n, 4), Number(DType::kF32, 0.31),
                  Number(y, 11)},
                 {}, ConstantsIf(constant, {1, 2, 3, 4, 5, 6, 7}));
}

TEST(QLinearMatMul, EveryTypeAndZeroPoint) {
  OnEveryMachine([](Backend& backend) {
    for (auto [a, b] : kTypes) {
      for (DType y : {DType::kU8, DType::kI8}) {
        for (Zero zero : {Zero::kSymmetric, Zero::kOne, Zero::kPerColumn}) {
          for (bool constant : {true, false}) {
            CheckOffered(backend, QLinearMatMul(a, b, y, {13, 36}, {36, 50}, zero, constant));
            CheckOffered(backend, QLinearMatMul(a, b, y, {3, 5, 19}, {3, 19, 17}, zero, constant));
          }
        }
      }
    }
  });
}

// ---------------------------------------------------------------- convolutions

struct Window {
  Ints kernel = {3, 3};
  Ints strides = {1, 1};
  Ints pads = {1, 1, 1, 1};
  Ints dilations = {1, 1};
  int64_t group = 1;
};

Case QLinearConv(DType a, DType b, DType y, const Shape& x, int64_t outputs, const Window& w, Zero zero, bool bias,
                 bool constant) {
  Shape filter = {outputs, x[1] / w.group};
  filter.insert(filter.end(), w.kernel.begin(), w.kernel.end());
  const bool columns = zero == Zero::kPerColumn;
  std::vector<Tensor> inputs = {Bytes(a, x, 1),
                                Number(DType::kF32, 0.021),
                                Number(a, 7),
                                Bytes(b, filter, 2),
                                columns ? Scales({outputs}, 3) : Number(DType::kF32, 0.013),
                                ZeroOf(b, zero, outputs, 4),
                                Number(DType::kF32, 0.31),
                                Number(y, 11)};
  if (bias) inputs.push_back(Random(DType::kI32, {outputs}, -20000, 20000, 5));
  return OneNode(
      "QLinearConv", std::move(inputs),
      With({{"strides", w.strides}, {"pads", w.pads}, {"dilations", w.dilations}, {"group", w.group}}),
      ConstantsIf(constant, bias ? std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8} : std::vector<int>{1, 2, 3, 4, 5, 6, 7}));
}

void CheckConv(const Shape& x, int64_t outputs, const Window& w) {
  OnEveryMachine([&](Backend& backend) {
    for (auto [a, b] : kTypes) {
      for (Zero zero : {Zero::kSymmetric, Zero::kPerColumn}) {
        for (bool constant : {true, false}) {
          CheckOffered(backend, QLinearConv(a, b, a, x, outputs, w, zero, constant, constant));
        }
      }
    }
  });
}

TEST(QLinearConv, OneByOne) {
  CheckConv({2, 19, 5, 7}, 37, {.kernel = {1, 1}, .pads = {0, 0, 0, 0}});
  CheckConv({1, 64, 3, 3}, 17, {.kernel = {1, 1}, .pads = {0, 0, 0, 0}});
  CheckConv({2, 8, 5, 6}, 9, {.kernel = {1, 1}, .strides = {2, 2}, .pads = {0, 0, 0, 0}});
}

TEST(QLinearConv, WindowsAtTheBordersContainTheZeroPoint) {
  CheckConv({2, 5, 7, 9}, 18, {});
  CheckConv({1, 5, 7, 9}, 33, {.kernel = {5, 3}, .strides = {2, 1}, .pads = {2, 0, 1, 2}});
  CheckConv({1, 3, 17, 15}, 16, {.kernel = {7, 7}, .strides = {2, 2}, .pads = {3, 3, 3, 3}});
  CheckConv({1, 4, 3, 3}, 7, {.kernel = {3, 3}, .pads = {4, 5, 5, 4}});
}

TEST(QLinearConv, DilationAndGroups) {
  CheckConv({1, 6, 11, 10}, 8, {.pads = {2, 2, 2, 2}, .dilations = {2, 2}});
  CheckConv({2, 12, 6, 7}, 9, {.group = 3});
  CheckConv({1, 16, 6, 7}, 32, {.kernel = {1, 1}, .pads = {0, 0, 0, 0}, .group = 4});
}

TEST(QLinearConv, Depthwise) {
  CheckConv({2, 5, 7, 9}, 5, {.group = 5});
  CheckConv({1, 70, 5, 5}, 70, {.strides = {2, 2}, .group = 70});
  CheckConv({1, 33, 6, 5}, 33, {.kernel = {5, 5}, .pads = {2, 2, 2, 2}, .group = 33});
  CheckConv({1, 16, 9, 7}, 16, {.pads = {2, 2, 2, 2}, .dilations = {2, 2}, .group = 16});
  CheckConv({1, 4, 15, 14}, 4, {.kernel = {12, 12}, .pads = {0, 0, 0, 0}, .group = 4});
}

TEST(QLinearConv, OneAndThreeSpatialDimensions) {
  CheckConv({2, 6, 21}, 9, {.kernel = {3}, .strides = {1}, .pads = {1, 1}, .dilations = {1}});
  CheckConv({1, 3, 5, 6, 7}, 8,
            {.kernel = {3, 3, 3}, .strides = {1, 1, 1}, .pads = {1, 1, 1, 1, 1, 1}, .dilations = {1, 1, 1}});
}

TEST(QLinearConv, LargeEnoughToBeSplit) {
  OnEveryMachine([](Backend& backend) {
    for (bool constant : {true, false}) {
      CheckOffered(backend, QLinearConv(DType::kU8, DType::kI8, DType::kU8, {1, 32, 28, 28}, 48, {}, Zero::kPerColumn,
                                        constant, constant));
    }
  });
}

TEST(ConvInteger, EveryPairOfTypesAndZeroPoints) {
  OnEveryMachine([](Backend& backend) {
    for (auto [a, b] : kTypes) {
      for (Zero zero : kZeros) {
        for (int64_t group : {1, 12}) {
          for (bool constant : {true, false}) {
            std::vector<Tensor> inputs = {Bytes(a, {2, 12, 6, 7}, 1), Bytes(b, {12, 12 / group, 3, 3}, 2)};
            if (zero != Zero::kNone) {
              inputs.push_back(Number(a, 3));
              inputs.push_back(ZeroOf(b, zero, 12, 3));
            }
            std::vector<int> constants = {1};
            if (zero != Zero::kNone) constants.push_back(3);
            Case c = OneNode("ConvInteger", std::move(inputs), With({{"pads", Ints{1, 1, 1, 1}}, {"group", group}}),
                             ConstantsIf(constant, constants));
            CheckOffered(backend, c);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
