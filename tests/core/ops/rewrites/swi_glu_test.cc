// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

TEST(SwiGluRewrite, MakesASwishAndAProduct) {
  EXPECT_EQ(AfterRewrite("swi_glu",
                         "input a : float32[3,5]\ninput b : float32[3,5]\n"
                         "y = SwiGLU(a, b) {alpha=1.5}\noutput y\n"),
            "Swish Mul");
}

}  // namespace
}  // namespace mge
