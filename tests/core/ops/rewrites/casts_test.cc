// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

constexpr char kInputs[] = "input x : float32[2]\ninput h : float16[1]\ninput i : int64[1]\n";

TEST(CastLikeRewrite, BecomesACastToTheTypeOfTheSecondInput) {
  EXPECT_EQ(AfterRewrite("cast_like", std::string(kInputs) + "y = CastLike(x, h)\noutput y\n", 0), "Cast");
}

TEST(CastLikeRewrite, WaitsForAnUnknownType) {
  EXPECT_EQ(RewrittenOps("cast_like", "input x : float32[2]\ninput h : ?\ny = CastLike(x, h)\noutput y\n"), "CastLike");
}

TEST(WrappedCastRewrite, GoesByWayOfInt64ForShorterIntegersOnly) {
  const std::string text = kInputs;
  for (const char* to : {"2", "3", "4", "5", "6", "12"}) {
    EXPECT_EQ(RewrittenOps("wrapped_cast", text + "y = Cast(x) {to=" + to + "}\noutput y\n"), "Cast Cast") << to;
  }
  for (const char* to : {"1", "7", "9", "10", "11", "13"}) {
    EXPECT_EQ(RewrittenOps("wrapped_cast", text + "y = Cast(x) {to=" + to + "}\noutput y\n"), "Cast") << to;
  }
  EXPECT_EQ(RewrittenOps("wrapped_cast", text + "y = Cast(i) {to=2}\noutput y\n"), "Cast");
}

}  // namespace
}  // namespace mge
