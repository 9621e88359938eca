// SPDX-License-Identifier: Apache-2.0
// Runs tasks in child processes, several at a time. A crash, an exit or a hang of a child becomes a finding of its task.
//
// Method: each task runs in a forked child (core/process). The child writes records to a pipe while it runs, so records that
// were written before a crash are not lost.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace mge::conform {

enum class RecordKind : char {
  kBegin = 'B',       // a later crash is a finding of `check`
  kAt = 'A',          // the current action, in `where`
  kApplied = 'P',     // `check` was applied
  kFound = 'F',       // a violation of the contract; without a check: of the one that was begun, at its current action
  kNotOffered = 'U',  // `check` has nothing to test; `what` is the reason
  kSupported = 'S',   // operator `check`, element type `where`, candidates `what`
  kRefused = 'R',     // operator `check`, element type `where`, reason of the refusal `what`
  kRan = 'C',         // a kernel was tested with the case `where`
  kFact = 'I',        // a fact for the head of the report: `where` is its name
  kMisuse = 'M',      // the user's input is invalid: id of the error `check`, title `where`, fix `what`
  kWarning = 'W',     // a warning `what` for the user; not part of the report
  kEnd = 'E',         // the task has ended normally
  kDone = 'D',        // the process has ended; the last record of every task
};

struct CheckRecord {
  RecordKind kind;
  std::string check, where, what;
};

// A writer of records to a pipe. Thread-safe.
class CheckReporter {
 public:
  explicit CheckReporter(int fd) : fd_(fd) {}  // `fd` is not owned

  void Begin(std::string_view check) { Write(RecordKind::kBegin, check, {}, {}); }
  void At(std::string_view where) { Write(RecordKind::kAt, {}, where, {}); }
  void Applied(std::string_view check) { Write(RecordKind::kApplied, check, {}, {}); }
  void Found(std::string_view check, std::string_view where, std::string_view what) {
    Write(RecordKind::kFound, check, where, what);
  }
  void NotOffered(std::string_view check, std::string_view reason) { Write(RecordKind::kNotOffered, check, {}, reason); }
  void Fact(std::string_view name, std::string_view value) { Write(RecordKind::kFact, {}, name, value); }
  void End() { Write(RecordKind::kEnd, {}, {}, {}); }
  void EndWithExit();  // makes exit() write the kEnd record as its last action
  void Write(RecordKind kind, std::string_view check, std::string_view where, std::string_view what);

 private:
  int fd_;
};

struct Task {
  std::string check;                         // the check that gets the finding if the child ends before its first Begin()
  std::function<void(CheckReporter&)> body;  // runs in the child
  double seconds = 0;                        // time limit
};

// A callback for every record, in the order of each task. It runs in this process. If a child dies or is killed, a record of
// kind kFound is added.
using OnRecord = std::function<void(const CheckRecord&)>;

// Runs all tasks, at most `at_a_time` at once. The process must have only one thread, because it forks. Processes of the
// child's group are killed when it ends. Fails with kOutOfMemory if no child process can be started.
absl::Status RunTasks(const std::vector<Task>& tasks, int at_a_time, const OnRecord& on_record);

}  // namespace mge::conform
