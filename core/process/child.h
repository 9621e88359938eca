// SPDX-License-Identifier: Apache-2.0
// Child processes that may crash, exit or hang: start, report, time limit and end.
//
// Each child leads its own process group. When the child ends, the whole group is killed; a process that leaves the group is
// not. If this process or the thread that started the child ends first, the kernel kills the child, but not its group.
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

inline constexpr int kNotExecuted = 127;     // the exit code of a program that could not be executed, as in a shell
inline constexpr int kReportFd = 3;          // the descriptor of the report in a program that Child::Execute() started
inline constexpr double kNoTimeLimit = 1e9;  // seconds

// The end of a child process.
struct ChildEnd {
  int not_started = 0;     // errno if no process could be started; then the child has ended
  bool timed_out = false;  // it was killed after the time limit
  int exit_code = -1;      // -1 if it did not exit
  int signal = 0;          // the signal that killed it, or 0
  std::string last_line;   // the last non-empty line of its output
  bool fine() const { return not_started == 0 && !timed_out && exit_code == 0; }
  // Returns a sentence such as "it was killed by signal 11 (Segmentation fault)". `seconds` is the time limit.
  std::string Describe(double seconds) const;
};

// Owns one child process and its group. Not thread-safe. stdout and stderr of the child lead to `output`, and it writes no
// core file.
class Child {
 public:
  // Forks and calls `body` in the child with the descriptor of the report, then exits with code 0. stdin is /dev/null. For
  // programs: resets the handling of SIGCHLD, which may be inherited as ignored; then no child could be waited for.
  static std::unique_ptr<Child> Fork(const std::function<void(int report)>& body, double seconds);
  // Executes a program: `command` is its path, or a name that is searched in PATH, and its arguments. stdin is a file in
  // memory with `input`, the report goes to kReportFd, and no other descriptor is open. If it cannot be executed, the exit
  // code is kNotExecuted and the last line is the reason. For libraries: calls no handler of fork() (pthread_atfork).
  static std::unique_ptr<Child> Execute(const std::vector<std::string>& command, std::string_view input, double seconds);
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  std::string report, output;  // the bytes that were read; the caller removes what it has used

  void LimitTo(double seconds);          // moves the time limit to `seconds` from now
  void Read();                           // appends the available bytes to `report` and `output`; does not block
  std::vector<std::string> TakeLines();  // removes the complete lines from `report` and returns them
  // Returns whether the child has ended. If the time limit is over, kills it first. When it has ended, reads the last bytes.
  bool Ended();
  // Reads until the child has ended or go_on() returns false. Calls go_on() after each read.
  void ReadToEnd(const std::function<bool()>& go_on);
  const ChildEnd& end() const { return end_; }  // valid after Ended() has returned true

  // Waits until a child has written something or may have ended, at most 5 ms.
  static void WaitForAny(const std::vector<Child*>& children);

 private:
  Child() = default;
  static std::unique_ptr<Child> Start(pid_t (*fork_process)(), const std::function<void(int report)>& body, double seconds);
  void Kill();

  pid_t leader_ = 0;  // 0 after the child was waited for
  Fd report_, output_;
  std::chrono::steady_clock::time_point deadline_;
  ChildEnd end_;
};

}  // namespace mge
