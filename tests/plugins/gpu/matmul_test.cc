// SPDX-License-Identifier: Apache-2.0
// Candidates offered for a matrix product. Settings allow and forbid them by their attributes.
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"

namespace mge::testing {
namespace {

TEST(MatMul, IsOfferedInReducedPrecisionOnMatrixUnits) {
  constexpr uint64_t kConverted = MGE_KERNEL_TENSOR_CORE | MGE_KERNEL_REDUCED_PRECISION;
  for (DType t : {DType::kF32, DType::kF64, DType::kF16}) {
    auto offers = UnderTest().Offers(OneNode("MatMul", {Random(t, {8, 2000}), Random(t, {2000, 8})}));
    ASSERT_EQ(offers.attributes.size(), offers.candidates.size());
    int converted = 0, exact = 0;
    for (uint64_t attributes : offers.attributes) {
      converted += (attributes & kConverted) == kConverted;
      exact += (attributes & kConverted) == 0;
    }
    EXPECT_EQ(converted, t == DType::kF32 ? 1 : 0);
    EXPECT_EQ(exact, 2);  // in one pass, and in partial sums
  }
}

}  // namespace
}  // namespace mge::testing
