// SPDX-License-Identifier: Apache-2.0
// Termination of orphan processes: processes that a child started outside of its process group (such as daemons) and that
// still run when the child has ended.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

namespace mge {

// Returns the child processes of this process, including those that have ended but were not waited for.
std::vector<pid_t> ChildProcesses();

// Finds and ends the orphans of child processes. The constructor makes this process a subreaper (prctl(2)): orphaned
// descendants become its children. It also sets SIGCHLD to its default action, so that children can be waited for. Both
// effects last until the process ends. Every child counts as an orphan unless it existed before or Except() names it.
// Not thread-safe.
class OrphanReaper {
 public:
  OrphanReaper();
  void Except(pid_t child) { known_.insert(child); }
  void Forget(pid_t child) { known_.erase(child); }  // to be called after waitpid: the process id may be reused

  // Kills all orphans and waits for them, until no orphan is left.
  void End() const;

 private:
  std::set<pid_t> known_;  // children that are not orphans
};

}  // namespace mge
