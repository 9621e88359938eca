// SPDX-License-Identifier: Apache-2.0
#include "core/html/plan_page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/byte_size.h"
#include "core/base/duration_text.h"
#include "core/base/lines.h"
#include "fmt/format.h"

namespace mge::html {
namespace {

constexpr int kRow = 42, kBox = 380, kColumn = 680, kMargin = 130, kBar = 200;  // pixels
constexpr size_t kBoxColumns = 56;                                              // letters in a box

bool IsMeasured(const Json& unit) { return unit.contains("in_the_run") && unit["in_the_run"].is_object(); }

// Returns an estimated or measured time, or "" if it is unknown.
std::string TimeText(const char* label, const Json& us) {
  return us.is_number() && us.get<double>() >= 0 ? fmt::format("{}{}", label, DurationText(us.get<double>())) : "";
}

// Returns what a step shows when the pointer is above it, as HTML. Only the line breaks are ours.
std::string StepDetails(const Json& unit) {
  auto text = [](const Json& value) { return Text(Plain(value)); };
  auto lines = [&](const char* head, const Json& values) {
    std::string out = fmt::format("{}:\n", head);
    for (size_t i = 0; i < std::min(values.size(), kMaxListed); ++i) out += "  " + text(values[i]) + "\n";
    if (values.size() > kMaxListed) out += fmt::format("  and {} more\n", values.size() - kMaxListed);
    return out;
  };
  std::string out = fmt::format("nodes: {}\nkernel: {} on {}\n", Text(Listed(unit["nodes"], ", ")), text(unit["kernel"]),
                                text(unit["device"]));
  if (!Plain(unit["fusion"]).empty()) out += fmt::format("fused by: {}\n", text(unit["fusion"]));
  out += lines("reads", unit["inputs"]) + lines("writes", unit["outputs"]);
  out += fmt::format("why: {}\n", text(unit["reason"]));
  if (std::string time = TimeText("estimated: ", unit["cost_us"]); !time.empty()) out += time + "\n";
  if (IsMeasured(unit)) out += TimeText("measured: ", unit["in_the_run"]["median_us"]) + "\n";
  const Json& others = unit["alternatives"];
  for (size_t i = 0; i < std::min(others.size(), kMaxListed); ++i) {
    out += fmt::format("not {}: {}\n", text(others[i]["id"]), text(others[i]["reason"]));
  }
  return out;
}

// Returns the time of a step that decides its bar: the measured one if there is one.
double StepUs(const Json& unit) {
  return std::max(0.0, (IsMeasured(unit) ? unit["in_the_run"]["median_us"] : unit["cost_us"]).get<double>());
}

// Returns the path of a value from the box of the step that writes it to that of a step `rows` below that reads it.
std::string FlowPath(int x0, int y0, int x1, int y1, size_t rows) {
  const int bend = std::min(x0, x1) - 12 - static_cast<int>(std::min<size_t>(rows, 25)) * 4;
  return fmt::format("<path class=\"flow\" d=\"M{} {}C{} {} {} {} {} {}\"/>\n", x0, y0, bend, y0, bend, y1, x1, y1);
}

std::string StepBox(const Json& unit, int x, int middle, int color, double longest) {
  const std::string what = unit["operators"].empty() ? Plain(unit["kind"]) : Listed(unit["operators"], " + ");
  const int bar = longest > 0 ? static_cast<int>(std::lround(StepUs(unit) / longest * kBar)) : 0;
  return fmt::format(
      "<g><title>{}</title><rect class=\"area f{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>"
      "<text x=\"{}\" y=\"{}\">{}</text><text class=\"soft\" x=\"{}\" y=\"{}\">{}</text>"
      "<rect class=\"s2\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"10\" rx=\"2\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
      StepDetails(unit), color, x, middle - kRow / 2 + 3, kBox, kRow - 6, x + 8, middle - 3,
      Text(CutLine(what, kBoxColumns)), x + 8, middle + 12, Text(CutLine(Plain(unit["kernel"]), kBoxColumns)), x + kBox + 6,
      middle - 5, bar, x + kBox + 12 + bar, middle + 4, TimeText("", StepUs(unit)));
}

}  // namespace

std::string PlanBody(const Json& plan) {
  const Json& units = plan["units"];
  const size_t shown = std::min(units.size(), kMaxItems);
  std::map<std::string, size_t> columns;
  std::map<int64_t, size_t> writers;  // by value: the row of the step that writes it
  double longest = 0, total = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    if (i < shown) columns.emplace(Plain(units[i]["device"]), columns.size());
    longest = std::max(longest, StepUs(units[i]));
    total += StepUs(units[i]);
  }
  auto left_of = [&](const Json& unit) { return kMargin + static_cast<int>(columns[Plain(unit["device"])]) * kColumn; };
  auto middle_of = [](size_t row) { return 30 + static_cast<int>(row) * kRow + kRow / 2 - 3; };
  std::string boxes, flows;
  for (size_t i = 0; i < shown; ++i) {
    const Json& unit = units[i];
    const Json& read = unit["input_ids"];
    for (size_t k = 0; k < std::min(read.size(), kMaxListed); ++k) {
      const auto writer = writers.find(read[k].get<int64_t>());
      if (writer == writers.end()) continue;
      const size_t row = writer->second;
      flows += FlowPath(left_of(units[row]), middle_of(row), left_of(unit), middle_of(i), i - row);
    }
    for (const Json& id : unit["output_ids"]) writers[id.get<int64_t>()] = i;
    boxes += StepBox(unit, left_of(unit), middle_of(i), static_cast<int>(columns[Plain(unit["device"])] % 2), longest);
  }
  std::string heads;
  for (const auto& [device, column] : columns) {
    heads += fmt::format("<text x=\"{}\" y=\"18\" font-weight=\"bold\">{}</text>\n",
                         kMargin + static_cast<int>(column) * kColumn, Text(device));
  }
  const bool measured = shown > 0 && IsMeasured(units[0]);
  auto bytes = [&](const char* key) { return HumanBytes(plan[key].get<uint64_t>()); };
  std::string out = Facts({{"device", Plain(plan["device"])},
                           {"steps", Plain(plan["steps"])},
                           {"by reference evaluators", Plain(plan["reference_steps"])},
                           {measured ? "measured time of the steps" : "estimated time of the steps", DurationText(total)},
                           {"arena", bytes("arena_bytes")},
                           {"packed constants", bytes("packed_constant_bytes")}});
  out += Paragraph(
      std::string(measured ? "Bars show measured times." : "Bars show estimated times; --measure shows measured ones.") +
      " Lines show the values that steps read. Point at a step for its nodes, layouts, reasons and alternatives.");
  return out + LeftOut(shown, units.size(), "steps") +
         fmt::format("<div class=\"wide\"><svg width=\"{}\" height=\"{}\">\n{}{}{}</svg></div>\n",
                     kMargin + static_cast<int>(std::max<size_t>(columns.size(), 1)) * kColumn,
                     40 + static_cast<int>(shown) * kRow, heads, flows, boxes);
}

}  // namespace mge::html
