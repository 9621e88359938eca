// SPDX-License-Identifier: Apache-2.0
// A child process with its own process group. Ending the group also ends the processes that the child started.
//
// The terminal sends its signals only to this process's group, not to the child's. Therefore this process handles SIGHUP,
// SIGINT, SIGQUIT and SIGTERM: the handler kills all such groups, then the signal ends this process as usual. Signals that
// were ignored or handled before keep their disposition.
#pragma once

#include <sys/types.h>

#include <optional>

namespace mge {

// Owns one child process, the leader of its group. Not thread-safe.
class ChildGroup {
 public:
  // Forks and returns like fork(). In the parent, sets `group`. The child leads a new group and is killed when the thread
  // that forked it ends. Ending signals are blocked until the group is registered.
  static pid_t Fork(std::optional<ChildGroup>& group);

  // Registers the group of `leader`, a child process of this process. Only this object may wait for the child.
  explicit ChildGroup(pid_t leader);
  ~ChildGroup();  // calls Kill() unless the leader was already waited for
  ChildGroup(const ChildGroup&) = delete;
  ChildGroup& operator=(const ChildGroup&) = delete;

  // Returns the leader's status as from waitpid, or nullopt while the leader runs. Does not block. When the leader has
  // ended, kills the rest of the group.
  std::optional<int> Ended();

  // Kills the group, waits for the leader and returns its status as from waitpid.
  int Kill();

 private:
  const pid_t leader_;
  const int place_;  // index in the table that the signal handler reads; -1 if the table was full
  std::optional<int> status_;
};

}  // namespace mge
