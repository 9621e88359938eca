// SPDX-License-Identifier: Apache-2.0
// Child processes that may crash, exit or hang: start, report, time limit and end.
//
// Each child leads its own process group. When the child ends, the whole group is killed; a process that leaves the group is
// not. The terminal sends its signals only to this process's group, so a handler for SIGHUP, SIGINT and SIGTERM kills the
// groups of all children before the signal ends this process. Signals that were ignored or handled before keep their
// disposition.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"

namespace mge {

inline constexpr int kNotExecuted = 127;  // the exit code of a program that could not be executed, as in a shell
inline constexpr int kReportFd = 3;       // the descriptor of the report in a program that Child::Execute() started

// The end of a child process.
struct ChildEnd {
  int not_started = 0;     // errno if the child could not be started
  bool timed_out = false;  // it was killed after the time limit
  int exit_code = -1;      // -1 if it did not exit
  int signal = 0;          // the signal that killed it, or 0
  std::string last_line;   // the last non-empty line of its output
  bool fine() const { return not_started == 0 && !timed_out && exit_code == 0; }
  // Returns a sentence such as "it was killed by signal 11 (Segmentation fault)". `seconds` is the time limit.
  std::string Describe(double seconds) const;
};

// Owns one child process and its group. Not thread-safe.
class Child {
 public:
  // Forks and calls `body` in the child with the descriptor of the report, then exits with code 0. stdin is /dev/null, and
  // stdout and stderr lead to `output`. No core file is written. The child is killed when the thread that forked it ends.
  // Returns nullptr and sets errno if no process can be started.
  static std::unique_ptr<Child> Fork(const std::function<void(int report)>& body, double seconds);
  // Executes mge-worker, the program at `path`, with the arguments `task` and the id of this process. Its stdin is a file in
  // memory with the request, its report goes to kReportFd, and it gets no other descriptor. For libraries: changes no signal
  // handler and calls no handler of fork(). The program should call EndWithParent() first. Returns nullptr and sets errno if
  // it cannot be executed.
  static std::unique_ptr<Child> Execute(const std::string& path, std::string task, std::string_view request, double seconds);
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  std::string report, output;  // the bytes that were read; the caller removes what it has used

  // Moves the time limit to `seconds` from now.
  void LimitTo(double seconds);
  // Appends the available bytes to `report` and `output`. Does not block.
  void Read();
  // Reads until the child has ended. Calls `take` after each read.
  void ReadToEnd(const std::function<void()>& take);
  // Returns whether the child has ended. If the time limit is over, kills it first. When it has ended, reads the last bytes.
  bool Ended();
  const ChildEnd& end() const { return end_; }  // valid after Ended() has returned true

  // Waits until a child has written something or may have ended, at most 20 ms.
  static void WaitForAny(const std::vector<Child*>& children);

 private:
  Child() = default;
  void Kill();

  pid_t leader_ = 0;  // 0 after the child was waited for
  Fd report_, output_;
  std::chrono::steady_clock::time_point deadline_;
  ChildEnd end_;
};

// Runs a program until it ends, without a time limit. `program` is a path, or a name that is searched in PATH. `arguments`
// begin with the program's name. If it cannot be executed, the exit code is kNotExecuted and the last line is the reason.
ChildEnd RunProgram(const std::string& program, const std::vector<std::string>& arguments);

// Installs the handlers that kill the groups of all children when a signal ends this process. Child::Fork() does it.
void EndChildrenBySignals();

// Lets the kernel kill this process when the thread that executed it ends, and writes no core file. Exits if that process,
// `parent`, has already ended.
void EndWithParent(pid_t parent);

// Returns whether this process has a child process, running or ended.
bool HasChildProcess();

}  // namespace mge
