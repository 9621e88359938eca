// SPDX-License-Identifier: Apache-2.0
// Runs a child process that may crash, exit or hang, and reads the lines that it reports.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mge {

inline constexpr int kReportFd = 3;  // the descriptor to which the child writes its report

// The end of a child process.
struct ChildEnd {
  int not_started = 0;     // errno if the child could not be started
  bool timed_out = false;  // it was killed after the time limit
  int exit_code = -1;      // -1 if it did not exit
  int signal = 0;          // the signal that killed it, or 0
  std::string last_words;  // the last non-empty line that it wrote to stderr
  bool fine() const { return not_started == 0 && !timed_out && exit_code == 0; }
  std::string Describe() const;  // "it was killed by signal 11 (Segmentation fault)"
};

// Runs a program in its own process group, with stdin and stdout redirected to /dev/null. `program` is a path, or a name
// that is searched in PATH. `arguments` begin with the program's name. Calls `line` for every line that the child writes to
// kReportFd; it must return whether the line comes from the child itself and not from a plugin. If no such line arrives for
// `limit_s` seconds, kills the group. When the child has ended, kills all orphan processes that it left.
ChildEnd RunChild(const std::string& program, const std::vector<std::string>& arguments, double limit_s,
                  const std::function<bool(std::string_view)>& line);

// Does the same for the executable of this process.
ChildEnd RunSelf(const std::vector<std::string>& arguments, double limit_s,
                 const std::function<bool(std::string_view)>& line);

// The child's side of the report. A plugin may close descriptors that it does not own, and files that it opens later get
// their numbers. Therefore the reporter keeps a spare descriptor and checks the identity of the file before it writes.
class Reporter {
 public:
  Reporter();
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  bool untouched() const { return IsOurs(kReportFd); }
  // Writes the line with a line break before and after it, so that a plugin's output cannot merge with it. Returns false if
  // both descriptors were closed.
  bool Tell(const std::string& line) const;

 private:
  bool IsOurs(int fd) const;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int spare_ = -1;  // a copy of kReportFd with a high number
};

}  // namespace mge
