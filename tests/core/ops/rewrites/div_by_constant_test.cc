// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

std::string Quotient(const std::string& divisor, const std::string& dtype = "float32") {
  return "input x : " + dtype + "[2,3]\nconst d = " + dtype + divisor + "\ny = Div(x, d)\noutput y\n";
}

TEST(DivByConstant, BecomesAProductIfThatIsExact) {
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[]<8>"), 0), "Mul");
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[3]<-2, 0.25, 1>"), 0), "Mul");
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[]<1024>", "float16"), 0), "Mul");
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[]<8>", "float64"), 0), "Mul");
}

TEST(DivByConstant, StaysADivisionOtherwise) {
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[]<3>")), "Div");
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[3]<2, 3, 4>")), "Div");
  EXPECT_EQ(AfterRewrite("div_by_constant", Quotient("[]<32768>", "float16")), "Div");  // its reciprocal is subnormal
  EXPECT_EQ(AfterRewrite("div_by_constant", "input x : float32[2]\nconst d = float32[]<2>\ny = Div(d, x)\noutput y\n"),
            "Div");
}

}  // namespace
}  // namespace mge
