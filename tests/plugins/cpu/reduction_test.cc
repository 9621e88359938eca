// SPDX-License-Identifier: Apache-2.0
// Sums, extrema and Hardmax of the CPU backend.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

TEST(Reduction, SumsLongRowsOfSmallTypes) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : {DType::kI8, DType::kI16, DType::kU8, DType::kU16, DType::kI32}) {
      backend.Check(OneNode("ReduceSum", {Random(t, {210}, -5, 5)}), Exactly);
    }
  });
}

const DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16};

TEST(Reduction, ExtremaOfLongAxesAreTheFirstOrTheLast) {
  const Shape shapes[] = {{3, 1}, {3, 63}, {3, 64}, {2, 300}, {300, 5}, {70, 67}, {2, 3, 130}};
  OnEveryMachine([&](Backend& backend) {
    for (DType t : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8, DType::kU8, DType::kI32, DType::kI64}) {
      for (const Shape& shape : shapes) {
        Tensor x = Random(t, shape, 0, 9);
        for (int64_t axis : {0, 1, -1}) {
          for (const char* op : {"ArgMax", "ArgMin"}) {
            for (int64_t last : {0, 1})
              backend.Check(OneNode(op, {x}, With({{"axis", axis}, {"select_last_index", last}})), Exactly);
          }
        }
      }
    }
  });
}

TEST(Reduction, NanIsTheExtremeOfEveryAxis) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (int64_t place : {0, 1, 40, 69}) {
        std::vector<double> values(70 * 70, 1);
        for (int64_t i = 0; i < 70; ++i) values[static_cast<size_t>(i * 70 + place)] = NAN;
        for (int64_t i = 0; i < 70; ++i) values[static_cast<size_t>(i * 70 + 50)] = NAN;
        Tensor x = Fill(t, {70, 70}, values);
        for (int64_t axis : {0, 1}) {
          for (int64_t last : {0, 1}) {
            backend.Check(OneNode("ArgMax", {x}, With({{"axis", axis}, {"select_last_index", last}})), Exactly);
            backend.Check(OneNode("ArgMin", {x}, With({{"axis", axis}, {"select_last_index", last}})), Exactly);
          }
          backend.Check(OneNode("Hardmax", {x}, With({{"axis", axis}})), Exactly);
        }
      }
    }
  });
}

TEST(Reduction, HardmaxAlongAnyAxis) {
  OnEveryMachine([](Backend& backend) {
    for (DType t : kFloats) {
      for (int64_t axis : {0, 1, 2, -1}) {
        backend.Check(OneNode("Hardmax", {Random(t, {3, 5, 70}, 0, 3)}, With({{"axis", axis}})), Exactly);
        backend.Check(OneNode("Hardmax", {Random(t, {65, 2, 3}, 0, 3)}, With({{"axis", axis}})), Exactly);
      }
      backend.Check(OneNode("Hardmax", {Random(t, {0, 4})}), Exactly);
      backend.Check(OneNode("Hardmax", {Random(t, {1, 1})}), Exactly);
    }
  });
}

}  // namespace
}  // namespace mge::testing
