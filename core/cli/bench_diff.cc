// SPDX-License-Identifier: Apache-2.0
#include "core/cli/bench_diff.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "core/base/input_file.h"
#include "core/cli/page_file.h"
#include "core/html/page.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr int64_t kMaxReportBytes = int64_t{1} << 30;

// A number that every report has, and its place in it.
struct MetricRow {
  const char* title;
  const char* unit;
  std::vector<const char*> path;
};
const MetricRow kBenchMetrics[] = {
    {"latency, median", "us", {"latency_us", "p50"}},
    {"latency, fastest run", "us", {"latency_us", "min"}},
    {"latency, p90", "us", {"latency_us", "p90"}},
    {"latency, p99", "us", {"latency_us", "p99"}},
    {"load", "ms", {"load_ms"}},
    {"first result", "ms", {"first_result_ms"}},
    {"peak memory of the process", "bytes", {"peak_rss_bytes"}},
    {"planned peak", "bytes", {"planned_peak_bytes"}},
};

// Returns the number at a path of keys. nullopt if there is none: the file comes from anybody.
std::optional<double> NumberAt(const Json& report, const std::vector<const char*>& path) {
  const Json* at = &report;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return std::nullopt;
    at = &(*at)[key];
  }
  if (!at->is_number() || !std::isfinite(at->get<double>())) return std::nullopt;
  return at->get<double>();
}

std::string TextAt(const Json& report, const char* key) {
  if (!report.is_object() || !report.contains(key)) return {};
  return report[key].is_string() ? report[key].get<std::string>() : report[key].dump();
}

absl::Status WrongReport(const std::string& path, std::string_view what) {
  return Fail(errors::kUsage, fmt::format("'{}' is not a report that can be compared", path),
              {.what = std::string(what),
               .where = path,
               .fix = "write both files with `mge bench MODEL --json`, or both with `mge profile MODEL --json`"});
}

// Reads the reports of a file: one, or several one after the other.
absl::Status ReadReports(const std::string& path, std::vector<Json>* out) {
  const absl::StatusOr<InputBytes> input = ReadInput(path, kMaxReportBytes);
  if (!input.ok()) return input.status();
  std::istringstream stream{std::string(AsText(input->bytes))};
  try {
    while (stream >> std::ws && !stream.eof()) stream >> out->emplace_back();
  } catch (const Json::exception&) {
    return WrongReport(path, "it is not JSON, or is cut off");
  }
  if (out->empty()) return WrongReport(path, "it is empty");
  const std::string schema = TextAt(out->front(), "schema");
  for (const Json& report : *out) {
    const std::string own = TextAt(report, "schema");
    if (own != "mge.bench/1" && own != "mge.profile/1") return WrongReport(path, fmt::format("its schema is '{}'", own));
    if (own != schema) return WrongReport(path, fmt::format("it has reports '{}' and '{}'", schema, own));
  }
  return absl::OkStatus();
}

// Returns what was measured: the model, without its folder, and the conditions.
std::string NameOfReport(const Json& report) {
  const std::string model = TextAt(report, "model"), neighbours = TextAt(report, "neighbours");
  std::string name = model.substr(model.rfind('/') + 1);
  name += fmt::format("{}{}, {} threads", name.empty() ? "" : " on ", TextAt(report, "device"), TextAt(report, "threads"));
  if (const std::string io = TextAt(report, "io"); !io.empty() && io != "host") name += ", io " + io;
  if (!neighbours.empty() && neighbours != "0") name += fmt::format(", {} neighbours", neighbours);
  if (report.contains("inputs") && report["inputs"].is_array()) {
    for (const Json& input : report["inputs"]) {
      if (const std::string shape = TextAt(input, "shape"); !shape.empty()) name += fmt::format(", {}", shape);
    }
  }
  return name;
}

// Values of one side by name. Values of the same name are joined to their sum or to the smallest one, which other programs
// of the machine disturbed least.
struct MeasuredSide {
  std::vector<std::string> names;  // in the order of the file
  std::map<std::string, double> values;

  void Add(const std::string& name, double value, bool sums) {
    const auto [at, is_new] = values.emplace(name, value);
    if (is_new) names.push_back(name);
    if (!is_new) at->second = sums ? at->second + value : std::min(at->second, value);
  }
};

// Returns a group of rows from the values of both sides. Names that one side lacks are added to *only_before or *only_after.
Json GroupOf(std::string_view title, std::string_view unit, const MeasuredSide& before, const MeasuredSide& after,
             Json* only_before, Json* only_after) {
  Json rows = Json::array();
  auto note = [](Json* list, const std::string& name) {
    if (std::ranges::find(*list, Json(name)) == list->end()) list->push_back(name);
  };
  for (const std::string& name : before.names) {
    const auto other = after.values.find(name);
    if (other == after.values.end()) {
      note(only_before, name);
      continue;
    }
    const double was = before.values.at(name), is = other->second;
    rows.push_back({{"name", name}, {"before", was}, {"after", is}, {"ratio", was > 0 ? Json(is / was) : Json()}});
  }
  for (const std::string& name : after.names) {
    if (!before.values.contains(name)) note(only_after, name);
  }
  return {{"title", title}, {"unit", unit}, {"rows", std::move(rows)}};
}

// Returns the values of one metric, by the name of their report. If `name` is not empty, it is the name of all: with one
// report on each side, these are compared whatever was measured.
MeasuredSide MetricOf(const std::vector<Json>& reports, const MetricRow& metric, const std::string& name) {
  MeasuredSide side;
  for (const Json& report : reports) {
    const std::optional<double> value = NumberAt(report, metric.path);
    const bool in_ms = std::string_view(metric.unit) == "ms";
    if (value) side.Add(name.empty() ? NameOfReport(report) : name, in_ms ? *value * 1000 : *value, false);
  }
  return side;
}

// Returns the times of the rows of a profile, such as its steps, by their name at `key`.
MeasuredSide TimesIn(const Json& profile, const char* list, const char* key) {
  MeasuredSide side;
  if (!profile.contains(list) || !profile[list].is_array()) return side;
  for (const Json& row : profile[list]) {
    if (const auto us = NumberAt(row, {"time_us"})) side.Add(TextAt(row, key), *us, true);
  }
  return side;
}

void SortByDifference(Json& group) {
  std::vector<Json> rows(group["rows"].begin(), group["rows"].end());
  auto difference = [](const Json& row) { return std::abs(row["after"].get<double>() - row["before"].get<double>()); };
  std::ranges::stable_sort(rows, [&](const Json& a, const Json& b) { return difference(a) > difference(b); });
  group["rows"] = rows;
}

// Returns the report "mge.bench_diff/1".
Json CompareReports(const BenchDiffOptions& o, const std::vector<Json>& before, const std::vector<Json>& after) {
  Json groups = Json::array(), only_before = Json::array(), only_after = Json::array();
  const bool single = before.size() == 1 && after.size() == 1;
  const std::string one = single ? NameOfReport(after[0]) : "";
  auto add = [&](std::string_view title, std::string_view unit, const MeasuredSide& was, const MeasuredSide& is) {
    Json group = GroupOf(title, unit, was, is, &only_before, &only_after);
    if (!group["rows"].empty()) groups.push_back(std::move(group));
  };
  if (TextAt(before[0], "schema") == "mge.bench/1") {
    for (const MetricRow& metric : kBenchMetrics) {
      add(metric.title, std::string_view(metric.unit) == "bytes" ? "bytes" : "us", MetricOf(before, metric, one),
          MetricOf(after, metric, one));
    }
  } else {
    const MetricRow run = {"run", "us", {"wall_us"}};
    add("run", "us", MetricOf(before, run, one), MetricOf(after, run, one));
    add("operators", "us", TimesIn(before[0], "operators", "operator"), TimesIn(after[0], "operators", "operator"));
    add("steps", "us", TimesIn(before[0], "steps", "label"), TimesIn(after[0], "steps", "label"));
    for (Json& group : groups) SortByDifference(group);
  }
  return {{"schema", "mge.bench_diff/1"},       {"before", o.before},          {"after", o.after},
          {"of", TextAt(before[0], "schema")},  {"groups", std::move(groups)}, {"only_before", std::move(only_before)},
          {"only_after", std::move(only_after)}};
}

std::string RenderDiff(const Json& diff, int64_t top) {
  std::vector<std::vector<std::string>> table = {{"", "BEFORE", "AFTER", "AFTER/BEFORE", "OF"}};
  for (const Json& group : diff["groups"]) {
    const std::string unit = group["unit"];
    const size_t all = group["rows"].size(), shown = top > 0 ? std::min(all, static_cast<size_t>(top)) : all;
    for (size_t i = 0; i < shown; ++i) {
      const Json& row = group["rows"][i];
      table.push_back({Text(group["title"]), ValueText(row["before"], unit), ValueText(row["after"], unit),
                       row["ratio"].is_null() ? "-" : fmt::format("{:.3f}", row["ratio"].get<double>()), Text(row["name"])});
    }
    if (shown < all) table.push_back({fmt::format("{} more {}", all - shown, Text(group["title"])), "", "", "", ""});
  }
  std::string out = Table(table);
  for (const char* side : {"before", "after"}) {
    for (const Json& name : diff[fmt::format("only_{}", side)]) {
      out += fmt::format("only {}: {}\n", side, Escape(Text(name)));
    }
  }
  return out;
}

}  // namespace

std::string ValueText(const Json& value, const std::string& unit) {
  const double number = value.get<double>();
  if (unit != "bytes") return DurationText(number);
  return HumanBytes(static_cast<uint64_t>(std::clamp(number, 0.0, 1e18)));
}

int RunBenchDiff(const Globals& globals, const BenchDiffOptions& o) {
  if (int code = CheckPagePath(globals, o.page)) return code;
  std::vector<Json> before, after;
  if (absl::Status s = ReadReports(o.before, &before); !s.ok()) return Report(globals, s);
  if (absl::Status s = ReadReports(o.after, &after); !s.ok()) return Report(globals, s);
  const std::string schema = TextAt(before[0], "schema"), other = TextAt(after[0], "schema");
  if (schema != other)
    return Report(globals, WrongReport(o.after, fmt::format("its schema is '{}', not '{}'", other, schema)));
  if (schema == "mge.profile/1" && (before.size() > 1 || after.size() > 1)) {
    return Report(globals, WrongReport(before.size() > 1 ? o.before : o.after, "it has several profiles; one is needed"));
  }
  const Json diff = CompareReports(o, before, after);
  if (diff["groups"].empty()) return Report(globals, WrongReport(o.after, fmt::format("it has no row of '{}'", o.before)));
  if (!o.page.empty()) {
    if (int code = WritePage(globals, o.page, html::Page("Comparison of measurements", BenchDiffBody(diff)))) return code;
  }
  globals.json ? PrintJson(diff) : Print(RenderDiff(diff, o.top));
  return kExitOk;
}

}  // namespace mge::cli
