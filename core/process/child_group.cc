// SPDX-License-Identifier: Apache-2.0
#include "core/process/child_group.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace mge {
namespace {

constexpr int kPlaces = 1024;  // maximum number of registered groups; a signal does not kill any further group
std::atomic<pid_t> leaders[kPlaces];
static_assert(std::atomic<pid_t>::is_always_lock_free);  // the signal handler reads them

void EndGroupsFirst(int number) {
  for (const std::atomic<pid_t>& leader : leaders) {
    if (const pid_t group = leader) kill(-group, SIGKILL);
  }
  raise(number);  // ends the process when the handler returns, because SA_RESETHAND restored the default action
}

constexpr int kEnding[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// Installs the handler for each ending signal that has the default action. An ignored signal stays ignored (nohup).
void WatchSignals() {
  for (int number : kEnding) {
    struct sigaction present = {}, ours = {};
    if (sigaction(number, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;
    ours.sa_handler = EndGroupsFirst;
    ours.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(number, &ours, nullptr);
  }
}

int Enter(pid_t leader) {
  WatchSignals();
  for (int i = 0; i < kPlaces; ++i) {
    pid_t none = 0;
    if (leaders[i].compare_exchange_strong(none, leader)) return i;
  }
  return -1;
}

void Lead() {
  for (std::atomic<pid_t>& leader : leaders) leader = 0;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace

pid_t ChildGroup::Fork(std::optional<ChildGroup>& group) {
  sigset_t ending, before;
  sigemptyset(&ending);
  for (int number : kEnding) sigaddset(&ending, number);
  sigprocmask(SIG_BLOCK, &ending, &before);
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) Lead();
  if (child > 0) group.emplace(child);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return child;
}

ChildGroup::ChildGroup(pid_t leader) : leader_(leader), place_(Enter(leader)) {
  setpgid(leader, leader);  // the child may not have called it yet
}

ChildGroup::~ChildGroup() {
  if (!status_) Kill();
}

std::optional<int> ChildGroup::Ended() {
  siginfo_t leader = {};
  if (!status_ && waitid(P_PID, static_cast<id_t>(leader_), &leader, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      leader.si_pid != 0) {
    Kill();
  }
  return status_;
}

// The process id cannot be reused before waitpid returns, so kill() reaches only this group.
int ChildGroup::Kill() {
  kill(-leader_, SIGKILL);
  kill(leader_, SIGKILL);  // the leader may have moved to another group
  if (place_ >= 0) leaders[place_] = 0;
  int status = 0;
  while (waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
  return status;
}

}  // namespace mge
