// SPDX-License-Identifier: Apache-2.0
#include "core/base/strays.h"

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

Strays::Strays() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGCHLD, SIG_DFL);  // where who has started this process ignores it, nobody can be waited for
  for (pid_t child : ChildProcesses()) known_.insert(child);
}

// What a stray has started is one when that has ended.
void Strays::End() const {
  for (bool found = true; found;) {
    found = false;
    for (pid_t stray : ChildProcesses()) {
      if (known_.contains(stray)) continue;
      const bool ends = kill(stray, SIGKILL) == 0;  // one that has other rights by now does not
      found |= waitpid(stray, nullptr, ends ? 0 : WNOHANG) == stray;
    }
  }
}

}  // namespace mge
