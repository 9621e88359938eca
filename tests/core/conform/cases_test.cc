// SPDX-License-Identifier: Apache-2.0
// Cases of the kit that reveal common kernel faults: special values, and operands that are the same value.
#include "core/conform/cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge::conform {
namespace {

Case Made(const std::string& op, const std::string& spec) {
  absl::StatusOr<Case> c = MakeCase(*FindOp("", op), DType::kF32, spec);
  EXPECT_TRUE(c.ok()) << spec << ": " << c.status();
  return *std::move(c);
}

TEST(Cases, EveryPairOfSpecialValuesOccursInTwoOperands) {
  auto name = [](float x) { return std::isnan(x) ? "NaN" : std::signbit(x) ? "-" + std::to_string(-x) : std::to_string(x); };
  Case c = Made("Add", "Add(T[67]@special, T[67]@special)");
  std::set<std::string> alone, pairs;
  for (size_t i = 0; i < 67; ++i) {
    std::string a = name(c.inputs[0][0].Data<float>()[i]), b = name(c.inputs[0][1].Data<float>()[i]);
    alone.insert(a);
    pairs.insert(a + " " + b);
  }
  EXPECT_THAT(alone, testing::IsSupersetOf({"NaN", "inf", "-inf", "0.000000", "-0.000000"}));
  EXPECT_EQ(pairs.size(), alone.size() * alone.size());
}

TEST(Cases, SpecialIntegersAreHeldNeitherBy32BitsNorByADouble) {
  absl::StatusOr<Case> c = MakeCase(*FindOp("", "Neg"), DType::kI64, "Neg(T[67]@special)");
  ASSERT_TRUE(c.ok()) << c.status();
  bool wide = false, odd = false;
  for (int64_t x : c->inputs[0][0].Data<int64_t>()) {
    wide |= x != static_cast<int32_t>(x);
    odd |= std::abs(static_cast<double>(x)) < 1e18 && x != static_cast<int64_t>(static_cast<double>(x));
  }
  EXPECT_TRUE(wide && odd);
  EXPECT_FALSE(MakeCase(*FindOp("", "Relu"), DType::kF16, "Relu(T[67]@special)").ok());
}

TEST(Cases, RareValuesBeginWithRowsOfMinusInfinity) {
  Case c = Made("Softmax", "Softmax(T[9,7]@rare)");
  const std::span<const float> x = c.inputs[0][0].Data<float>();
  for (size_t i = 0; i < 7; ++i) EXPECT_EQ(x[i], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::ranges::any_of(x, [](float v) { return std::isnan(v); }));
  EXPECT_TRUE(std::ranges::all_of(x.subspan(14, 7), [](float v) { return std::isfinite(v) || v < 0; }));
}

TEST(Cases, AnExampleMayHoldSeveralCases) {
  EXPECT_THAT(SpecsFor(*FindOp("", "Conv")),
              testing::IsSupersetOf({"Conv(T[1,10,5,3], T[4,5,3,2]) {group=2}", "Conv(T[1,14,3,4], T[6,7,1,2]) {group=2}",
                                     "Conv(T[1,37,3,69], T[67,37,2,3]) once"}));
}

TEST(Cases, ALargeCaseIsOfFloat32AndIsNotVaried) {
  const std::string spec = "MatMul(T[5,1030], T[1030,70]) once";
  EXPECT_TRUE(Made("MatMul", spec).once);
  EXPECT_FALSE(MakeCase(*FindOp("", "MatMul"), DType::kF64, spec).ok());
  EXPECT_EQ(ParseSpec(spec).Text(), spec);
  for (const std::string& varied : VariationsOf(*FindOp("", "MatMul")))
    EXPECT_THAT(varied, testing::Not(testing::HasSubstr("1030")));
}

TEST(Cases, AnOperandUsedTwiceIsOneInput) {
  Case c = Made("Add", "Add(T[3,7], =0)");
  ASSERT_EQ(c.inputs[0].size(), 1u);
  EXPECT_EQ(c.expected[0][0].Data<float>()[5], 2 * c.inputs[0][0].Data<float>()[5]);
  EXPECT_THAT(SpecsFor(*FindOp("", "Sub")), testing::Contains("Sub(T[3,7], =0)"));
}

TEST(Cases, EitherTheFirstInputIsConstantOrAllOthersAre) {
  auto inputs = [](Constants constants) {
    const std::string spec = "Conv(T[1,4,9,7], T[6,2,3,3], T[6]) {group=2}";
    absl::StatusOr<Case> c = MakeCase(*FindOp("", "Conv"), DType::kF32, spec, constants);
    EXPECT_TRUE(c.ok()) << c.status();
    std::vector<Shape> out;
    for (const Tensor& t : c->inputs[0]) out.push_back(t.shape());
    return out;
  };
  EXPECT_THAT(inputs(Constants::kFirst), testing::ElementsAre(Shape{6, 2, 3, 3}, Shape{6}));
  EXPECT_THAT(inputs(Constants::kOthers), testing::ElementsAre(Shape{1, 4, 9, 7}));
}

TEST(Cases, AttributesAreSetAwayFromTheirDefaults) {
  auto variations = [](const char* op) { return VariationsOf(*FindOp("", op)); };
  using testing::Contains, testing::HasSubstr;
  for (const char* text : {"dilations=[1,2]", "dilations=[2,1]", "strides=[1,2]", "strides=[2,1]", "pads=[1,0,0,2]",
                           "auto_pad=\"SAME_UPPER\"", "auto_pad=\"SAME_LOWER\""})
    EXPECT_THAT(variations("Conv"), Contains(HasSubstr(text)));
  for (const char* text : {"axis=-1", "axis=-2", "axis=0"}) EXPECT_THAT(variations("Softmax"), Contains(HasSubstr(text)));
  for (const char* text : {"alpha=0.5", "beta=0.5"}) EXPECT_THAT(variations("Gemm"), Contains(HasSubstr(text)));
}

TEST(Cases, EveryOperandIsBroadcastInEveryPosition) {
  const std::vector<std::string> gemm = VariationsOf(*FindOp("", "Gemm")), sub = VariationsOf(*FindOp("", "Sub"));
  for (const char* c : {"[7]", "[1,7]", "[3,1]", "[1]", "[]"})
    EXPECT_THAT(gemm, testing::Contains(std::string("Gemm(T[3,5], T[5,7], T") + c + ")"));
  for (const char* one : {"[]", "[1]", "[1,1]", "[1,7]", "[3,1]"}) {
    EXPECT_THAT(sub, testing::Contains(std::string("Sub(T") + one + ", T[3,7])"));
    EXPECT_THAT(sub, testing::Contains(std::string("Sub(T[3,7], T") + one + ")"));
  }
}

TEST(Cases, ASoftmaxThatDoesNotSubtractTheMaximumIsWrong) {
  bool wrong = false;
  for (const std::string& spec : SpecsFor(*FindOp("", "Softmax"))) {
    Case c = Made("Softmax", spec);
    const Tensor& x = c.inputs[0][0];
    if (spec.find('{') != std::string::npos) continue;  // along the last axis
    Tensor y = RandomTensor(DType::kF32, x.shape(), 0, 1, 1);
    const size_t row = static_cast<size_t>(x.shape().back());
    for (size_t begin = 0; begin < x.Data<float>().size(); begin += row) {
      float sum = 0;
      for (size_t i = begin; i < begin + row; ++i) sum += y.MutableData<float>()[i] = std::exp(x.Data<float>()[i]);
      for (size_t i = begin; i < begin + row; ++i) y.MutableData<float>()[i] /= sum;
    }
    wrong |= !CompareWithReference(y, c.expected[0][0], false).empty();
  }
  EXPECT_TRUE(wrong);
}

TEST(Cases, EveryElementwiseOperatorHasACaseWithALongTensor) {
  for (const char* op : {"Relu", "Add", "Clip", "Where", "Cast", "Gelu", "Max", "Pow", "Identity"}) {
    EXPECT_THAT(SpecsFor(*FindOp("", op)), testing::Contains(testing::HasSubstr("T[70001]"))) << op;
  }
}

}  // namespace
}  // namespace mge::conform
