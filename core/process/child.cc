// SPDX-License-Identifier: Apache-2.0
#include "core/process/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/errno_text.h"
#include "fmt/format.h"

namespace mge {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostUnread = 1 << 20;  // bytes of a child's report or output that are kept

// The leaders of the running groups. The signal handler reads them. It does not kill groups beyond the size of this table.
std::array<std::atomic<pid_t>, 256> leaders;
static_assert(std::atomic<pid_t>::is_always_lock_free);

void Register(pid_t leader) {
  for (std::atomic<pid_t>& place : leaders) {
    if (pid_t none = 0; place.compare_exchange_strong(none, leader)) break;
  }
}

void Unregister(pid_t leader) {
  for (std::atomic<pid_t>& place : leaders) {
    pid_t own = leader;
    place.compare_exchange_strong(own, 0);
  }
}

void KillGroupsFirst(int number) {
  for (const std::atomic<pid_t>& leader : leaders) {
    if (const pid_t group = leader) kill(-group, SIGKILL);
  }
  raise(number);  // ends the process when the handler returns, because SA_RESETHAND restored the default action
}

// A pipe whose write end is none of stdin, stdout and stderr, which the child replaces. Its read end does not block.
struct Pipe {
  Fd to_read, to_write;
  bool Open() {  // sets errno on failure
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    to_read = Fd(ends[0]);
    Fd low(ends[1]);
    to_write = Fd(fcntl(low.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    return to_write.valid() && fcntl(to_read.get(), F_SETFL, O_NONBLOCK) == 0;
  }
};

void WriteNoCore() {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Appends the available bytes, and closes the descriptor at the end of the stream.
void ReadInto(Fd& fd, std::string& text) {
  char buffer[1 << 16];  // as large as a pipe
  ssize_t n = 0;
  while (fd.valid() && (n = read(fd.get(), buffer, sizeof(buffer))) < 0 && errno == EINTR) {
  }
  if (n > 0) text.append(buffer, static_cast<size_t>(n));
  if (n == 0) fd = Fd();
  if (text.size() > kMostUnread) text.erase(0, text.size() - kMostUnread / 2);
}

std::string LastLine(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != line.npos) last = line.substr(0, 300);
  }
  return last;
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

std::unique_ptr<Child> Child::Fork(const std::function<void(int report)>& body, double seconds) {
  std::unique_ptr<Child> child(new Child);
  Pipe report, output;
  if (!report.Open() || !output.Open()) return nullptr;
  EndChildrenBySignals();
  std::fflush(stdout);  // else the child could write the bytes again
  const pid_t leader = fork();
  if (leader < 0) return nullptr;
  if (leader == 0) {
    for (std::atomic<pid_t>& sibling : leaders) sibling = 0;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    WriteNoCore();
    report.to_read = Fd();
    output.to_read = Fd();
    if (Fd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC)); nothing.valid()) dup2(nothing.get(), STDIN_FILENO);
    dup2(output.to_write.get(), STDOUT_FILENO);
    dup2(output.to_write.get(), STDERR_FILENO);
    body(report.to_write.get());
    _exit(0);
  }
  setpgid(leader, leader);  // the child may not have called it yet
  child->leader_ = leader;
  Register(leader);
  child->report_ = std::move(report.to_read);
  child->output_ = std::move(output.to_read);
  child->LimitTo(seconds);
  return child;
}

std::unique_ptr<Child> Child::Execute(const std::string& path, std::string task, std::string_view request, double seconds) {
  std::unique_ptr<Child> child(new Child);
  Pipe report, output;
  if (!report.Open() || !output.Open()) return nullptr;
  const Fd file(memfd_create("mge-worker request", MFD_CLOEXEC));
  if (!file.valid() || !WriteRange(file.get(), 0, AsBytes(request), "the request").ok()) return nullptr;
  // Copies above the descriptors that the child replaces, since dup2() onto itself would keep O_CLOEXEC.
  const Fd in(fcntl(file.get(), F_DUPFD_CLOEXEC, kReportFd + 1)),
      told(fcntl(report.to_write.get(), F_DUPFD_CLOEXEC, kReportFd + 1));
  if (!in.valid() || !told.valid()) return nullptr;
  std::string name = "mge-worker", parent = std::to_string(getpid());
  char* const argv[] = {name.data(), task.data(), parent.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);  // neither of the two can fail in glibc
  posix_spawnattr_init(&attributes);
  int error = 0;
  auto check = [&error](int result) { error = error ? error : result; };
  check(posix_spawn_file_actions_adddup2(&files, in.get(), STDIN_FILENO));
  check(posix_spawn_file_actions_adddup2(&files, output.to_write.get(), STDOUT_FILENO));
  check(posix_spawn_file_actions_adddup2(&files, output.to_write.get(), STDERR_FILENO));
  check(posix_spawn_file_actions_adddup2(&files, told.get(), kReportFd));
  check(posix_spawn_file_actions_addclosefrom_np(&files, kReportFd + 1));
  check(posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
  check(posix_spawnattr_setpgroup(&attributes, 0));
  check(posix_spawnattr_setsigmask(&attributes, &none));
  check(posix_spawnattr_setsigdefault(&attributes, &all));
  if (error == 0) error = posix_spawn(&child->leader_, path.c_str(), &files, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    child->leader_ = 0;
    errno = error;
    return nullptr;
  }
  Register(child->leader_);
  child->report_ = std::move(report.to_read);
  child->output_ = std::move(output.to_read);
  child->LimitTo(seconds);
  return child;
}

void Child::LimitTo(double seconds) {
  deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void Child::Read() {
  ReadInto(report_, report);
  ReadInto(output_, output);
}

void Child::ReadToEnd(const std::function<void()>& take) {
  do {
    WaitForAny({this});
    Read();
    take();
  } while (!Ended());
  take();
}

bool Child::Ended() {
  siginfo_t leader = {};
  const bool waited = waitid(P_PID, static_cast<id_t>(leader_), &leader, WEXITED | WNOHANG | WNOWAIT) == 0;
  // Other code of this process may ignore SIGCHLD or wait for all children. The result is then lost, and the id is free.
  const bool lost = !waited && errno == ECHILD;
  const bool ended = lost || (waited && leader.si_pid != 0);
  if (!ended && Clock::now() < deadline_) return false;
  end_.timed_out = !ended;
  if (lost) Unregister(std::exchange(leader_, 0));
  Kill();
  Read();
  end_.last_line = LastLine(output);
  return true;
}

// The process id cannot be reused before waitpid() returns, so kill() reaches only this group.
void Child::Kill() {
  if (leader_ == 0) return;
  kill(-leader_, SIGKILL);
  kill(leader_, SIGKILL);  // the leader may have moved to another group
  Unregister(leader_);
  int status = 0;
  while (waitpid(leader_, &status, 0) < 0 && errno == EINTR) {
  }
  leader_ = 0;
  if (WIFEXITED(status)) end_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end_.signal = WTERMSIG(status);
}

void Child::WaitForAny(const std::vector<Child*>& children) {
  std::vector<pollfd> files;
  int patience_ms = 20;
  for (const Child* child : children) {
    for (const Fd* fd : {&child->report_, &child->output_}) {
      files.push_back({fd->get(), POLLIN, 0});
      if (!fd->valid()) patience_ms = 2;  // poll() does not report the end of the child, which is usually near
    }
  }
  poll(files.data(), files.size(), patience_ms);
}

ChildEnd RunProgram(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  auto execute = [&](int) {  // calls no function that may need a lock of another thread
    execvp(program.c_str(), argv.data());
    const char* why = strerrordesc_np(errno);
    (void)!write(STDERR_FILENO, why, strlen(why));
    _exit(kNotExecuted);
  };
  const std::unique_ptr<Child> child = Child::Fork(execute, 1e9);
  if (!child) return {errno, false, -1, 0, {}};
  child->ReadToEnd([] {});
  return child->end();
}

void EndChildrenBySignals() {
  signal(SIGCHLD, SIG_DFL);  // it may be inherited as ignored; then a child cannot be waited for
  for (int number : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction present = {}, ours = {};
    if (sigaction(number, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) continue;
    ours.sa_handler = KillGroupsFirst;
    ours.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(number, &ours, nullptr);
  }
}

void EndWithParent(pid_t parent) {
  WriteNoCore();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
}

bool HasChildProcess() {
  siginfo_t child = {};
  return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace mge
