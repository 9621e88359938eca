// SPDX-License-Identifier: Apache-2.0
// Col2Im and MaxUnpool: operators that write an image from its windows.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Blocks {
  Ints image, block, strides, dilations, pads;
};

int64_t PlacesOf(const Blocks& b) {
  int64_t places = 1;
  for (size_t d = 0; d < b.image.size(); ++d) {
    const int64_t padded = b.image[d] + b.pads[d] + b.pads[d + b.image.size()];
    places *= (padded - (b.block[d] - 1) * b.dilations[d] - 1) / b.strides[d] + 1;
  }
  return places;
}

Tensor IntsTensor(const Ints& values) { return Tensor::Vector<int64_t>(values); }

TEST(Col2Im, AddsBlocksAsTheEvaluatorDoes) {
  const Blocks cases[] = {{{9}, {3}, {1}, {1}, {1, 1}},
                          {{9, 11}, {3, 2}, {1, 1}, {1, 1}, {1, 0, 1, 1}},
                          {{9, 11}, {3, 2}, {2, 3}, {1, 2}, {2, 0, 0, 1}},
                          {{7, 8}, {3, 3}, {2, 2}, {2, 2}, {3, 3, 3, 3}},
                          {{4, 5, 6}, {2, 3, 2}, {1, 2, 1}, {1, 1, 2}, {0, 1, 1, 0, 1, 1}}};
  for (const Blocks& b : cases) {
    for (DType type : {DType::kF32, DType::kF64}) {
      int64_t taps = 1;
      for (int64_t k : b.block) taps *= k;
      Case c =
          OneNode("Col2Im", {Random(type, {2, 3 * taps, PlacesOf(b)}, -1, 1, 1), IntsTensor(b.image), IntsTensor(b.block)},
                  With({{"strides", b.strides}, {"dilations", b.dilations}, {"pads", b.pads}}), {1, 2});
      OnEveryMachine(
          [&](Backend& backend) { EXPECT_THAT(backend.Check(c, Exactly).candidates, Contains(StartsWith("cpu.col2im"))); });
    }
  }
}

Case Unpooled(DType type, const std::vector<int64_t>& indices, Ints strides) {
  Tensor at = *Tensor::Create(DType::kI64, {1, 2, 2, 3});
  std::copy(indices.begin(), indices.end(), at.MutableData<int64_t>().begin());
  return OneNode("MaxUnpool", {Random(type, {1, 2, 2, 3}, -1, 1, 1), std::move(at)},
                 With({{"kernel_shape", Ints{2, 2}}, {"strides", std::move(strides)}}));
}

TEST(MaxUnpool, PutsTheMaximaBack) {
  for (DType type : {DType::kF32, DType::kF64, DType::kF16}) {
    Case c = Unpooled(type, {0, 3, 5, 12, 20, 23, 24, 27, 29, 36, 44, 47}, {2, 2});
    EXPECT_THAT(UnderTest().Check(c, Exactly).candidates, Contains(StartsWith("cpu.max_unpool")));
  }
}

}  // namespace
}  // namespace mge::testing
