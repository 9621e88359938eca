// SPDX-License-Identifier: Apache-2.0
// The conformance kit: checks any backend's file through the plugin ABI alone.
//
// Why: the host trusts a backend to keep many rules (order, bounds, ownership, errors) that it cannot check while it runs a
// model.
//
// Algorithm: first load, start, open, close and stop the backend once. If this fails, only the checks that do not depend on
// it run. Then run each check, and all cases of each operator, in a child process with a time limit. A crash, an exit or a
// hang of the child is a finding of that check, and the other checks go on. Kernel results are compared with the reference
// evaluators.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/env/registry.h"

namespace mge::conform {

// The options of `mge sdk test`.
struct Options {
  bool quick = false;  // run every kind of check, but only on a few operators
  bool full = false;   // let allocations fail in every element type of a kernel, and not only in the first
  int jobs = 0;        // child processes at a time; 0: the number of processors, at most 4
  double seconds = 0;  // time limit of one check, longer if starting is slow; 0: 20, or 300 for all cases of an operator
  std::string expected_failures = {};      // path of a list, see ReadExpected; empty: none
  std::vector<std::string> may_fail = {};  // names of checks, or prefixes of them, that may pass or fail
  std::vector<std::string> only = {};  // names of checks, of operators, or prefixes; both: these checks of these operators
  Sources given = {};                  // the user's settings of the backend
  std::function<void(size_t done, size_t total)> progress = {};
  std::function<void(const std::string&)> warn = {};
};

enum class Outcome { kPassed, kFailed, kUnsupported, kExpectedFailure };
std::string_view OutcomeName(Outcome outcome);  // "passed"

// One observed violation of the contract.
struct Finding {
  std::string where;  // the case, or the action during which it was observed
  std::string what;
  std::string expected;  // the reason from the list of expected failures; empty: not in the list
  size_t times = 1;      // the number of occurrences
};

// The result of one check.
struct CheckResult {
  std::string name, proves;
  Outcome outcome = Outcome::kUnsupported;
  std::string reason;  // the reason for kUnsupported
  std::vector<Finding> findings;
  size_t found = 0;  // the number of all occurrences; `findings` holds the first different ones
  bool may_fail = false;
};

// One cell of the support matrix.
struct Support {
  std::string op, dtype;
  bool supported = false;
  std::string what;  // the candidates, or the reason for the refusal
};

// The result of a run of the kit.
struct Report {
  std::string path;
  bool quick = false;
  double seconds = 0;  // duration of the run
  // Pairs of name and value: name, version, interface, build_id, classes, device (several). `on_demand` is a setting that
  // the kit chose to get devices. `no_device` and `no_kernel` are the reasons why no device or no kernel was tested.
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<CheckResult> checks;  // the requested checks
  std::vector<Support> support;
  std::vector<std::pair<std::string, std::string>> cases;  // operator (or name of a group) and case, of each that ran
  std::vector<std::string> unexpected_passes;              // lines of the list of expected failures that matched no finding

  size_t Count(Outcome outcome) const;
  std::string Fact(std::string_view name) const;  // the first fact with this name, or ""
  // Returns the result of the run: "failed", "incomplete" if a requested test lacked a device or a kernel, or "passed".
  std::string_view Result() const;
  bool passed() const { return Result() == "passed"; }
};

// Runs the kit on a backend's file. The process must have only one thread, because the kit forks. Faults of the backend are
// findings in the report. Fails if the user's input is invalid (an unreadable file or list, an unknown name or setting).
// Fails if no child process can be started.
absl::StatusOr<Report> CheckBackend(const std::string& path, const Options& options);

// A line of the list of expected failures: "CHECK | PART OF WHERE | reason". An empty part matches every finding of the
// check. '#' begins a comment.
struct Expected {
  std::string check, where, reason, line;
};
// Reads a list. Fails with kUsage and the line number if a line is malformed or names an unknown check.
absl::StatusOr<std::vector<Expected>> ReadExpected(const std::string& path);

std::string ReportJson(const Report& report);      // schema "mge.sdk-test/1"
std::string ReportMarkdown(const Report& report);  // for people, with the support matrix

}  // namespace mge::conform
