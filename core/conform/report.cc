// SPDX-License-Identifier: Apache-2.0
// The report as JSON (for programs) and as Markdown (for people).
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_replace.h"
#include "core/conform/cases.h"
#include "core/conform/causes.h"
#include "core/conform/conform.h"
#include "core/ops/op.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

namespace mge::conform {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 5;  // number of findings per check in the Markdown report

// Escapes a text for a cell of a Markdown table.
std::string Cell(std::string_view text) { return EscapeControl(absl::StrReplaceAll(Absl(text), {{"|", "\\|"}})); }

std::string Matrix(const Report& report) {
  std::map<std::string, std::map<std::string, const Support*>> rows;
  for (const Support& s : report.support) rows[s.op][s.dtype] = &s;
  std::vector<std::string_view> types;  // those of the report
  for (DType d : kCaseTypes) {
    if (std::ranges::count(report.support, DTypeName(d), &Support::dtype) > 0) types.push_back(DTypeName(d));
  }
  std::string table, reasons;
  std::vector<std::string> none;
  for (const auto& [op, cells] : rows) {
    std::string line;
    std::map<std::string, std::vector<std::string_view>> why;  // reason -> types
    for (std::string_view type : types) {
      const auto at = cells.find(std::string(type));
      const Support* cell = at == cells.end() ? nullptr : at->second;
      line += !cell ? "  |" : cell->supported ? " yes |" : " no |";
      if (cell && !cell->supported && cell->what != "no kernel") why[cell->what].push_back(type);
    }
    if (line.find("yes") != line.npos)
      table += fmt::format("| {} |{}\n", op, line);
    else
      none.push_back(op);
    for (const auto& [reason, list] : why)
      reasons += fmt::format("- {} ({}): {}\n", op, fmt::join(list, ", "), EscapeControl(reason));
  }
  if (!table.empty()) {
    const std::vector<std::string_view> rules(types.size() + 1, "---");
    table = fmt::format("| operator | {} |\n|{}|\n{}", fmt::join(types, " | "), fmt::join(rules, "|"), table);
  }
  if (!none.empty()) table += fmt::format("\nWithout a kernel: {}.\n", fmt::join(none, ", "));
  if (!reasons.empty()) table += "\nRefused problems, with the reason:\n\n" + reasons;
  return table;
}

// The values of each attribute that the cases which ran set, by operator and attribute. An attribute without values was
// tested with its default only.
using Coverage = std::map<std::string, std::map<std::string, std::set<std::string>>>;

Coverage CoverageOf(const Report& report) {
  Coverage out;
  for (const auto& [op, name] : report.cases) {
    const auto def = std::ranges::find(AllOps(), op, &OpDef::name);
    if (def == AllOps().end()) continue;  // a group
    for (const Attr& attr : (*def)->attrs) {
      if (!attr.name.starts_with('_')) out[op][std::string(attr.name)];
    }
    for (const auto& [attribute, value] : ParseSpec(name).attributes) out[op][attribute].insert(value);
  }
  return out;
}

// Returns the number of cases, and the attributes that no case sets.
std::string CoverageText(const Report& report) {
  size_t set = 0;
  std::vector<std::string> unset;
  for (const auto& [op, attributes] : CoverageOf(report)) {
    for (const auto& [name, values] : attributes) {
      set += !values.empty();
      if (values.empty()) unset.push_back(op + "." + name);
    }
  }
  std::string out = fmt::format("{} cases ran; they set {} of the {} attributes of their operators.\n", report.cases.size(),
                                set, set + unset.size());
  if (!unset.empty()) out += fmt::format("Only with their defaults: {}.\n", fmt::join(unset, ", "));
  return out;
}

// Returns the last line of the report: "failed: fence.wait (1), perhaps therefore kernel.numerics (3), pool.trim (1)".
std::string LastLine(const Report& report) {
  std::vector<std::string> what;
  const CheckResult* before = nullptr;  // the cause of the check before
  for (const auto& [c, cause] : FailedByCause(report)) {
    what.push_back(fmt::format("{}{} ({})", cause && cause != before ? "perhaps therefore " : "", c->name, c->found));
    before = cause;
  }
  if (size_t n = report.unexpected_passes.size()) what.push_back(fmt::format("unexpected passes ({})", n));
  if (report.Result() == "incomplete")
    what = {report.Fact("no_device").empty() ? "no kernel was tested" : "there was no device to test"};
  return fmt::format("{}{}{}\n", report.Result(), what.empty() ? "" : ": ", fmt::join(what, ", "));
}

}  // namespace

std::string ReportJson(const Report& report) {
  Json out = {{"schema", "mge.sdk-test/1"},
              {"path", report.path},
              {"result", report.Result()},
              {"quick", report.quick},
              {"seconds", report.seconds}};
  Json devices = Json::array();
  for (const auto& [name, value] : report.facts) {
    if (name == "device")
      devices.push_back(value);
    else
      out[name] = value;
  }
  out["devices"] = std::move(devices);
  for (Outcome o : {Outcome::kPassed, Outcome::kFailed, Outcome::kExpectedFailure, Outcome::kUnsupported}) {
    std::string key(OutcomeName(o));
    std::replace(key.begin(), key.end(), ' ', '_');
    out["counts"][key] = report.Count(o);
  }
  const std::vector<FailedCheck> failed = FailedByCause(report);
  if (!failed.empty()) out["first_cause"] = failed[0].check->name;
  out["checks"] = Json::array();
  for (const CheckResult& c : report.checks) {
    Json row = {{"name", c.name}, {"proves", c.proves}, {"result", OutcomeName(c.outcome)}};
    if (!c.reason.empty()) row["reason"] = c.reason;
    if (c.found) row["found"] = c.found;
    if (c.may_fail) row["may_fail"] = true;
    for (const auto& [check, cause] : failed) {
      if (check == &c && cause) row["cause"] = cause->name;
    }
    for (const Finding& f : c.findings) {
      Json finding = {{"where", f.where}, {"what", f.what}};
      if (f.times > 1) finding["times"] = f.times;
      if (!f.expected.empty()) finding["expected"] = f.expected;
      row["findings"].push_back(std::move(finding));
    }
    out["checks"].push_back(std::move(row));
  }
  out["unexpected_passes"] = report.unexpected_passes;
  out["support"] = Json::array();
  for (const Support& s : report.support) {
    out["support"].push_back({{"operator", s.op},
                              {"type", s.dtype},
                              {"supported", s.supported},
                              {s.supported ? "candidates" : "reason", s.what}});
  }
  out["cases"] = Json::array();
  for (const auto& [op, name] : report.cases) out["cases"].push_back(name);
  out["coverage"] = CoverageOf(report);
  return out.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string ReportMarkdown(const Report& report) {
  const std::string name = EscapeControl(report.Fact("name")), path = EscapeControl(report.path);
  std::string out = fmt::format("# {}: {}\n\n", name.empty() ? path : name, report.Result());
  for (auto [fact, text] : {std::pair("no_device", "There was no device to test"), {"no_kernel", "No kernel was tested"}}) {
    if (std::string why = report.Fact(fact); !why.empty()) out += fmt::format("**{}**: {}.\n\n", text, EscapeControl(why));
  }
  out += fmt::format("File {}", path);
  if (!name.empty())
    out += fmt::format(", version {}, interface {}, build id {}", EscapeControl(report.Fact("version")),
                       report.Fact("interface"), report.Fact("build_id"));
  out += fmt::format(".\n{} passed, {} failed, {} failed as expected, {} unsupported; {} of operators, {:.1f} s.\n\n",
                     report.Count(Outcome::kPassed), report.Count(Outcome::kFailed), report.Count(Outcome::kExpectedFailure),
                     report.Count(Outcome::kUnsupported), report.quick ? "a sample" : "all", report.seconds);
  for (const auto& [key, value] : report.facts) {
    if (key == "device") out += fmt::format("- device {}\n", EscapeControl(value));
    if (key == "on_demand")
      out += fmt::format("- the number of devices is a setting: tested with {}\n", EscapeControl(value));
  }
  for (const CheckResult& c : report.checks) {
    if (c.may_fail) out += fmt::format("- may fail: {} ({})\n", c.name, c.found ? "failed" : "did not fail");
  }
  std::string findings;
  std::vector<FailedCheck> found = FailedByCause(report);
  for (const CheckResult& c : report.checks) {
    if (c.outcome != Outcome::kFailed && !c.findings.empty()) found.push_back({&c, nullptr});
  }
  for (const auto& [check, cause] : found) {
    const CheckResult& c = *check;
    findings += fmt::format("\n**{}** ({} found{}): {}\n\n", c.name, c.found,
                            cause ? ", perhaps because of " + cause->name : std::string(), c.proves);
    size_t more = c.found;
    for (size_t i = 0; i < std::min(kShown, c.findings.size()); ++i) {
      const Finding& f = c.findings[i];
      findings += fmt::format("- {}{}{}{}{}\n", EscapeControl(f.where), f.where.empty() ? "" : ": ", EscapeControl(f.what),
                              f.times > 1 ? fmt::format(" ({} times)", f.times) : "",
                              f.expected.empty() ? "" : fmt::format(" (expected: {})", f.expected));
      more -= f.times;
    }
    if (more) findings += fmt::format("- and {} more; see the JSON report\n", more);
  }
  if (!findings.empty()) out += "\n## Findings\n" + findings;
  if (!report.unexpected_passes.empty()) {
    out += "\n## Unexpected passes\n\nRemove these lines from the list of expected failures:\n\n";
    for (const std::string& line : report.unexpected_passes) out += fmt::format("- `{}`\n", EscapeControl(line));
  }
  if (!report.checks.empty()) out += "\n## Checks\n\n| check | result | what it proves |\n|---|---|---|\n";
  for (const CheckResult& c : report.checks) {
    std::string result(OutcomeName(c.outcome));
    if (!c.reason.empty()) result += ": " + Cell(c.reason);
    out += fmt::format("| {} | {} | {} |\n", c.name, result, Cell(c.proves));
  }
  if (!report.cases.empty()) out += "\n## Cases\n\n" + CoverageText(report);
  if (std::string matrix = Matrix(report); !matrix.empty()) out += "\n## Operators\n\n" + matrix;
  return out + "\n" + LastLine(report);
}

}  // namespace mge::conform
