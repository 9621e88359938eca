// SPDX-License-Identifier: Apache-2.0
// Cases of the kit that reveal common kernel faults: special values, and operands that are the same value.
#include "core/conform/cases.h"

#include <cmath>
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

TEST(Cases, SpecialValuesExistForFloat32Only) {
  EXPECT_FALSE(MakeCase(*FindOp("", "Relu"), DType::kF16, "Relu(T[67]@special)").ok());
  EXPECT_FALSE(MakeCase(*FindOp("", "Neg"), DType::kI32, "Neg(T[67]@special)").ok());
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
