// SPDX-License-Identifier: Apache-2.0
// The conformance kit: judges any backend's file through the ABI alone. Every check runs in a process of its own, so that a
// crash or a hang is a finding and the rest goes on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/conform/settings.h"

namespace mge::conform {

struct Options {
  bool quick = false;                  // every kind of check, on five operators
  int jobs = 0;                        // child processes at a time; 0: as many as processors, at most 4
  double seconds = 0;                  // limit of one check, see task.h; 0: 20, or 120 for all cases of one operator
  std::string expected_failures = {};  // path of a list, see ReadExpected; empty for none
  std::vector<std::string> only = {};  // names of checks or operators, or beginnings of them; empty for all
  Given given = {};                    // settings of the backend
  std::function<void(size_t done, size_t total)> progress = {};
  std::function<void(const std::string&)> warn = {};
};

enum class Outcome { kPassed, kFailed, kUnsupported, kExpectedFailure };
std::string_view OutcomeName(Outcome outcome);  // "passed"

struct Finding {
  std::string where;  // the case, or what was being done
  std::string what;
  std::string expected;  // why the list of expected failures has it; empty if it does not
  size_t times = 1;      // that it was found
};

struct CheckResult {
  std::string name, proves;
  Outcome outcome = Outcome::kUnsupported;
  std::string reason;  // why it is unsupported
  std::vector<Finding> findings;
  size_t found = 0;  // all of them; `findings` holds the first ones, each once
};

// One cell of the support matrix.
struct Support {
  std::string op, dtype;
  bool supported = false;
  std::string what;  // candidates, or the reason of the refusal
};

struct Report {
  std::string path;
  bool quick = false;
  double seconds = 0;
  // name, version, interface, build_id, classes, device...; on_demand: a setting that the kit chose so that there are
  // devices; no_device: why there is none to test; no_kernel: why none was tested.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<CheckResult> checks;  // without those that were not asked for
  std::vector<Support> support;
  std::vector<std::string> unexpected_passes;  // lines of the list of expected failures that nothing matched

  size_t Count(Outcome outcome) const;
  std::string Fact(std::string_view name) const;  // the first of that name; empty if there is none
  // Of the whole: "failed", "incomplete" where a device or a kernel was missing for what was to be tested, or "passed".
  std::string_view Result() const;
  bool passed() const { return Result() == "passed"; }
};

// Errors are about what the user gave: a file or list that cannot be read, names and settings that do not exist; what the
// backend does wrong stands in the report. The process must have one thread only.
absl::StatusOr<Report> Judge(const std::string& path, const Options& options);

// A line of the list: "CHECK | PART OF WHERE | reason"; an empty part matches everything; '#' begins a comment.
struct Expected {
  std::string check, where, reason, line;
};
absl::StatusOr<std::vector<Expected>> ReadExpected(const std::string& path);

std::string ReportJson(const Report& report);      // "mge.sdk-test/1"
std::string ReportMarkdown(const Report& report);  // with the support matrix

}  // namespace mge::conform
