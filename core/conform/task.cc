// SPDX-License-Identifier: Apache-2.0
#include "core/conform/task.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>

#include "absl/strings/str_split.h"
#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/conform/backend_call.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kLongestField = 1000;  // longest field in bytes: a record is shorter than PIPE_BUF, so writes are atomic

std::string Field(std::string_view text) {
  std::string out(text.substr(0, kLongestField));
  for (char& c : out) c = c == '\t' || c == '\n' ? ' ' : c;
  return out;
}

// Runs a task in the child process.
void BeChild(const Task& task, int records, CallBoard& calls) {
  RecordCallsOn(calls);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphaned grandchildren become its children
  mallopt(M_ARENA_MAX, 1);           // one heap for all threads, so that the bytes in use are comparable
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  CheckReporter reporter(records);
  try {
    task.body(reporter);
  } catch (const std::exception& e) {
    reporter.Found({}, {}, fmt::format("threw an exception, which the contract forbids: {}", e.what()));
  }
  reporter.End();
}

// A task that runs in a child process.
struct RunningTask {
  explicit RunningTask(const Task& task)
      : seconds(task.seconds),
        check(task.check),
        child(Child::Fork([&](int records) { BeChild(task, records, *calls); }, seconds)) {}
  const std::shared_ptr<CallBoard> calls = CallBoard::Create();
  const double seconds;
  std::string check, where;  // from the last Begin() and At()
  bool complete = false;     // the record kEnd was written
  const std::unique_ptr<Child> child;
};

// Passes on the records that the child has written.
void Hear(RunningTask& running, const OnRecord& on_record) {
  for (const std::string& line : running.child->TakeLines()) {
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    if (fields.size() != 4 || fields[0].size() != 1) continue;  // the backend has written it
    CheckRecord r = {static_cast<RecordKind>(fields[0][0]), fields[1], fields[2], fields[3]};
    if (r.kind == RecordKind::kBegin) running.check = r.check;
    if (r.kind == RecordKind::kAt) running.where = r.where;
    if (r.kind == RecordKind::kEnd) running.complete = true;
    if (r.kind == RecordKind::kFound && r.check.empty()) r.check = running.check, r.where = running.where;
    on_record(r);
  }
}

// Reports the end of a task. Adds a finding if its child did not end normally.
void FinishTask(RunningTask& running, const OnRecord& on_record) {
  Hear(running, on_record);
  if (const ChildEnd& end = running.child->end(); !running.complete || !end.fine()) {
    std::string ending = end.Describe(running.seconds);
    if (std::string calls = running.calls->Calls(); !calls.empty()) ending = fmt::format("while {}, {}", calls, ending);
    on_record({RecordKind::kFound, running.check, running.where, EscapeControl(ending)});
  }
  on_record({RecordKind::kDone, {}, {}, {}});
}

}  // namespace

void CheckReporter::Write(RecordKind kind, std::string_view check, std::string_view where, std::string_view what) {
  const std::string line = fmt::format("{}\t{}\t{}\t{}\n", static_cast<char>(kind), Field(check), Field(where), Field(what));
  while (write(fd_, line.data(), line.size()) < 0 && errno == EINTR) {  // another error: the reader has closed the pipe
  }
}

void CheckReporter::EndWithExit() {
  std::FILE* file = fdopen(fd_, "w");  // exit() writes the buffer after all exit handlers
  if (file) std::fprintf(file, "%c\t\t\t\n", static_cast<char>(RecordKind::kEnd));
}

absl::Status RunTasks(const std::vector<Task>& tasks, int at_a_time, const OnRecord& on_record) {
  std::vector<std::unique_ptr<RunningTask>> running;
  size_t next = 0;
  while (next < tasks.size() || !running.empty()) {
    while (next < tasks.size() && running.size() < static_cast<size_t>(std::max(at_a_time, 1))) {
      auto task = std::make_unique<RunningTask>(tasks[next]);
      if (const int error = task->child->end().not_started) {
        if (!running.empty()) break;  // try again when a child has ended
        return Fail(errors::kOutOfMemory, "a child process for the checks cannot be started",
                    {.what = ErrnoText(error), .fix = "allow more processes and open files (ulimit -u and -n)"});
      }
      ++next;
      running.push_back(std::move(task));
    }
    std::vector<Child*> children;
    for (const auto& task : running) children.push_back(task->child.get());
    Child::WaitForAny(children);
    std::erase_if(running, [&](const std::unique_ptr<RunningTask>& task) {
      task->child->Read();
      Hear(*task, on_record);
      if (!task->child->Ended()) return false;
      FinishTask(*task, on_record);
      return true;
    });
  }
  return absl::OkStatus();
}

}  // namespace mge::conform
