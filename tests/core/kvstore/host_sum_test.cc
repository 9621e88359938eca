// SPDX-License-Identifier: Apache-2.0
// Sums in host memory: the number of threads and chunks, and the order of the additions.
#include "core/kvstore/host_sum.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

namespace mge {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::vector<float> Numbers(size_t count, int seed) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(std::sin(static_cast<double>(i) * 0.7 + seed) * 1e3);
  return out;
}

class Sums : public testing::Test {
 protected:
  std::vector<float> Add(size_t arrays, size_t elements) {
    std::vector<std::vector<float>> data;
    std::vector<const void*> pointers;
    for (size_t k = 0; k < arrays; ++k) data.push_back(Numbers(elements, static_cast<int>(k)));
    for (const auto& d : data) pointers.push_back(d.data());
    std::vector<float> out(elements);
    sum_.Add(DType::kF32, pointers, out.data(), static_cast<int64_t>(elements));
    return out;
  }

  std::vector<std::pair<uint64_t, uint32_t>> loops_;  // chunks and threads of each parallel loop
  HostSum sum_ = {.big_array = 10'000,
                  .threads = 3,
                  .parallel_for = [this](uint64_t chunks, uint32_t threads, const std::function<void(uint64_t)>& body) {
                    loops_.emplace_back(chunks, threads);
                    for (uint64_t i = chunks; i-- > 0;) body(i);
                  }};
};

TEST_F(Sums, OfBigArraysUseSeveralThreadsFromTheBoundOn) {
  Add(2, 9'999);
  EXPECT_THAT(loops_, ElementsAre());
  Add(2, 10'000);
  EXPECT_THAT(loops_, ElementsAre(Pair(3, 3)));  // chunks of 4096 elements
}

TEST_F(Sums, UseSmallerChunksBelowABoundOf4096) {
  sum_.big_array = 100;
  Add(2, 1'001);
  EXPECT_THAT(loops_, ElementsAre(Pair(11, 3)));
}

TEST_F(Sums, WithOneThreadUseNoLoop) {
  sum_.threads = 1;
  Add(2, 20'000);
  EXPECT_THAT(loops_, ElementsAre());
}

TEST_F(Sums, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const size_t arrays : {1, 2, 3, 6, 9}) {
    sum_.big_array = 10'000;
    const auto parallel = Add(arrays, 12'345);
    sum_.big_array = 1'000'000;
    EXPECT_EQ(parallel, Add(arrays, 12'345)) << arrays;
  }
}

// a0 + (((a1 + a2) + a3) + a4) + a5
TEST_F(Sums, AddUpToFourArraysBeforeTheyAddToTheFirst) {
  const float a[] = {1, 1e8f, -1e8f, 3, 0.5f, 7};
  std::vector<const void*> pointers;
  for (const float& x : a) pointers.push_back(&x);
  float out = 0;
  sum_.Add(DType::kF32, pointers, &out, 1);
  EXPECT_EQ(out, (a[0] + (((a[1] + a[2]) + a[3]) + a[4])) + a[5]);
  EXPECT_NE(out, ((((a[0] + a[1]) + a[2]) + a[3]) + a[4]) + a[5]);  // one after the other
}

TEST_F(Sums, OfDoublesKeepTheirPrecision) {
  const double a = 1e16, b = 2, c = 3;
  const void* pointers[] = {&a, &b, &c};
  double out = 0;
  sum_.Add(DType::kF64, pointers, &out, 1);
  EXPECT_EQ(out, a + 5);
}

}  // namespace
}  // namespace mge
