// SPDX-License-Identifier: Apache-2.0
// What the CPU backend does not convolve.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

TEST(Conv, RefusesThreeSpatialDimensions) {
  Backend::Outcome o = UnderTest().Offers(
      OneNode("Conv", {Random(DType::kF32, {1, 2, 3, 4, 5}), Random(DType::kF32, {2, 2, 1, 1, 1})}, {}, {1}));
  EXPECT_TRUE(o.candidates.empty());
  EXPECT_FALSE(o.refusals.empty());
}

}  // namespace
}  // namespace mge::testing
