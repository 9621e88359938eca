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
  for (pid_t child : ChildProcesses()) known_.insert(child);
}

// What a stray has started is one when that has ended.
void Strays::End() const {
  for (bool found = true; found;) {
    found = false;
    for (pid_t stray : ChildProcesses()) {
      if (known_.contains(stray)) continue;
      kill(stray, SIGKILL);
      found |= waitpid(stray, nullptr, 0) == stray;
    }
  }
}

}  // namespace mge
