// SPDX-License-Identifier: Apache-2.0
// The threads of elementwise kernels with cpu.operator_tuning. A kernel that splits its work looks at the cancel flag between
// the parts, so a cancelled run tells whether it does.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

bool Splits(DType dtype, int64_t elements, const std::string& tuning) {
  UnderTest().Set("cpu.operator_tuning", tuning);
  const Backend::Outcome r = UnderTest().RunStopped(OneNode("Neg", {Random(dtype, {elements})}));
  UnderTest().Set("cpu.operator_tuning", "");
  EXPECT_FALSE(r.codes.empty());
  return !r.codes.empty() && r.codes[0] == MGE_CANCELLED;
}

TEST(OperatorTuning, SplitsKernelsOfOtherTypesHoweverSmall) {
  EXPECT_FALSE(Splits(DType::kF32, 2, ""));
  EXPECT_TRUE(Splits(DType::kF32, 2, "0"));
  EXPECT_TRUE(Splits(DType::kF32, 2, "int8,Int64"));
  EXPECT_FALSE(Splits(DType::kF32, 1, "0"));
}

TEST(OperatorTuning, MeasuresKernelsOfListedTypesOnOneThread) {
  constexpr int64_t kMany = 1 << 20;
  EXPECT_TRUE(Splits(DType::kF32, kMany, ""));
  EXPECT_FALSE(Splits(DType::kF32, kMany, "1"));  // the first run
  EXPECT_FALSE(Splits(DType::kF32, kMany, "float32, int8"));
  EXPECT_FALSE(Splits(DType::kI8, 2, "float32,int8"));
}

TEST(OperatorTuning, ComputesTheSameInAllWays) {
  for (const char* tuning : {"", "0", "1"}) {
    UnderTest().Set("cpu.operator_tuning", tuning);
    for (int64_t elements : {1, 2, 5, 1000, 100'003}) {
      UnderTest().Check(OneNode("Add", {Random(DType::kF32, {3, elements}), Random(DType::kF32, {elements})}), Exactly);
    }
  }
  UnderTest().Set("cpu.operator_tuning", "");
}

}  // namespace
}  // namespace mge::testing
