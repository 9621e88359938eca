// SPDX-License-Identifier: Apache-2.0
#include "core/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_split.h"
#include "core/base/errno_text.h"
#include "core/base/lines.h"
#include "fmt/format.h"

namespace mge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxUnread = 1 << 20;  // bytes of a child's report or output that are kept

// Returns a copy of a descriptor above those that a child replaces: dup2() of one onto itself would keep O_CLOEXEC.
Fd Above(const Fd& low) { return Fd(fcntl(low.get(), F_DUPFD_CLOEXEC, kReportFd + 1)); }

struct Pipe {
  Fd to_read, to_write;
  bool Open() {  // sets errno on failure
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    to_read = Fd(ends[0]);
    to_write = Above(Fd(ends[1]));
    return to_write.valid() && fcntl(to_read.get(), F_SETFL, O_NONBLOCK) == 0;
  }
};

// Prepares a new child of the process `parent`. The process may be a copy of one with threads, so only functions that are
// safe in signal handlers are called here.
void BeChild(pid_t parent, const Fd& output) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (getppid() != parent) _exit(1);  // it ended before prctl()
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  dup2(Above(Fd(open("/dev/null", O_RDONLY | O_CLOEXEC))).get(), STDIN_FILENO);
  dup2(output.get(), STDOUT_FILENO);
  dup2(output.get(), STDERR_FILENO);
}

// Appends the available bytes, and closes the descriptor at the end of the stream.
void ReadInto(Fd& fd, std::string& text) {
  char buffer[1 << 16];  // as large as a pipe
  const ssize_t n = fd.valid() ? read(fd.get(), buffer, sizeof(buffer)) : -1;
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  if (n == 0) fd = Fd();
  if (text.size() > kMaxUnread) text.erase(0, text.size() - kMaxUnread / 2);
}

}  // namespace

std::string ChildEnd::Describe(double seconds) const {
  if (not_started != 0) return fmt::format("a child process could not be started: {}", ErrnoText(not_started));
  std::string out = timed_out       ? fmt::format("it did not respond within {:g} s", seconds)
                    : signal != 0   ? fmt::format("it was killed by signal {} ({})", signal, strsignal(signal))
                    : exit_code < 0 ? "it ended the process"
                                    : fmt::format("it ended the process with exit code {}", exit_code);
  return last_line.empty() ? out : fmt::format("{}; last line of its output: {}", out, last_line);
}

std::unique_ptr<Child> Child::Start(pid_t (*fork_process)(), const std::function<void(int report)>& body, double seconds) {
  std::unique_ptr<Child> child(new Child);
  Pipe report, output;
  const pid_t parent = getpid(), leader = report.Open() && output.Open() ? fork_process() : -1;
  if (leader < 0) child->end_.not_started = errno;
  if (leader < 0) return child;
  if (leader == 0) {
    BeChild(parent, output.to_write);
    report.to_read = Fd();
    output.to_read = Fd();
    body(report.to_write.get());
    _exit(0);
  }
  setpgid(leader, leader);  // the child may not have called it yet
  child->leader_ = leader;
  child->report_ = std::move(report.to_read);
  child->output_ = std::move(output.to_read);
  child->LimitTo(seconds);
  return child;
}

std::unique_ptr<Child> Child::Fork(const std::function<void(int report)>& body, double seconds) {
  signal(SIGCHLD, SIG_DFL);
  std::fflush(stdout);  // else the child could write the bytes again
  return Start(fork, body, seconds);
}

std::unique_ptr<Child> Child::Execute(const std::vector<std::string>& command, std::string_view input, double seconds) {
  const Fd in = Above(Fd(memfd_create("the input of a child", MFD_CLOEXEC)));
  WriteRange(in.get(), 0, AsBytes(input), "the input of a child").IgnoreError();  // it finds a shorter file then
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  auto execute = [&](int report) {  // calls only functions that are safe in signal handlers
    dup2(in.get(), STDIN_FILENO);
    dup2(report, kReportFd);
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
    closefrom(kReportFd + 1);
    execvp(argv[0], argv.data());
    const char* why = strerrordesc_np(errno);
    (void)!write(STDERR_FILENO, why, strlen(why));
    _exit(kNotExecuted);
  };
  return Start(_Fork, execute, seconds);
}

void Child::LimitTo(double seconds) {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Child::Read() {
  ReadInto(report_, report);
  ReadInto(output_, output);
}

std::vector<std::string> Child::TakeLines() {
  const size_t end = report.rfind('\n') + 1;
  const std::vector<std::string> lines = absl::StrSplit(report.substr(0, end), '\n', absl::SkipEmpty());
  report.erase(0, end);
  return lines;
}

void Child::ReadToEnd(const std::function<bool()>& go_on) {
  while (!Ended()) {
    WaitForAny({this});
    Read();
    if (!go_on()) return;
  }
  go_on();
}

bool Child::Ended() {
  siginfo_t leader = {};
  // Fails if no process was started, or if other code ignores SIGCHLD or waits for all children: the result is then lost.
  const bool lost = waitid(P_PID, static_cast<id_t>(leader_), &leader, WEXITED | WNOHANG | WNOWAIT) != 0;
  const bool ended = lost || leader.si_pid != 0;
  if (!ended && Clock::now() < deadline_) return false;
  end_.timed_out = !ended;
  if (lost) leader_ = 0;
  Kill();
  Read();
  if (const std::vector<std::string_view> lines = LinesOf(output); !lines.empty())
    end_.last_line = lines.back().substr(0, 300);
  return true;
}

// The process id cannot be reused before waitpid() returns, so kill() reaches only this group.
void Child::Kill() {
  if (leader_ == 0) return;
  kill(-leader_, SIGKILL);
  kill(leader_, SIGKILL);  // the leader may have moved to another group
  int status = 0;
  while (waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
  }
  leader_ = 0;
  if (WIFEXITED(status)) end_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
}

void Child::WaitForAny(const std::vector<Child*>& children) {
  constexpr int kPatienceMs = 5;  // poll() does not report the end of a child that keeps its files open
  std::vector<pollfd> files;
  for (const Child* child : children) {
    for (const Fd* fd : {&child->report_, &child->output_}) files.push_back({fd->get(), POLLIN, 0});
  }
  poll(files.data(), files.size(), kPatienceMs);
}

}  // namespace mge
