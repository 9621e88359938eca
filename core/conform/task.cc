// SPDX-License-Identifier: Apache-2.0
#include "core/conform/task.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/conform/calls.h"
#include "core/process/child_group.h"
#include "core/process/orphan_reaper.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLastWords = 600;  // bytes at the end of a child's output that a finding shows

struct Child {
  const Task* task = nullptr;
  pid_t pid = -1;
  std::optional<ChildGroup> group;
  Fd records, output;
  Clock::time_point begin;
  double seconds = 0;        // the time limit
  std::string text, said;    // unread records, and the output of the child
  std::string check, where;  // from the last Begin() and At()
  CallBoard calls;
  std::string thrown;   // text of the exception that its task threw
  bool silent = false;  // whether it has closed the pipe of records
  bool complete = false, stopped = false;
};

[[noreturn]] void BeChild(const Task& task, int records, int output, const CallBoard& calls) {
  calls.Serve();
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphaned grandchildren become its children
  mallopt(M_ARENA_MAX, 1);           // one heap for all threads, so that the bytes in use are comparable
  rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  if (int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0) dup2(nothing, STDIN_FILENO), close(nothing);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  CheckReporter reporter(records, task.seconds);
  try {
    task.body(reporter);
    reporter.End();
  } catch (const std::exception& e) {
    reporter.Thrown(e.what());
  } catch (...) {
    reporter.Thrown("it is not a std::exception");
  }
  _exit(0);
}

struct Pipe {
  Fd to_read, to_write;
  int Open() {  // returns 0 or an errno
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    to_read = Fd(ends[0]);
    to_write = Fd(ends[1]);
    return fcntl(to_read.get(), F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
  }
};

// Starts a child process for a task. Returns 0 or an errno.
int Spawn(const Task& task, Child& child) {
  Pipe records, output;
  if (int error = records.Open()) return error;
  if (int error = output.Open()) return error;
  std::fflush(stdout);
  child.task = &task;
  child.begin = Clock::now();
  child.seconds = task.seconds;
  child.check = task.check;
  child.pid = ChildGroup::Fork(child.group);
  if (child.pid < 0) return errno;
  if (child.pid == 0) {
    records.to_read = Fd();
    output.to_read = Fd();
    BeChild(task, records.to_write.get(), output.to_write.get(), child.calls);
  }
  child.records = std::move(records.to_read);
  child.output = std::move(output.to_read);
  return 0;
}

// Reads all available bytes. Returns false at the end of the stream.
bool Drain(const Fd& fd, std::string& into) {
  char buffer[4096];
  for (;;) {
    ssize_t n = read(fd.get(), buffer, sizeof(buffer));
    if (n > 0)
      into.append(buffer, static_cast<size_t>(n));
    else if (n < 0 && errno == EINTR)
      continue;
    else
      return n < 0 && errno == EAGAIN;
  }
}

void Hear(Child& child, const OnRecord& on_record) {
  for (const CheckRecord& r : TakeRecords(child.text)) {
    if (r.kind == RecordKind::kEnd) child.complete = true;
    if (r.kind == RecordKind::kBegin) child.check = r.check;
    if (r.kind == RecordKind::kAt) child.where = r.where;
    if (r.kind == RecordKind::kThrown) child.thrown = r.what;
    if (r.kind == RecordKind::kTime) {
      double most = kMostLimits * child.task->seconds;
      child.seconds = std::clamp(std::strtod(r.what.c_str(), nullptr), child.seconds, most);
    }
    on_record(*child.task, r);
  }
}

// Returns a sentence about how the child ended, or "" if it ended normally.
std::string Ending(const Child& child, int status) {
  if (child.stopped) return fmt::format("did not end within {:g} s", child.seconds);
  if (WIFSIGNALED(status)) {
    int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    return fmt::format("crashed the process (SIG{})", name ? name : std::to_string(signal));
  }
  if (!child.thrown.empty()) return "threw an exception, which the contract forbids: " + child.thrown;
  if (!child.complete || WEXITSTATUS(status) != 0)
    return fmt::format("ended the process (exit code {})", WEXITSTATUS(status));
  return {};
}

// Returns the exit status of a child that has ended, else nullopt. If the time limit is over, kills the child first. A
// closed pipe does not mean that the child has ended.
std::optional<int> Ended(Child& child) {
  if (std::optional<int> status = child.group->Ended()) return status;
  if (Clock::now() - child.begin <= std::chrono::duration<double>(child.seconds)) return std::nullopt;
  child.stopped = true;
  return child.group->Kill();
}

void Finish(Child& child, int status, const OnRecord& on_record, const OnDone& on_done) {
  Drain(child.records, child.text);
  Drain(child.output, child.said);
  Hear(child, on_record);
  if (std::string ending = Ending(child, status); !ending.empty()) {
    if (std::string calls = child.calls.Calls(); !calls.empty()) ending += ", while " + calls;
    if (!child.said.empty()) {
      size_t from = child.said.size() > kLastWords ? child.said.size() - kLastWords : 0;
      ending += "; its output: " + child.said.substr(from);
    }
    on_record(*child.task, {RecordKind::kFound, child.check, child.where, EscapeControl(ending)});
  }
  on_done(*child.task, std::chrono::duration<double>(Clock::now() - child.begin).count());
}

}  // namespace

absl::Status RunTasks(const std::vector<Task>& tasks, int at_a_time, const OnRecord& on_record, const OnDone& on_done) {
  OrphanReaper orphans;
  std::vector<std::unique_ptr<Child>> running;
  size_t next = 0;
  while (next < tasks.size() || !running.empty()) {
    while (next < tasks.size() && running.size() < static_cast<size_t>(std::max(at_a_time, 1))) {
      auto child = std::make_unique<Child>();
      if (int error = Spawn(tasks[next], *child)) {
        if (!running.empty()) break;  // try again when a child has ended
        return Fail(errors::kOutOfMemory, "a child process for the checks cannot be started",
                    {.what = std::strerror(error), .fix = "allow more processes and open files (ulimit -u and -n)"});
      }
      ++next;
      orphans.Except(child->pid);
      running.push_back(std::move(child));
    }
    std::vector<pollfd> polls;
    int patience_ms = 100;
    for (const auto& child : running) {
      polls.push_back({child->silent ? -1 : child->records.get(), POLLIN, 0});
      polls.push_back({child->silent ? -1 : child->output.get(), POLLIN, 0});
      if (child->silent) patience_ms = 2;  // poll() does not report its end, which is usually near
    }
    poll(polls.data(), polls.size(), patience_ms);
    for (size_t i = 0; i < running.size();) {
      Child& child = *running[i];
      child.silent = !Drain(child.records, child.text);
      Drain(child.output, child.said);
      if (child.said.size() > 1 << 16) child.said.erase(0, child.said.size() - kLastWords);
      Hear(child, on_record);
      const std::optional<int> status = Ended(child);
      if (!status) {
        ++i;
        continue;
      }
      Finish(child, *status, on_record, on_done);
      orphans.Forget(child.pid);
      orphans.End();
      running.erase(running.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  return absl::OkStatus();
}

}  // namespace mge::conform
