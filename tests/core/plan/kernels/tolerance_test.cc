// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace mge {
namespace {

Tensor Floats(const std::vector<float>& values) {
  Tensor t = *Tensor::Create(DType::kF32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.MutableData<float>().begin());
  return t;
}

TEST(WhyDifferent, AllowsAShareOfTheTypicalValue) {
  EXPECT_EQ(WhyDifferent(Floats({1.001f, 0.001f}), Floats({1, 0}), 0.01), "");
  EXPECT_NE(WhyDifferent(Floats({1.1f, 0}), Floats({1, 0}), 0.01), "");
}

TEST(WhyDifferent, TakesNoOtherValueForInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(WhyDifferent(Floats({inf, 1}), Floats({inf, 1}), 0.01), "");
  EXPECT_NE(WhyDifferent(Floats({-inf, 1}), Floats({inf, 1}), 0.01), "");
  EXPECT_NE(WhyDifferent(Floats({5, 1}), Floats({inf, 1}), 0.01), "");
}

}  // namespace
}  // namespace mge
