// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "core/cli/bench_diff.h"
#include "core/html/chart.h"
#include "core/html/page.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr size_t kMaxBars = 40, kMaxDiffRows = 500;
constexpr double kMaxRatio = 4;  // longer bars are cut
constexpr double kSame = 0.02;   // a change of less than this part is shown as none
constexpr int kLess = 1, kMore = 4, kEqual = 0;

int ColorOf(double ratio) { return ratio < 1 - kSame ? kLess : ratio > 1 + kSame ? kMore : kEqual; }

// Draws bars from 1 to the ratio of each row.
std::string RatioPicture(const Json& group, size_t shown) {
  const std::string unit = group["unit"];
  html::Axis names = {};
  double low = 0.8, high = 1.25;
  std::vector<const Json*> rows;
  for (const Json& row : group["rows"]) {
    if (rows.size() == shown) break;
    if (!row["ratio"].is_number()) continue;
    rows.push_back(&row);
    names.lanes.push_back(html::Plain(row["name"]));
    low = std::min(low, row["ratio"].get<double>());
    high = std::max(high, row["ratio"].get<double>());
  }
  if (rows.empty()) return {};
  high = std::min(high, kMaxRatio);
  html::Chart chart({.title = "after / before; less is better", .low = low * 0.95, .high = high + (high - low) * 0.35},
                    names, 24);
  chart.Legend(kLess, "less");
  chart.Legend(kMore, "more");
  chart.Legend(kEqual, fmt::format("within {:.0f} %", kSame * 100));
  for (size_t i = 0; i < rows.size(); ++i) {
    const double ratio = (*rows[i])["ratio"];
    const std::string values =
        fmt::format("{} → {}", ValueText((*rows[i])["before"], unit), ValueText((*rows[i])["after"], unit));
    chart.Bar(ColorOf(ratio), 1, std::min(ratio, kMaxRatio), i, fmt::format("{}\n{}", names.lanes[i], values),
              fmt::format("{:.3f} ({})", ratio, values));
  }
  const auto end = static_cast<double>(rows.size());
  chart.Guide({1, 0}, {1, end}, "");
  return chart.Html();
}

// Draws bars from 0 to the difference of each row.
std::string DifferencePicture(const Json& group, size_t shown) {
  html::Axis names = {};
  std::vector<double> differences;
  for (const Json& row : group["rows"]) {
    if (differences.size() == shown) break;
    names.lanes.push_back(html::Plain(row["name"]));
    differences.push_back(row["after"].get<double>() - row["before"].get<double>());
  }
  html::Axis axis = html::AxisOf("after - before, per run; less is better", differences, html::Unit::kMicroseconds, true);
  axis.high = std::max(axis.high, 0.0) + (axis.high - axis.low) * 0.4;
  html::Chart chart(axis, names, 24);
  chart.Legend(kLess, "less");
  chart.Legend(kMore, "more");
  for (size_t i = 0; i < differences.size(); ++i) {
    const Json& row = group["rows"][i];
    const std::string values = fmt::format("{} → {}", ValueText(row["before"], "us"), ValueText(row["after"], "us"));
    chart.Bar(differences[i] <= 0 ? kLess : kMore, 0, differences[i], i, fmt::format("{}\n{}", names.lanes[i], values),
              values);
  }
  return chart.Html();
}

std::string DiffTable(const Json& group) {
  const std::string unit = group["unit"];
  std::vector<std::vector<std::string>> rows;
  for (const Json& row : group["rows"]) {
    if (rows.size() == kMaxDiffRows) break;
    rows.push_back({html::Plain(row["name"]), ValueText(row["before"], unit), ValueText(row["after"], unit),
                    row["ratio"].is_number() ? fmt::format("{:.3f}", row["ratio"].get<double>()) : "-"});
  }
  return html::Table({{"name"}, {"before", true}, {"after", true}, {"after/before", true}}, rows) +
         html::LeftOut(rows.size(), group["rows"].size(), "rows");
}

}  // namespace

std::string BenchDiffBody(const Json& diff) {
  std::string out = html::Facts({{"before", html::Plain(diff["before"])}, {"after", html::Plain(diff["after"])}});
  const bool is_profile = diff["of"] == "mge.profile/1";
  for (const Json& group : diff["groups"]) {
    const size_t all = group["rows"].size(), shown = std::min(all, kMaxBars);
    std::string title = html::Plain(group["title"]);
    title[0] = static_cast<char>(std::toupper(title[0]));  // the titles are ours
    out += html::Heading(title) + html::LeftOut(shown, all, "bars");
    const bool differences = is_profile && group["title"] != "run";
    out += differences ? DifferencePicture(group, shown) : RatioPicture(group, shown);
    if (differences || all > shown) out += DiffTable(group);
  }
  for (const char* side : {"before", "after"}) {
    const Json& names = diff[fmt::format("only_{}", side)];
    if (!names.empty()) out += html::Paragraph(fmt::format("Only {}: {}", side, html::Listed(names, "; ")));
  }
  return out;
}

}  // namespace mge::cli
