// SPDX-License-Identifier: Apache-2.0
// The process group that a child leads: what the child starts is in it, and ends with it. The terminal's signals do not
// reach the group; where one of them ends this process, it ends the group first.
#pragma once

#include <sys/types.h>

#include <optional>

namespace mge {

class ChildGroup {
 public:
  // As fork(). The child leads a group and does not outlive this thread; a signal waits until the parent knows the group.
  static pid_t Fork(std::optional<ChildGroup>& group);

  // Of a child that leads a group, or is about to, and that nobody else waits for.
  explicit ChildGroup(pid_t leader);
  ~ChildGroup();  // Kill(), where the leader is not known to have ended
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

  // How the leader ended, as of waitpid, once it has. What it left behind in the group has ended then, too.
  std::optional<int> Ended();
  int Kill();

 private:
  const pid_t leader_;
  const int place_;
  std::optional<int> status_;
};

}  // namespace mge
