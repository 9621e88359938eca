// SPDX-License-Identifier: Apache-2.0
// The process group that a child leads: what the child starts is in it, and ends with it. The terminal's signals do not
// reach the group; where one of them ends this process, it ends the group first.
#pragma once

#include <sys/types.h>

#include <optional>

namespace mge {

class ChildGroup {
 public:
  // As fork(). The child leads a group and does not outlive its parent; a signal waits until the parent knows the group.
  static pid_t Fork(std::optional<ChildGroup>& group);

  // Of a child that leads a group, or is about to.
  explicit ChildGroup(pid_t leader);
  ~ChildGroup();  // ends what the leader has left behind
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

  int Kill() const;  // the leader too, which was not waited for yet; answers how it ended
  void End() const;  // what the leader has left behind

 private:
  const pid_t leader_;
  const int place_;
};

}  // namespace mge
