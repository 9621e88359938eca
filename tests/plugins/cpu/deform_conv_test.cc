// SPDX-License-Identifier: Apache-2.0
// DeformConv: convolutions whose taps are moved by offsets.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Form {
  int64_t channels = 6, outputs = 8, group = 1, offset_group = 1, stride = 1, dilation = 1, pad = 1;
  bool bias = true, mask = true;
  int64_t height = 9, width = 11, kernel_height = 3, kernel_width = 3;
};

Case Deformed(const Form& f, DType type = DType::kF32, std::vector<int> constants = {1}) {
  auto size = [&](int64_t in, int64_t kernel) { return (in + 2 * f.pad - f.dilation * (kernel - 1) - 1) / f.stride + 1; };
  const int64_t oh = size(f.height, f.kernel_height), ow = size(f.width, f.kernel_width);
  const int64_t points = f.offset_group * f.kernel_height * f.kernel_width;
  return OneNode(
      "DeformConv",
      {Random(type, {2, f.channels, f.height, f.width}, -1, 1, 1),
       Random(type, {f.outputs, f.channels / f.group, f.kernel_height, f.kernel_width}, -1, 1, 2),
       Random(type, {2, 2 * points, oh, ow}, -2.5, 2.5, 3), f.bias ? Random(type, {f.outputs}, -1, 1, 4) : Tensor(),
       f.mask ? Random(type, {2, points, oh, ow}, 0, 1, 5) : Tensor()},
      With({{"group", f.group},
            {"offset_group", f.offset_group},
            {"strides", Ints{f.stride, f.stride}},
            {"dilations", Ints{f.dilation, f.dilation}},
            {"pads", Ints{f.pad, f.pad, f.pad, f.pad}}}),
      std::move(constants));
}

TEST(DeformConv, ConvolvesAsTheEvaluatorDoes) {
  const Form forms[] = {{},
                        {.bias = false, .mask = false},
                        {.group = 2, .offset_group = 3},
                        {.outputs = 9, .group = 3, .offset_group = 2, .stride = 2, .dilation = 2, .pad = 2},
                        {.pad = 1, .height = 7, .width = 1, .kernel_height = 3, .kernel_width = 1},
                        {.outputs = 6, .group = 6, .offset_group = 6, .pad = 0}};
  for (const Form& form : forms) {
    OnEveryMachine([&](Backend& backend) {
      EXPECT_THAT(backend.Check(Deformed(form), Roughly).candidates, Contains(StartsWith("cpu.deform_conv")));
    });
  }
  EXPECT_THAT(UnderTest().Check(Deformed({}, DType::kF16), Roughly).candidates,
              Contains(StartsWith("cpu.widened.cpu.deform_conv")));
}

// One image has more rows than are sampled at once.
TEST(DeformConv, SamplesLargeImagesInBlocks) {
  const Form form = {.channels = 96, .outputs = 4, .height = 40, .width = 41};
  auto tolerance = [](DType type) { return ToleranceOf(type, 400); };  // an output is a sum of 864 products
  EXPECT_THAT(UnderTest().Check(Deformed(form), tolerance).candidates, Contains(StartsWith("cpu.deform_conv")));
}

TEST(DeformConv, ReadsZeroAtDistantPositions) {
  Case c = Deformed({.mask = false});
  auto offsets = c.inputs[1].MutableData<float>();
  const float junk[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 20.0f, -1.0f, 0.0f};
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = junk[(i * 5 + i / 8) % 8];
  UnderTest().Check(c, Roughly);
}

TEST(DeformConv, RefusesAFilterThatIsComputed) {
  const Backend::Outcome outcome = UnderTest().Offers(Deformed({}, DType::kF32, {}));
  EXPECT_THAT(outcome.candidates, IsEmpty());
  EXPECT_THAT(outcome.refusals, Contains(HasSubstr("the filter is not constant")));
}

}  // namespace
}  // namespace mge::testing
