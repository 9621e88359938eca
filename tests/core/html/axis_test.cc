// SPDX-License-Identifier: Apache-2.0
#include "core/html/axis.h"

#include <cmath>

#include "gmock/gmock.h"

namespace mge::html {
namespace {

using testing::ElementsAre;

std::vector<std::string> TickTexts(const Axis& axis, int count) {
  std::vector<std::string> out;
  for (const Tick& tick : TicksOf(axis, count)) out.push_back(tick.text);
  return out;
}

TEST(Axis, HasTicksAtRoundNumbersOfItsUnit) {
  EXPECT_THAT(TickTexts({.low = 0, .high = 1}, 4), ElementsAre("0", "0.5", "1"));
  EXPECT_THAT(TickTexts({.low = 0, .high = 97}, 5), ElementsAre("0", "20", "40", "60", "80"));
  EXPECT_THAT(TickTexts({.low = 0, .high = 3, .unit = Unit::kCount}, 20), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(TickTexts({.low = 0, .high = 3e6, .unit = Unit::kBytes}, 4), ElementsAre("0 B", "1 MiB", "2 MiB"));
  EXPECT_THAT(TickTexts({.low = 0, .high = 2500, .unit = Unit::kMicroseconds}, 5),
              ElementsAre("0", "500 us", "1 ms", "1.5 ms", "2 ms", "2.5 ms"));
  EXPECT_THAT(TickTexts({.low = 0, .high = 90000, .unit = Unit::kCount}, 4), ElementsAre("0", "50 k"));
}

TEST(Axis, HasPowersOfTenIfItIsLogarithmic) {
  EXPECT_THAT(TickTexts({.low = 0.5, .high = 2e3, .logarithmic = true}, 4), ElementsAre("1", "10", "100", "1000"));
  EXPECT_THAT(TickTexts({.low = 0.9, .high = 12, .logarithmic = true}, 6), ElementsAre("1", "2", "5", "10"));
  EXPECT_EQ(PlaceOf({.low = 1, .high = 100, .logarithmic = true}, 10), 0.5);
  EXPECT_EQ(PlaceOf({.low = 1, .high = 100, .logarithmic = true}, 0), 0);
}

TEST(Axis, ContainsAllFiniteValues) {
  const Axis axis = AxisOf("loss", {2, NAN, 4, INFINITY}, Unit::kNumber, false);
  EXPECT_FALSE(axis.logarithmic);
  EXPECT_LT(axis.low, 2);
  EXPECT_GT(axis.high, 4);
  EXPECT_LT(axis.high, 5);
  EXPECT_TRUE(AxisOf("loss", {1e-4, 3}, Unit::kNumber, false).logarithmic);
  EXPECT_EQ(AxisOf("bytes", {100, 200}, Unit::kBytes, true).low, 0);
}

TEST(Axis, HasARangeWithoutValuesAndForEqualOnes) {
  for (const std::vector<double>& values : {std::vector<double>{}, {0, 0}, {5, 5}, {-3}, {1e-12, 1e-12}, {1e300, 1e300}}) {
    for (bool from_zero : {false, true}) {
      const Axis axis = AxisOf("x", values, Unit::kNumber, from_zero);
      EXPECT_LT(axis.low, axis.high);
      EXPECT_LE(TicksOf(axis, 5).size(), 30u);
      for (double value : values) EXPECT_TRUE(axis.low <= value && value <= axis.high) << value;
    }
  }
}

}  // namespace
}  // namespace mge::html
