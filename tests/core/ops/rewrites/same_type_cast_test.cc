// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

TEST(SameTypeCastRewrite, RemovesOnlyCastsThatChangeNothing) {
  const std::string text = "input x : float32[2]\ninput h : float16[1]\n";
  EXPECT_EQ(AfterRewrite("same_type_cast", text + "y = Cast(x) {to=1}\noutput y\n"), "Identity");
  EXPECT_EQ(AfterRewrite("same_type_cast", text + "y = CastLike(x, x)\noutput y\n"), "Identity");
  EXPECT_EQ(AfterRewrite("same_type_cast", text + "y = Cast(x) {to=10}\noutput y\n"), "Cast");
  EXPECT_EQ(AfterRewrite("same_type_cast", text + "y = CastLike(x, h)\noutput y\n"), "CastLike");
}

}  // namespace
}  // namespace mge
