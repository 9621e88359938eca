// SPDX-License-Identifier: Apache-2.0
// Runs dangerous work in child processes, some at a time: a crash, an exit or a hang is an answer like any other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/conform/witness.h"

namespace mge::conform {

struct Task {
  std::string name;
  std::string check;                        // whose fault it is if the child ends before its first Begin()
  std::function<void(Witness&)> body;       // runs in the child
  double seconds = 0;                       // limit; Witness::Fit may ask for kMostLimits times as long
};

// Called in this process for every record of a task, in the task's order. A child that dies or is stopped adds a kFound.
using OnRecord = std::function<void(const Task&, const Record&)>;
using OnDone = std::function<void(const Task&, double seconds)>;

// The process must have one thread only, because it forks. What a child starts ends with it. kOutOfMemory if no child can be
// started, which says nothing of its task.
absl::Status RunTasks(const std::vector<Task>& tasks, int at_a_time, const OnRecord& on_record, const OnDone& on_done);

}  // namespace mge::conform
