// SPDX-License-Identifier: Apache-2.0
// Element types of 8 bits and less.
#include "core/base/narrow.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
constexpr DType kFloat8[] = {DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E5M2FNUZ};

std::vector<DType> AllNarrow() {
  std::vector<DType> out;
  for (int i = 1; i < kDTypeCount; ++i) {
    if (kNarrow.Contains(static_cast<DType>(i))) out.push_back(static_cast<DType>(i));
  }
  return out;
}

Tensor Elements8(DType dtype, std::initializer_list<uint8_t> bytes) {
  Tensor out = *Tensor::Create(dtype, {static_cast<int64_t>(bytes.size())});
  std::copy(bytes.begin(), bytes.end(), out.MutableData<uint8_t>().begin());
  return out;
}

TEST(Narrow, EveryElementKeepsItsValue) {
  ASSERT_EQ(AllNarrow().size(), 10u);
  for (DType dtype : AllNarrow()) {
    for (int code = 0; code < 1 << NarrowBits(dtype); ++code) {
      const auto element = static_cast<uint8_t>(code);
      const float value = NarrowToFloat(dtype, element);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(NarrowToFloat(dtype, FloatToNarrow(dtype, value)))) << DTypeName(dtype) << " " << code;
      } else {
        EXPECT_EQ(FloatToNarrow(dtype, value, {.saturate = false}), element) << DTypeName(dtype) << " " << value;
      }
    }
  }
}

TEST(Narrow, LargestNumbersAreThoseOfTheFormats) {
  const auto largest = [](DType dtype) { return NarrowToFloat(dtype, FloatToNarrow(dtype, 1e30F)); };
  EXPECT_EQ(largest(DType::kF8E4M3FN), 448);
  EXPECT_EQ(largest(DType::kF8E4M3FNUZ), 240);
  EXPECT_EQ(largest(DType::kF8E5M2), 57344);
  EXPECT_EQ(largest(DType::kF8E5M2FNUZ), 57344);
  EXPECT_EQ(largest(DType::kF4E2M1), 6);
  EXPECT_EQ(NarrowToFloat(DType::kF8E8M0, 0xfe), std::ldexp(1.0F, 127));
}

TEST(Narrow, RoundsToTheNearestNumberAndHalvesToEven) {
  const auto rounded = [](DType dtype, float x) { return NarrowToFloat(dtype, FloatToNarrow(dtype, x)); };
  EXPECT_EQ(rounded(DType::kF8E4M3FN, 1.0625F), 1);          // between 1 and 1.125
  EXPECT_EQ(rounded(DType::kF8E4M3FN, 1.1875F), 1.25);       // between 1.125 and 1.25
  EXPECT_EQ(rounded(DType::kF8E4M3FN, 1.9999F), 2);          // carries into the exponent
  EXPECT_EQ(rounded(DType::kF8E4M3FN, 0x1.8p-10F), 0x1p-9);  // subnormal
  EXPECT_EQ(rounded(DType::kF8E5M2, -0.3F), -0.3125F);
  EXPECT_EQ(rounded(DType::kF4E2M1, 0.25F), 0);
  EXPECT_EQ(rounded(DType::kF4E2M1, 2.5F), 2);
  EXPECT_EQ(rounded(DType::kF4E2M1, -3.5F), -4);
}

TEST(Narrow, NumbersBeyondTheRangeSaturateOrBecomeNan) {
  for (DType dtype : kFloat8) {
    EXPECT_EQ(NarrowToFloat(dtype, FloatToNarrow(dtype, -kInf)), -NarrowToFloat(dtype, FloatToNarrow(dtype, 1e30F)));
    const float beyond = NarrowToFloat(dtype, FloatToNarrow(dtype, -1e9F, {.saturate = false}));
    EXPECT_EQ(dtype == DType::kF8E5M2 ? beyond == -kInf : std::isnan(beyond), true) << DTypeName(dtype);
    EXPECT_TRUE(std::isnan(NarrowToFloat(dtype, FloatToNarrow(dtype, kNan))));
  }
  EXPECT_EQ(FloatToNarrow(DType::kF8E4M3FNUZ, -0.0F), 0);  // the format has no -0
  EXPECT_EQ(FloatToNarrow(DType::kF8E4M3FN, -kNan), 0xff);
  EXPECT_EQ(FloatToNarrow(DType::kF4E2M1, kNan), 0x8);
}

TEST(Narrow, E8M0HasThreeRoundings) {
  const auto exponent = [](float x, NarrowRule::Rounding rounding, bool saturate = true) {
    return FloatToNarrow(DType::kF8E8M0, x, {saturate, rounding}) - 127;
  };
  using enum NarrowRule::Rounding;
  EXPECT_EQ(exponent(1.1F, kUp), 1);
  EXPECT_EQ(exponent(1.9F, kDown), 0);
  EXPECT_EQ(exponent(1.5F, kNearest), 1);
  EXPECT_EQ(exponent(1.4F, kNearest), 0);
  EXPECT_EQ(exponent(0, kUp), -127);
  EXPECT_EQ(exponent(0, kNearest, false), 128);  // NaN
  EXPECT_EQ(exponent(kInf, kUp), 127);
  EXPECT_EQ(exponent(kInf, kUp, false), 128);
  EXPECT_EQ(exponent(3e38F, kUp), 127);
}

TEST(Narrow, IntegersKeepTheirLowestBits) {
  EXPECT_EQ(NarrowMin(DType::kI4), -8);
  EXPECT_EQ(NarrowMax(DType::kU2), 3);
  EXPECT_EQ(FloatToNarrow(DType::kI4, -1.9F), 0xf);
  EXPECT_EQ(FloatToNarrow(DType::kU4, -9), 7);
  EXPECT_EQ(FloatToNarrow(DType::kI2, kNan), 0);
  EXPECT_THAT(Elements8(DType::kI4, {0xf, 0xf8, 7}).ToInts(), ElementsAre(-1, -8, 7));  // bits above the element are ignored
}

TEST(Narrow, FilesPackElements) {
  uint8_t elements[5];
  const uint8_t packed[] = {0xe4, 0x03};
  UnpackNarrow(DType::kI2, packed, elements);
  EXPECT_THAT(elements, ElementsAre(0, 1, 2, 3, 3));
  const Tensor wide = *WidenedInts(Elements8(DType::kI2, {0, 1, 2, 3}), UnlimitedHostAllocator());
  EXPECT_EQ(wide.dtype(), DType::kI8);
  EXPECT_THAT(wide.Data<int8_t>(), ElementsAre(0, 1, -2, -1));
  EXPECT_THAT(PackNarrow(Elements8(DType::kI2, {0, 1, 2, 3, 3})), ElementsAre(0xe4, 0x03));
  EXPECT_THAT(PackNarrow(Elements8(DType::kF4E2M1, {1, 0xf, 2})), ElementsAre(0xf1, 0x02));
  EXPECT_THAT(PackNarrow(Elements8(DType::kF8E5M2, {1, 0xff})), ElementsAre(1, 0xff));
  EXPECT_EQ(PackedBytes(DType::kU4, 5), 3);
}

}  // namespace
}  // namespace mge
