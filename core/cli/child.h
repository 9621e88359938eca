// SPDX-License-Identifier: Apache-2.0
// A child process that may crash, leave or hang: how it ended, and what it said until then.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mge::cli {

inline constexpr int kReportFd = 3;  // where the child writes its lines

struct ChildEnd {
  int not_started = 0;     // errno, if there was no child
  bool timed_out = false;  // killed by us
  int exit_code = -1;      // if it left
  int signal = 0;          // if it was killed
  std::string last_words;  // the last line that it wrote to stderr
  bool fine() const { return not_started == 0 && !timed_out && exit_code == 0; }
  std::string Describe() const;  // "it was killed by signal 11 (Segmentation fault)"
};

// Runs a program, a path or a name that PATH is searched for, in a process group of its own, without stdin and stdout.
// `arguments` begin with the program's name. `line` gets every line that the child writes to kReportFd, and returns whether it is
// one of the child's own, and not a plugin's; whenever none of those has come for `limit_s` seconds, the group is killed. Processes
// that the child leaves behind end with it.
ChildEnd RunChild(const std::string& program, const std::vector<std::string>& arguments, double limit_s,
                  const std::function<bool(std::string_view)>& line);

// The same for this very program.
ChildEnd RunSelf(const std::vector<std::string>& arguments, double limit_s,
                 const std::function<bool(std::string_view)>& line);

// The child's side: where it writes its lines. A plugin may close descriptors that are not its own, and what it opens then
// has their numbers.
class Reporter {
 public:
  Reporter();
  ~Reporter();
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  bool untouched() const { return IsOurs(kReportFd); }
  // False if nothing leads there any more. The line stands alone, whatever else is written there.
  bool Tell(const std::string& line) const;

 private:
  bool IsOurs(int fd) const;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  int spare_ = -1;
};

}  // namespace mge::cli
