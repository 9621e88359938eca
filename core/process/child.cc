// SPDX-License-Identifier: Apache-2.0
#include "core/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "core/base/file.h"
#include "core/process/child_group.h"
#include "core/process/orphan_reaper.h"
#include "fmt/format.h"

namespace mge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLine = 1 << 20;

// Reads lines from a pipe without blocking. Does not own the descriptor.
class Stream {
 public:
  explicit Stream(int fd) : fd_(fd) { fcntl(fd_, F_SETFL, O_NONBLOCK); }

  int fd() const { return open_ ? fd_ : -1; }

  // Calls `line` for every complete line that is not empty.
  void Drain(const std::function<void(std::string_view)>& line) {
    char buffer[4096];
    for (ssize_t n; (n = read(fd_, buffer, sizeof(buffer))) != 0;) {
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      for (char c : std::string_view(buffer, static_cast<size_t>(n))) {
        if (c != '\n') {
          if (text_.size() < kMaxLine) text_ += c;
          continue;
        }
        if (!text_.empty()) line(text_);
        text_.clear();
      }
    }
    open_ = false;
    if (!text_.empty()) line(text_);
    text_.clear();
  }

 private:
  int fd_;
  bool open_ = true;
  std::string text_;
};

// A pipe whose write end has a number above kReportFd, so that it does not collide with the descriptors that Spawn() assigns
// in the child.
struct Pipe {
  Fd to_read, to_write;
  int Open() {  // returns 0 or errno
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    to_read = Fd(ends[0]);
    Fd low(ends[1]);
    to_write = Fd(fcntl(low.get(), F_DUPFD_CLOEXEC, kReportFd + 1));
    return to_write.valid() ? 0 : errno;
  }
};

// Starts the program in its own process group. Returns 0 or errno.
int Spawn(const std::string& program, const std::vector<std::string>& arguments, int report, int errors, pid_t* child) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t group;
  if (int error = posix_spawn_file_actions_init(&files)) return error;
  if (int error = posix_spawnattr_init(&group)) return error;
  int error = posix_spawnattr_setflags(&group, POSIX_SPAWN_SETPGROUP);
  if (!error) error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  if (!error) error = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(&files, errors, 2);
  if (!error) error = posix_spawn_file_actions_adddup2(&files, report, kReportFd);
  if (!error) error = posix_spawnp(child, program.c_str(), &files, &group, argv.data(), environ);
  posix_spawnattr_destroy(&group);
  posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

std::string ChildEnd::Describe() const {
  std::string out;
  if (not_started != 0) return fmt::format("a child process could not be started: {}", strerror(not_started));
  if (timed_out) {
    out = "it did not respond";
  } else if (signal != 0) {
    out = fmt::format("it was killed by signal {} ({})", signal, strsignal(signal));
  } else {
    out = fmt::format("it ended the process with exit code {}", exit_code);
  }
  return last_words.empty() ? out : fmt::format("{}; last line on stderr: {}", out, last_words);
}

ChildEnd RunSelf(const std::vector<std::string>& arguments, double limit_s,
                 const std::function<bool(std::string_view)>& line) {
  return RunChild("/proc/self/exe", arguments, limit_s, line);
}

ChildEnd RunChild(const std::string& program, const std::vector<std::string>& arguments, double limit_s,
                  const std::function<bool(std::string_view)>& line) {
  ChildEnd end;
  Pipe report, errors;
  pid_t child = -1;
  OrphanReaper orphans;
  end.not_started = report.Open();
  if (!end.not_started) end.not_started = errors.Open();
  if (!end.not_started) end.not_started = Spawn(program, arguments, report.to_write.get(), errors.to_write.get(), &child);
  if (end.not_started) return end;
  ChildGroup group(child);
  report.to_write = Fd();
  errors.to_write = Fd();
  Stream lines(report.to_read.get()), talk(errors.to_read.get());

  auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s));
  Clock::time_point deadline = Clock::now() + limit;
  auto heard = [&](std::string_view text) {
    if (line(text)) deadline = Clock::now() + limit;
  };
  auto said = [&](std::string_view text) {
    if (text.find_first_not_of(" \t\r") != text.npos) end.last_words = text.substr(0, 300);
  };
  std::optional<int> ended;
  while (!ended) {
    pollfd ends[] = {{lines.fd(), POLLIN, 0}, {talk.fd(), POLLIN, 0}};
    poll(ends, 2, 20);
    lines.Drain(heard);
    talk.Drain(said);
    ended = group.Ended();
    if (ended || Clock::now() < deadline) continue;
    end.timed_out = true;
    ended = group.Kill();
  }
  orphans.End();
  lines.Drain(heard);
  talk.Drain(said);
  if (WIFEXITED(*ended)) end.exit_code = WEXITSTATUS(*ended);
  if (WIFSIGNALED(*ended)) end.signal = WTERMSIG(*ended);
  return end;
}

// The spare descriptor has a high number, because plugins that close foreign descriptors usually close the low ones.
Reporter::Reporter() {
  struct stat st;
  if (fstat(kReportFd, &st) != 0) return;
  device_ = st.st_dev;
  inode_ = st.st_ino;
  rlimit files = {};
  getrlimit(RLIMIT_NOFILE, &files);
  const rlim_t highest = std::min<rlim_t>(files.rlim_cur, 4096) - 1;
  spare_ = fcntl(kReportFd, F_DUPFD_CLOEXEC, static_cast<int>(highest));
}

Reporter::~Reporter() {
  if (IsOurs(spare_)) close(spare_);
}

bool Reporter::IsOurs(int fd) const {
  struct stat st;
  return fstat(fd, &st) == 0 && st.st_dev == device_ && st.st_ino == inode_;
}

bool Reporter::Tell(const std::string& line) const {
  const int fd = untouched() ? kReportFd : spare_;
  if (!IsOurs(fd)) return false;
  const std::string text = "\n" + line + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return true;  // the parent has closed the pipe
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace mge
