// SPDX-License-Identifier: Apache-2.0
#include "core/process/orphan_reaper.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace mge {

std::vector<pid_t> ChildProcesses() {
  std::vector<pid_t> out;
  std::error_code code;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", code)) {
    std::ifstream children(thread.path() / "children");
    for (pid_t child; children >> child;) out.push_back(child);
  }
  return out;
}

OrphanReaper::OrphanReaper() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGCHLD, SIG_DFL);  // it may be inherited as ignored; waitpid then gets no status
  for (pid_t child : ChildProcesses()) known_.insert(child);
}

// Repeats the search: when an orphan ends, its own children become orphans.
void OrphanReaper::End() const {
  for (bool found = true; found;) {
    found = false;
    for (pid_t stray : ChildProcesses()) {
      if (known_.contains(stray)) continue;
      const bool ends = kill(stray, SIGKILL) == 0;  // fails for an orphan that changed its user id
      found |= waitpid(stray, nullptr, ends ? 0 : WNOHANG) == stray;
    }
  }
}

}  // namespace mge
