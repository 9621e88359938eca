// SPDX-License-Identifier: Apache-2.0
// Division by reciprocals, compared with the processor's.
#include "plugins/gpu/kernels/divide.h"

#include <vector>

#include "gtest/gtest.h"

namespace mge::gpu {
namespace {

constexpr int64_t kLargest = int64_t{1} << 53;

TEST(Divide, EqualsTheProcessorsDivision) {
  std::vector<int64_t> numbers;
  for (int bit = 0; bit < 53; ++bit) {
    for (int64_t near : {-3, -2, -1, 0, 1, 2, 3}) {
      const int64_t n = (int64_t{1} << bit) + near;
      if (n >= 0) numbers.push_back(n);
      if (n > 0) numbers.push_back(n / 3 * 3), numbers.push_back(n / 7);
    }
  }
  for (int64_t d = 1; d < 1000; ++d) numbers.push_back(d);
  for (int64_t d : numbers) {
    if (d == 0) continue;
    const Divisor divisor = d;
    for (int64_t n : numbers) {
      const int64_t product = n <= kLargest / d ? n * d : n;
      for (int64_t index : {n, product, product - 1, product + d - 1}) {
        if (index < 0 || index > kLargest) continue;
        const Division got = Divide(index, divisor);
        ASSERT_EQ(got.quotient, index / d) << index << " / " << d;
        ASSERT_EQ(got.rest, index % d) << index << " / " << d;
      }
    }
  }
}

}  // namespace
}  // namespace mge::gpu
