// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/layout_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/errors.h"
#include "core/kernel/candidate.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor Counting(Shape shape) {
  Tensor t = *Tensor::Create(DType::kI32, std::move(shape));
  int32_t n = 0;
  for (int32_t& x : t.MutableData<int32_t>()) x = ++n;
  return t;
}

mge_layout Permuted(std::initializer_list<int32_t> perm) {
  mge_layout l = PlainLayout();
  l.kind = MGE_LAYOUT_PERMUTED;
  for (int32_t axis : perm) l.perm[l.rank++] = axis;
  return l;
}

mge_layout TwoBlocks(int32_t axis0, int32_t size0, int32_t axis1, int32_t size1) {
  mge_layout blocked = Permuted({0, 1});
  blocked.block_count = 2;
  blocked.block_axis[0] = axis0;
  blocked.block_size[0] = size0;
  blocked.block_axis[1] = axis1;
  blocked.block_size[1] = size1;
  return blocked;
}

std::vector<int32_t> Laid(const Tensor& t, const mge_layout& layout) {
  std::vector<int32_t> out(static_cast<size_t>(*LayoutBytes(layout, 4, t.shape())) / 4, -1);
  CopyToLayout(t, layout, std::as_writable_bytes(std::span(out)));
  Tensor back = *Tensor::Create(DType::kI32, t.shape());
  CopyFromLayout(std::as_bytes(std::span(out)), layout, back);
  EXPECT_EQ(std::memcmp(back.data(), t.data(), static_cast<size_t>(t.bytes())), 0);
  return out;
}

TEST(LayoutCopy, CopiesChannelsLast) {
  EXPECT_THAT(Laid(Counting({1, 2, 3}), Permuted({0, 2, 1})), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(LayoutCopy, BlocksArePaddedWithZeros) {
  mge_layout blocked = Permuted({0, 1, 2});  // channels in blocks of 2
  blocked.block_count = 1;
  blocked.block_axis[0] = 1;
  blocked.block_size[0] = 2;
  EXPECT_THAT(Laid(Counting({1, 3, 2}), blocked), ElementsAre(1, 3, 2, 4, 5, 0, 6, 0));
}

TEST(LayoutCopy, CopiesTwoBlocksOfDifferentDimensions) {
  EXPECT_THAT(Laid(Counting({2, 4}), TwoBlocks(0, 2, 1, 2)), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
}

TEST(LayoutCopy, TwoBlocksOfOneDimensionPadItToAMultipleOfBoth) {
  EXPECT_THAT(Laid(Counting({2, 3}), TwoBlocks(1, 2, 1, 2)), ElementsAre(1, 2, 3, 0, 4, 5, 6, 0));
  EXPECT_THAT(Laid(Counting({1, 5}), TwoBlocks(1, 2, 1, 2)), ElementsAre(1, 2, 3, 4, 5, 0, 0, 0));
}

TEST(LayoutBytes, RefusesSizesThatOverflow) {
  const Shape square = {4, 4};
  mge_layout opaque = PlainLayout(), unknown = PlainLayout();
  opaque.kind = MGE_LAYOUT_OPAQUE;
  unknown.kind = 17;
  for (uint64_t bytes : {uint64_t{1} << 63, UINT64_MAX, kMaxAskedBytes + 1}) {
    opaque.opaque_bytes = bytes;
    EXPECT_THAT(FormatError(LayoutBytes(opaque, 4, square).status()), HasSubstr("the limit is 1099511627776"));
  }
  opaque.opaque_bytes = kMaxAskedBytes;
  EXPECT_EQ(*LayoutBytes(opaque, 4, square), int64_t{1} << 40);
  const int32_t most = INT32_MAX;
  EXPECT_THAT(FormatError(LayoutBytes(TwoBlocks(0, most, 1, most), 4, square).status()), HasSubstr("size overflow"));
  EXPECT_THAT(FormatError(LayoutBytes(TwoBlocks(0, most, 0, most), 4, square).status()), HasSubstr("size overflow"));
  EXPECT_THAT(FormatError(LayoutBytes(TwoBlocks(0, 2, 2, 2), 4, square).status()), HasSubstr("its block 1 is invalid"));
  EXPECT_THAT(FormatError(LayoutBytes(TwoBlocks(0, 2, 1, 0), 4, square).status()), HasSubstr("its block 1 is invalid"));
  EXPECT_THAT(FormatError(LayoutBytes(Permuted({0, 0}), 4, square).status()), HasSubstr("each dimension once"));
  EXPECT_THAT(FormatError(LayoutBytes(Permuted({0}), 4, square).status()), HasSubstr("its rank is 1"));
  EXPECT_THAT(FormatError(LayoutBytes(unknown, 4, square).status()), HasSubstr("its kind 17 is unknown"));
}

TEST(LayoutCopy, CopiesPlainAndEmptyTensors) {
  EXPECT_THAT(Laid(Counting({2, 2}), PlainLayout()), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(Laid(Counting({0, 2}), Permuted({1, 0})).empty());
}

}  // namespace
}  // namespace mge
