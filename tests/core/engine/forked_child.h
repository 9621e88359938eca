// SPDX-License-Identifier: Apache-2.0
// Runs a piece of a test in a forked child.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace mge {

// 0 if f() is true in the child; another number if it is false, or the child dies or takes a minute.
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
