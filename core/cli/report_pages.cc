// SPDX-License-Identifier: Apache-2.0
#include "core/cli/report_pages.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/cli/html.h"
#include "core/cli/terminal.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

using html::kMaxItems;

std::string Listed(const Json& texts, const char* separator) {
  std::string out;
  for (const Json& text : texts) out += (out.empty() ? "" : separator) + Text(text);
  return out;
}

std::string Cut(const std::string& text, size_t columns) { return html::Text(CutLine(text, columns)); }

// Returns an estimated or measured time, or "" if it is unknown.
std::string TimeText(const char* label, const Json& us) {
  return us.is_number() && us.get<double>() >= 0 ? fmt::format("{}{}", label, DurationText(us.get<double>())) : "";
}

bool IsMeasured(const Json& unit) { return unit.contains("in_the_run") && unit["in_the_run"].is_object(); }

// Returns what a step of a plan shows when the pointer is above it, as HTML. Only the line breaks are ours.
std::string StepDetails(const Json& unit) {
  auto text = [](const Json& value) { return html::Text(Text(value)); };
  auto lines = [&](const Json& values) {
    std::string out;
    for (const Json& value : values) out += "  " + text(value) + "\n";
    return out;
  };
  std::string out = fmt::format("nodes: {}\nkernel: {} on {}\n", html::Text(Listed(unit["nodes"], ", ")),
                                text(unit["kernel"]), text(unit["device"]));
  if (!Text(unit["fusion"]).empty()) out += fmt::format("fused by: {}\n", text(unit["fusion"]));
  out += fmt::format("reads:\n{}writes:\n{}why: {}\n", lines(unit["inputs"]), lines(unit["outputs"]), text(unit["reason"]));
  if (std::string time = TimeText("estimated: ", unit["cost_us"]); !time.empty()) out += time + "\n";
  if (IsMeasured(unit)) out += TimeText("measured: ", unit["in_the_run"]["median_us"]) + "\n";
  for (const Json& other : unit["alternatives"])
    out += fmt::format("not {}: {}\n", text(other["id"]), text(other["reason"]));
  return out;
}

// Returns the time of a step that decides its bar: the measured one if there is one.
double StepUs(const Json& unit) {
  if (IsMeasured(unit)) return std::max(0.0, unit["in_the_run"]["median_us"].get<double>());
  return std::max(0.0, unit["cost_us"].get<double>());
}

constexpr const char* kClasses[] = {"a", "b", "c", "d"};
constexpr int kRow = 34, kBox = 380, kColumn = 680, kMargin = 130, kBar = 200;

}  // namespace

std::string PlanPicture(const Json& plan) {
  const Json& units = plan["units"];
  const size_t shown = std::min(units.size(), kMaxItems);
  std::map<std::string, size_t> columns;
  std::map<int64_t, size_t> writers;  // by value: the row of the step that writes it
  double longest = 0;
  for (size_t i = 0; i < shown; ++i) {
    columns.emplace(Text(units[i]["device"]), columns.size());
    longest = std::max(longest, StepUs(units[i]));
  }
  std::string boxes, lines;
  for (size_t i = 0; i < shown; ++i) {
    const Json& unit = units[i];
    const size_t column = columns[Text(unit["device"])];
    const int x = kMargin + static_cast<int>(column) * kColumn, y = 30 + static_cast<int>(i) * kRow;
    const int middle = y + kRow / 2 - 3;
    for (const Json& id : unit["input_ids"]) {
      const auto writer = writers.find(id.get<int64_t>());
      if (writer == writers.end()) continue;
      const size_t from = columns[Text(units[writer->second]["device"])];
      const int x0 = kMargin + static_cast<int>(from) * kColumn,
                y0 = 30 + static_cast<int>(writer->second) * kRow + kRow / 2 - 3;
      const int bend = std::min(x, x0) - 12 - static_cast<int>(std::min<size_t>(i - writer->second, 25)) * 4;
      lines += fmt::format("<path d=\"M{} {}C{} {} {} {} {} {}\"/>\n", x0, y0, bend, y0, bend, middle, x, middle);
    }
    for (const Json& id : unit["output_ids"]) writers[id.get<int64_t>()] = i;
    const std::string what = unit["operators"].empty() ? Text(unit["kind"]) : Listed(unit["operators"], " + ");
    const double us = StepUs(unit);
    const int bar = longest > 0 ? static_cast<int>(std::lround(us / longest * kBar)) : 0;
    boxes += fmt::format(
        "<g><title>{}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>"
        "<text x=\"{}\" y=\"{}\">{}</text><text class=\"soft\" x=\"{}\" y=\"{}\">{}</text>"
        "<rect class=\"c\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"12\"/><text x=\"{}\" y=\"{}\">{}</text></g>\n",
        StepDetails(unit), kClasses[column % 2], x, y, kBox, kRow - 6, x + 8, middle - 1, Cut(what, 56), x + 8, middle + 11,
        Cut(Text(unit["kernel"]), 56), x + kBox + 6, middle - 6, bar, x + kBox + 12 + bar, middle + 4, TimeText("", us));
  }
  std::string heads;
  for (const auto& [device, column] : columns) {
    heads += fmt::format("<text x=\"{}\" y=\"18\" font-weight=\"bold\">{}</text>\n",
                         kMargin + static_cast<int>(column) * kColumn, html::Text(device));
  }
  const std::string measured = shown > 0 && IsMeasured(units[0])
                                   ? "Bars show measured times."
                                   : "Bars show estimated times; --measure shows measured ones.";
  return fmt::format(
      "<p>{} steps, {} of them by reference evaluators; arena {}. {} Point at a step for its nodes, layouts, reasons and "
      "alternatives.</p>\n{}<svg width=\"{}\" height=\"{}\">\n{}{}{}</svg>\n",
      plan["steps"].get<int64_t>(), plan["reference_steps"].get<int64_t>(), HumanBytes(plan["arena_bytes"].get<uint64_t>()),
      measured, html::LeftOut(units.size(), "steps"), kMargin + static_cast<int>(columns.size()) * kColumn,
      40 + static_cast<int>(shown) * kRow, heads, lines, boxes);
}

std::string MemoryPicture(const Json& memory) {
  constexpr double kWidth = 1000, kHeight = 400;
  auto bytes = [](const Json& value) { return HumanBytes(value.get<uint64_t>()); };
  std::string out = fmt::format("<p>Planned peak {}, measured peak {}; packed constants {}, plain constants {}.</p>\n",
                                bytes(memory["planned_peak_bytes"]), bytes(memory["measured_peak_bytes"]),
                                bytes(memory["packed_constant_bytes"]), bytes(memory["constant_bytes"]));
  std::vector<const Json*> buffers;
  for (const Json& buffer : memory["buffers"]) buffers.push_back(&buffer);
  out += html::LeftOut(buffers.size(), "buffers");
  // The largest ones are shown.
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const Json* a, const Json* b) { return (*a)["bytes"] > (*b)["bytes"]; });
  if (buffers.size() > kMaxItems) buffers.resize(kMaxItems);
  const double steps = std::max(1.0, memory["steps"].get<double>());
  for (size_t arena = 0; arena < memory["arenas"].size(); ++arena) {
    const Json& facts = memory["arenas"][arena];
    const double size = std::max(1.0, facts["bytes"].get<double>());
    out += fmt::format(
        "<h2>Arena {} on {}: {}</h2>\n<p>Steps from left to right, offsets from bottom to top.</p>\n"
        "<svg width=\"{}\" height=\"{}\">\n",
        arena, html::Text(Text(facts["device"])), bytes(facts["bytes"]), kWidth + 2, kHeight + 2);
    for (const Json* b : buffers) {
      if ((*b)["arena"] != arena || !(*b)["offset"].is_number()) continue;
      const double first = (*b)["first_step"].get<double>(), last = (*b)["last_step"].get<double>();
      const double high = (*b)["bytes"].get<double>() / size * kHeight, low = (*b)["offset"].get<double>() / size * kHeight;
      const bool is_workspace = (*b)["category"] == "workspace";
      out += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"><title>{}\n{} {}, offset "
          "{}\nsteps "
          "{:.0f} to {:.0f}</title></rect>\n",
          is_workspace ? "c" : "a", 1 + first / steps * kWidth, 1 + kHeight - low - high,
          std::max(1.0, (last - first + 1) / steps * kWidth), std::max(0.5, high), html::Text(Text((*b)["name"])),
          html::Text(Text((*b)["category"])), bytes((*b)["bytes"]), (*b)["offset"].get<int64_t>(), first, last);
    }
    out += "</svg>\n";
  }
  return out + "<p>Blue: activations. Orange: workspaces of kernels.</p>\n";
}

}  // namespace mge::cli
