// SPDX-License-Identifier: Apache-2.0
// Matrix products that only the CPU backend computes, or only it computes in full precision.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

Case MatMul(DType t, Shape a, Shape b, bool constant) {
  return OneNode("MatMul", {Random(t, std::move(a), -1, 1, 1), Random(t, std::move(b), -1, 1, 2)}, {},
                 constant ? std::vector<int>{1} : std::vector<int>{});
}

TEST(MatMul, ComputesLargeNumbersInFullPrecision) {
  OnEveryMachine([](Backend& backend) {
    for (bool constant : {true, false}) {
      Case c = OneNode("MatMul", {Random(DType::kF32, {19, 35}, -3, 3, 1), Random(DType::kF32, {35, 41}, -3, 3, 2)}, {},
                       constant ? std::vector<int>{1} : std::vector<int>{});
      backend.Check(c, OfProducts(35 * 9));
    }
  });
}

TEST(MatMulEpilogue, IncludesTheScaleOfAttentionScores) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : {"Mul", "Div"}) {
      Case c = MatMul(DType::kF32, {2, 3, 10, 8}, {2, 3, 8, 10}, false);
      Then(c, op, {Fill(DType::kF32, {}, {8})});
      Then(c, "Add", {Random(DType::kF32, {1, 1, 1, 10}, -1, 1, 3)}, {}, false);
      EXPECT_FALSE(backend.Claims(c).empty());
      backend.Check(c, OfProducts(64));
    }
  });
}

}  // namespace
}  // namespace mge::testing
