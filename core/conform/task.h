// SPDX-License-Identifier: Apache-2.0
// Runs tasks in child processes, several at a time. A crash, an exit or a hang of a child becomes a finding of its task.
//
// Method: each task runs in a forked child (core/process), whose report consists of records (check_reporter.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/conform/check_reporter.h"

namespace mge::conform {

struct Task {
  std::string name;
  std::string check;                         // the check that gets the finding if the child ends before its first Begin()
  std::function<void(CheckReporter&)> body;  // runs in the child
  double seconds = 0;                        // time limit; CheckReporter::Fit() may extend it up to kMostLimits times
};

// A callback for every record of a task, in the task's order. It runs in this process. If a child dies or is killed, a
// record of kind kFound is added.
using OnRecord = std::function<void(const Task&, const CheckRecord&)>;
using OnDone = std::function<void(const Task&, double seconds)>;

// Runs all tasks, at most `at_a_time` at once. The process must have only one thread, because it forks. Processes of the
// child's group are killed when it ends. Fails with kOutOfMemory if no child process can be started.
absl::Status RunTasks(const std::vector<Task>& tasks, int at_a_time, const OnRecord& on_record, const OnDone& on_done);

}  // namespace mge::conform
