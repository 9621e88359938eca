// SPDX-License-Identifier: Apache-2.0
#include "core/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "fmt/format.h"

namespace mge::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLine = 1 << 20;

// One end of a pipe that is read without waiting.
class Stream {
 public:
  explicit Stream(int fd) : fd_(fd) { fcntl(fd_, F_SETFL, O_NONBLOCK); }
  ~Stream() { close(fd_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int fd() const { return open_ ? fd_ : -1; }

  // Hands every whole line on.
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
        line(text_);
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

struct Pipe {
  int ends[2] = {-1, -1};
  bool Open() { return pipe2(ends, O_CLOEXEC) == 0; }
};

// Between fork() and execv() only what a signal handler may call: another thread may hold any lock.
pid_t Spawn(const std::vector<std::string>& arguments, int report, int errors) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  int in = open("/dev/null", O_RDONLY), out = open("/dev/null", O_WRONLY);
  bool ready = dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(errors, 2) == 2 && dup2(report, kReportFd) == kReportFd;
  if (ready) execv("/proc/self/exe", argv.data());
  _exit(127);
}

}  // namespace

std::string ChildEnd::Describe() const {
  std::string out;
  if (!started) return "a child process could not be started";
  if (timed_out) {
    out = "it did not answer";
  } else if (signal != 0) {
    out = fmt::format("it was killed by signal {} ({})", signal, strsignal(signal));
  } else {
    out = fmt::format("it ended the process with exit code {}", exit_code);
  }
  return last_words.empty() ? out : fmt::format("{}; its last words: {}", out, last_words);
}

ChildEnd RunSelf(const std::vector<std::string>& arguments, double limit_s,
                 const std::function<void(std::string_view)>& line) {
  ChildEnd end;
  Pipe report, errors;
  if (!report.Open() || !errors.Open()) return end;
  // Above the numbers that the child gets, so that no dup2 there hits one of them.
  int report_end = fcntl(report.ends[1], F_DUPFD_CLOEXEC, 10), errors_end = fcntl(errors.ends[1], F_DUPFD_CLOEXEC, 10);
  pid_t child = Spawn(arguments, report_end, errors_end);
  for (int fd : {report.ends[1], errors.ends[1], report_end, errors_end}) close(fd);
  Stream lines(report.ends[0]), talk(errors.ends[0]);
  if (child < 0) return end;
  setpgid(child, child);  // here too, so that it holds before anything is killed
  end.started = true;

  auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit_s));
  Clock::time_point deadline = Clock::now() + limit;
  auto heard = [&](std::string_view text) {
    deadline = Clock::now() + limit;
    line(text);
  };
  auto said = [&](std::string_view text) {
    if (text.find_first_not_of(" \t\r") != text.npos) end.last_words = text.substr(0, 300);
  };
  int status = 0;
  for (;;) {
    pollfd ends[] = {{lines.fd(), POLLIN, 0}, {talk.fd(), POLLIN, 0}};
    poll(ends, 2, 20);
    lines.Drain(heard);
    talk.Drain(said);
    if (waitpid(child, &status, WNOHANG) == child) break;
    if (Clock::now() < deadline) continue;
    end.timed_out = true;
    kill(-child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    break;
  }
  kill(-child, SIGKILL);  // what the plugin may have started
  lines.Drain(heard);
  talk.Drain(said);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

}  // namespace mge::cli
