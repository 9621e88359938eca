// SPDX-License-Identifier: Apache-2.0
#include "core/html/chart.h"

#include <algorithm>
#include <cmath>

#include "core/html/page.h"
#include "core/html/series.h"
#include "gmock/gmock.h"

namespace mge::html {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kHostile[] = "</script></title><img src=x onerror=\"alert('1')\">&\x1b[31m";

TEST(Chart, EscapesAllTexts) {
  Chart chart({.title = kHostile}, {.title = kHostile, .lanes = {kHostile, "b"}}, 30);
  chart.Area(0, {0, 0}, {1, 1}, kHostile, kHostile);
  chart.Bar(1, 0, 0.5, 1, kHostile, kHostile);
  chart.Dot(2, {0, 0}, 3, kHostile);
  chart.Guide({0, 0}, {1, 1}, kHostile);
  chart.Legend(0, kHostile);
  const std::string html = chart.Html() + Facts({{kHostile, kHostile}}) + Table({{kHostile}}, {{kHostile}}) +
                           Paragraph(kHostile) + Heading(kHostile) + Page(kHostile, "");
  EXPECT_THAT(html, HasSubstr("&lt;/script&gt;&lt;/title&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;"));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("</script")));
  EXPECT_THAT(html, Not(HasSubstr("\x1b")));
}

TEST(Chart, LeavesAGapWhereALineHasNoNumber) {
  Chart chart({.low = 0, .high = 4}, {.low = 0, .high = 1}, Chart::Size{});
  chart.Line(0, {{0, 0}, {1, 1}, {2, NAN}, {3, 0}, {4, 1}});
  const std::string html = chart.Html();
  const std::string path = html.substr(html.find("class=\"curve"), 120);
  EXPECT_EQ(std::ranges::count(path, 'M'), 2);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
}

TEST(Chart, CutsLongNames) {
  Chart chart({}, {.lanes = {std::string(1 << 20, 'x')}}, 30);
  chart.Area(0, {0, 0}, {1, 1}, std::string(100, 'y'), std::string(1 << 20, 'z'));
  EXPECT_LT(chart.Html().size(), 4000u);
  EXPECT_LE(Plain(Json(std::string(1 << 20, 'x'))).size(), kMaxColumns + 4);
  EXPECT_THAT(Listed(Json(std::vector<int>(50, 7)), " "), testing::EndsWith("7 and 30 more"));
}

TEST(Series, KeepsTheExtremesOfManyNumbersInFewPoints) {
  Series series;
  for (int i = 0; i < 100000; ++i) series.Add(i, i == 70001 ? 50 : i % 2);
  series.Add(100000, NAN);
  const std::vector<Point> means = series.Means(), highs = series.Highs(), lows = series.Lows();
  EXPECT_LE(means.size(), Series::kMaxPoints);
  EXPECT_GE(means.size(), Series::kMaxPoints / 2 - 1);
  EXPECT_EQ(series.not_finite(), 1u);
  EXPECT_EQ(series.last(), 1);
  EXPECT_EQ(means.back().x, 99999);
  EXPECT_NEAR(means[3].y, 0.5, 1e-9);
  double highest = 0;
  for (const Point& p : highs) highest = std::max(highest, p.y);
  EXPECT_EQ(highest, 50);
  EXPECT_EQ(lows.size(), means.size());
}

}  // namespace
}  // namespace mge::html
