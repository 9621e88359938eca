// SPDX-License-Identifier: Apache-2.0
// The process group that a child leads: what the child starts is in it, and ends with it. The terminal's signals do not
// reach the group; where one of them ends this process, it ends the group first.
#pragma once

#include <sys/types.h>

namespace mge {

class ChildGroup {
 public:
  // In a child that was forked: it leads a group from now on, and does not outlive its parent.
  static void Lead();

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
