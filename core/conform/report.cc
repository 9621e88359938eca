// SPDX-License-Identifier: Apache-2.0
// The report as JSON (for programs) and as Markdown (for people).
#include <algorithm>
#include <map>
#include <set>

#include "core/conform/cases.h"
#include "core/conform/conform.h"
#include "core/ops/op.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace mge::conform {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 5;  // number of findings per check in the Markdown report

// Escapes a text for a cell of a Markdown table.
std::string Cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return EscapeControl(out);
}

std::string Matrix(const Report& report) {
  static constexpr const char* kTypes[] = {"float32", "float64", "float16", "bfloat16", "int8",   "int16", "int32",
                                           "int64",   "uint8",   "uint16",  "uint32",   "uint64", "bool"};
  std::map<std::string, std::map<std::string, const Support*>> rows;
  for (const Support& s : report.support) rows[s.op][s.dtype] = &s;
  std::vector<std::string> types;  // those of the report, in the order of the list
  std::string head = "| operator |", line = "|---|", body, reasons, none;
  for (const char* type : kTypes) {
    if (std::ranges::count(report.support, type, &Support::dtype) == 0) continue;
    types.push_back(type);
    head += fmt::format(" {} |", type), line += "---|";
  }
  for (const auto& [op, cells] : rows) {
    bool any = std::ranges::any_of(cells, [](const auto& c) { return c.second->supported; });
    std::map<std::string, std::string> why;  // reason -> types
    if (any)
      body += fmt::format("| {} |", op);
    else
      none += (none.empty() ? "" : ", ") + op;
    for (const std::string& type : types) {
      auto at = cells.find(type);
      if (any) body += at == cells.end() ? "  |" : at->second->supported ? " yes |" : " no |";
      if (at == cells.end() || at->second->supported || at->second->what == "no kernel") continue;
      std::string& list = why[at->second->what];
      list += (list.empty() ? "" : ", ") + type;
    }
    if (any) body += "\n";
    for (const auto& [reason, list] : why) reasons += fmt::format("- {} ({}): {}\n", op, list, EscapeControl(reason));
  }
  std::string out = body.empty() ? "" : head + "\n" + line + "\n" + body;
  if (!none.empty()) out += fmt::format("\nWithout a kernel: {}.\n", none);
  if (!reasons.empty()) out += "\nRefused problems, with the reason:\n\n" + reasons;
  return out;
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
  size_t all = 0, set = 0;
  std::string unset;
  for (const auto& [op, attributes] : CoverageOf(report)) {
    for (const auto& [name, values] : attributes) {
      ++all;
      set += !values.empty();
      if (values.empty()) unset += fmt::format("{}{}.{}", unset.empty() ? "" : ", ", op, name);
    }
  }
  std::string out =
      fmt::format("{} cases ran; they set {} of the {} attributes of their operators.\n", report.cases.size(), set, all);
  if (!unset.empty()) out += fmt::format("Only with their defaults: {}.\n", unset);
  return out;
}

// Returns the last line of the report: "failed: pool.last_use (1), kernel.bounds (14)".
std::string LastLine(const Report& report) {
  std::string what;
  for (const CheckResult& c : report.checks) {
    if (c.outcome == Outcome::kFailed) what += fmt::format("{}{} ({})", what.empty() ? ": " : ", ", c.name, c.found);
  }
  if (size_t n = report.unexpected_passes.size()) {
    what += fmt::format("{}unexpected passes ({})", what.empty() ? ": " : ", ", n);
  }
  if (report.Result() == "incomplete") {
    what = report.Fact("no_device").empty() ? ": no kernel was tested" : ": there was no device to test";
  }
  return fmt::format("{}{}\n", report.Result(), what);
}

}  // namespace

std::string ReportJson(const Report& report) {
  Json out = {{"schema", "mge.sdk-test/1"},
              {"path", report.path},
              {"result", report.Result()},
              {"quick", report.quick},
              {"seconds", report.seconds}};
  for (const auto& [name, value] : report.facts) {
    if (name != "device") out[name] = value;
  }
  out["devices"] = Json::array();
  for (const auto& [name, value] : report.facts) {
    if (name == "device") out["devices"].push_back(value);
  }
  for (Outcome o : {Outcome::kPassed, Outcome::kFailed, Outcome::kExpectedFailure, Outcome::kUnsupported}) {
    std::string key(OutcomeName(o));
    std::replace(key.begin(), key.end(), ' ', '_');
    out["counts"][key] = report.Count(o);
  }
  out["checks"] = Json::array();
  for (const CheckResult& c : report.checks) {
    Json row = {{"name", c.name}, {"proves", c.proves}, {"result", OutcomeName(c.outcome)}};
    if (!c.reason.empty()) row["reason"] = c.reason;
    if (c.found) row["found"] = c.found;
    if (c.may_fail) row["may_fail"] = true;
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
  std::string name = report.Fact("name");
  std::string out =
      fmt::format("# {}: {}\n\n", name.empty() ? EscapeControl(report.path) : EscapeControl(name), report.Result());
  for (auto [fact, text] : {std::pair("no_device", "There was no device to test"), {"no_kernel", "No kernel was tested"}}) {
    if (std::string why = report.Fact(fact); !why.empty()) out += fmt::format("**{}**: {}.\n\n", text, EscapeControl(why));
  }
  out += fmt::format("File {}", EscapeControl(report.path));
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
  for (const CheckResult& c : report.checks) {
    if (c.findings.empty()) continue;
    findings += fmt::format("\n**{}** ({} found): {}\n\n", c.name, c.found, c.proves);
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
