// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/window.h"

#include "core/base/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

Attributes Attrs(std::initializer_list<std::pair<const char*, AttributeValue>> items) {
  Attributes attrs;
  for (const auto& [name, value] : items) attrs.Set(name, value);
  return attrs;
}

WindowAxis Resolve(const Attributes& attrs, int64_t in, int64_t kernel) {
  auto window = ResolveWindow(attrs, Shape{in}, Shape{kernel});
  EXPECT_TRUE(window.ok()) << FormatError(window.status());
  return window.ok() ? (*window)[0] : WindowAxis{};
}

std::string ErrorOf(const Attributes& attrs, int64_t in, int64_t kernel) {
  auto window = ResolveWindow(attrs, Shape{in}, Shape{kernel});
  if (window.ok()) return "no error";
  EXPECT_EQ(ErrorId(window.status()), errors::kInvalidNode.id);
  return ErrorTitle(window.status());
}

// Returns the output size by definition: the number of positions, `stride` apart, at which the whole window is inside.
int64_t CountByDefinition(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t start = -begin; start + (kernel - 1) * dilation < in + end; start += stride) ++count;
  return count;
}

TEST(Window, SizesAgreeWithTheirDefinition) {
  for (int64_t in = 1; in <= 9; ++in) {
    for (int64_t kernel = 1; kernel <= 4; ++kernel) {
      for (int64_t stride = 1; stride <= 3; ++stride) {
        for (int64_t dilation = 1; dilation <= 3; ++dilation) {
          for (int64_t begin = -1; begin <= 2; ++begin) {
            for (int64_t end = -1; end <= 2; ++end) {
              if (in + begin + end < (kernel - 1) * dilation + 1) continue;
              WindowAxis axis = Resolve(
                  Attrs({{"strides", Ints{stride}}, {"dilations", Ints{dilation}}, {"pads", Ints{begin, end}}}), in, kernel);
              ASSERT_EQ(axis.out, CountByDefinition(in, kernel, stride, dilation, begin, end));
              for (int64_t o = 0; o < axis.out; ++o) {
                IndexRange taps = axis.TapsInside(o);
                for (int64_t k = 0; k < kernel; ++k) {
                  const int64_t at = axis.Position(o, k);
                  const bool inside = at >= 0 && at < in;
                  ASSERT_EQ(k >= taps.begin && k < taps.end, inside);
                  IndexRange outputs = axis.OutputsInside(k);
                  ASSERT_EQ(o >= outputs.begin && o < outputs.end, inside);
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(Window, CeilModeKeepsAPartialWindowThatBeginsInside) {
  EXPECT_EQ(Resolve(Attrs({{"ceil_mode", int64_t{1}}, {"strides", Ints{2}}}), 4, 3).out, 2);
  EXPECT_EQ(Resolve(Attrs({{"ceil_mode", int64_t{0}}, {"strides", Ints{2}}}), 4, 3).out, 1);
  // Rounding up would add a window that begins in the padding at the end.
  EXPECT_EQ(Resolve(Attrs({{"ceil_mode", int64_t{1}}, {"strides", Ints{3}}, {"pads", Ints{0, 1}}}), 3, 1).out, 1);
}

TEST(Window, CeilModeTakesAKernelThatIsLargerThanTheInput) {
  auto out = [](int64_t in, int64_t kernel, int64_t stride, int64_t pad) {
    return Resolve(Attrs({{"ceil_mode", int64_t{1}}, {"strides", Ints{stride}}, {"pads", Ints{pad, pad}}}), in, kernel).out;
  };
  EXPECT_EQ(out(4, 5, 2, 0), 1);
  EXPECT_EQ(out(3, 5, 3, 0), 1);
  EXPECT_EQ(out(4, 7, 2, 1), 1);
  EXPECT_EQ(out(3, 5, 2, 0), 0);
  EXPECT_EQ(out(4, 5, 1, 0), 0);
  EXPECT_THAT(ErrorOf(Attrs({{"ceil_mode", int64_t{1}}}), 1, 4), HasSubstr("does not fit"));
  EXPECT_THAT(ErrorOf(Attrs({{"strides", Ints{2}}}), 4, 5), HasSubstr("does not fit"));
}

TEST(Window, AnEmptyInputWithEnoughPaddingHasOutputs) {
  EXPECT_EQ(Resolve(Attrs({{"pads", Ints{1, 1}}}), 0, 1).out, 2);
  EXPECT_EQ(Resolve(Attrs({{"pads", Ints{2, 2}}}), 0, 3).out, 2);
  EXPECT_EQ(Resolve(Attrs({{"auto_pad", std::string("SAME_UPPER")}}), 0, 3).out, 0);
  EXPECT_THAT(ErrorOf(Attrs({{"pads", Ints{1, 1}}}), 0, 3), HasSubstr("does not fit"));
}

TEST(Window, AutoPadKeepsTheSizeAndPlacesTheOddPad) {
  WindowAxis upper = Resolve(Attrs({{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}}), 5, 2);
  EXPECT_EQ(upper.out, 3);
  EXPECT_EQ(upper.pad_begin, 0);
  EXPECT_EQ(upper.pad_end, 1);
  WindowAxis lower = Resolve(Attrs({{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2}}}), 5, 2);
  EXPECT_EQ(lower.pad_begin, 1);
  EXPECT_EQ(lower.pad_end, 0);
  EXPECT_EQ(Resolve(Attrs({{"auto_pad", std::string("VALID")}}), 5, 2).out, 4);
  EXPECT_EQ(Resolve(Attrs({{"auto_pad", std::string("SAME_UPPER")}, {"pads", Ints{0, 0}}}), 5, 3).out, 5);
}

TEST(Window, AutoPadWinsOverPads) {
  EXPECT_EQ(Resolve(Attrs({{"auto_pad", std::string("SAME_UPPER")}, {"pads", Ints{2, 0}}}), 5, 3).pad_begin, 1);
  EXPECT_EQ(Resolve(Attrs({{"auto_pad", std::string("VALID")}, {"pads", Ints{2, 0}}}), 5, 3).out, 3);
}

TEST(Window, UnknownSizesStayUnknown) {
  WindowAxis axis = Resolve(Attrs({{"strides", Ints{2}}}), kUnknownDim, 3);
  EXPECT_EQ(axis.out, kUnknownDim);
  EXPECT_EQ(Resolve({}, 5, kUnknownDim).out, kUnknownDim);
}

TEST(Window, RefusesBadAttributesWithValueAndLimit) {
  EXPECT_THAT(ErrorOf(Attrs({{"strides", Ints{0}}}), 5, 3), HasSubstr("strides = [0]: 0 is outside of 1..2147483647"));
  EXPECT_THAT(ErrorOf(Attrs({{"strides", Ints{-1}}}), 5, 3), HasSubstr("-1 is outside of 1.."));
  EXPECT_THAT(ErrorOf(Attrs({{"dilations", Ints{0}}}), 5, 3), HasSubstr("dilations = [0]: 0 is outside of 1.."));
  EXPECT_THAT(ErrorOf(Attrs({{"strides", Ints{1, 1}}}), 5, 3), HasSubstr("strides has 2 values"));
  EXPECT_THAT(ErrorOf(Attrs({{"pads", Ints{1}}}), 5, 3), HasSubstr("pads has 1 values"));
  EXPECT_THAT(ErrorOf(Attrs({{"auto_pad", std::string("SAME")}}), 5, 3), HasSubstr("\"SAME\" is not one of NOTSET"));
  EXPECT_THAT(ErrorOf({}, 2, 3), HasSubstr("span 3, but the input has 2 + pads [0,0] = 2"));
  EXPECT_THAT(ErrorOf(Attrs({{"dilations", Ints{INT32_MAX}}}), 5, 3), HasSubstr("does not fit"));
  EXPECT_THAT(ErrorOf(Attrs({{"pads", Ints{-3, -3}}}), 5, 1), HasSubstr("does not fit"));
  EXPECT_THAT(ErrorOf({}, 0, 1), HasSubstr("does not fit"));
  EXPECT_THAT(ErrorOf({}, 5, 0), HasSubstr("kernel shape [0]: 0 is outside of 1.."));
  EXPECT_THAT(ErrorOf(Attrs({{"pads", Ints{INT64_MAX, 1}}}), 5, 1), HasSubstr("is outside of -2147483647.."));
  EXPECT_THAT(ErrorOf({}, INT64_MAX, 1), HasSubstr("too large"));
}

TEST(TransposedWindow, IsTheAdjointOfTheWindow) {
  // If the windows of a convolution cover its input without remainder, the transposed window restores the input's size.
  for (int64_t in = 3; in <= 9; ++in) {
    Attributes attrs = Attrs({{"strides", Ints{2}}, {"pads", Ints{1, 1}}, {"dilations", Ints{1}}});
    WindowAxis forward = Resolve(attrs, in, 3);
    attrs.Set("output_padding", Ints{(in + 2 - 3) % 2});
    auto back = ResolveTransposedWindow(attrs, Shape{forward.out}, Shape{3});
    ASSERT_TRUE(back.ok());
    EXPECT_EQ((*back)[0].in, in);
    EXPECT_EQ((*back)[0].out, forward.out);
  }
}

TEST(TransposedWindow, ReadsOutputShape) {
  auto with = ResolveTransposedWindow(Attrs({{"strides", Ints{3}}, {"output_shape", Ints{10}}}), Shape{3}, Shape{3});
  ASSERT_TRUE(with.ok());
  EXPECT_EQ((*with)[0].in, 10);
  // output_shape may also hold batch and channels.
  EXPECT_TRUE(ResolveTransposedWindow(Attrs({{"output_shape", Ints{1, 2, 10}}}), Shape{3}, Shape{3}).ok());
  for (Ints bad : {Ints{0}, Ints{-5}, Ints{1, 2}}) {
    auto window = ResolveTransposedWindow(Attrs({{"output_shape", bad}}), Shape{3}, Shape{3});
    EXPECT_EQ(ErrorId(window.status()), errors::kInvalidNode.id);
  }
}

TEST(TransposedWindow, RefusesPadsThatLeaveNothing) {
  auto window = ResolveTransposedWindow(Attrs({{"pads", Ints{3, 3}}}), Shape{3}, Shape{2});
  EXPECT_THAT(FormatError(window.status()), HasSubstr("the output is empty along spatial axis 0"));
}

}  // namespace
}  // namespace mge
