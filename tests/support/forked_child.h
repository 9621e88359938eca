// SPDX-License-Identifier: Apache-2.0
// Runs a piece of a test in a forked child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace mge {

// Calls f() in a forked child. Returns 0 if it is true there; another number if it is false, or if the child crashes or runs
// longer than a minute.
template <typename F>
int InChild(F f) {
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(f() ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace mge
