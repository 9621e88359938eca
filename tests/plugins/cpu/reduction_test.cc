// SPDX-License-Identifier: Apache-2.0
// Sums that only the CPU backend computes.
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

}  // namespace
}  // namespace mge::testing
