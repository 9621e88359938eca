// SPDX-License-Identifier: Apache-2.0
// Processes that a child leaves behind outside of its group, as a daemon does.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace mge {

// The child processes of this process, those that have ended and were not waited for among them.
std::vector<pid_t> ChildProcesses();

// From its making on, what a child of this process leaves behind becomes a child of this process, too, and all of them can be
// waited for. Such a child is a stray, unless it was there before or is named here.
class Strays {
 public:
  Strays();
  void Except(pid_t child) { known_.insert(child); }
  void Forget(pid_t child) { known_.erase(child); }  // one that was waited for: its number may be another's next
  void End() const;

 private:
  std::set<pid_t> known_;
};

}  // namespace mge
