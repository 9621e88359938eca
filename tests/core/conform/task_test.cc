// SPDX-License-Identifier: Apache-2.0
// Child processes of the kit: every way in which they end is a result, and they do not outlive the kit.
#include "core/conform/task.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "core/conform/backend_call.h"
#include "core/process/child.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge::conform {
namespace {

using testing::HasSubstr;

std::vector<std::string> FindingsOf(std::vector<Task> tasks) {
  std::vector<std::string> out;
  size_t done = 0;
  absl::Status status = RunTasks(tasks, 2, [&](const CheckRecord& r) {
    if (r.kind == RecordKind::kFound) out.push_back(r.check + " " + r.where + ": " + r.what);
    done += r.kind == RecordKind::kDone;
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(done, tasks.size());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Tasks, ReportCrashesExitsAndHangsAndContinue) {
  auto found = FindingsOf({
      {"a",
       [](CheckReporter& w) {
         w.At("a place");
         raise(SIGSEGV);
       },
       20},
      {"b",
       [](CheckReporter& w) {
         w.Begin("b, second");
         _exit(7);
       },
       20},
      {"c",
       [](CheckReporter&) {
         for (;;) pause();
       },
       0.2},
      {"d", [](CheckReporter&) { throw std::runtime_error("thrown"); }, 20},
      {"e", [](CheckReporter& w) { w.Found("e, third", "here", "tab\tand\nline"); }, 20},
      {"f", [](CheckReporter&) {}, 20},
  });
  ASSERT_EQ(found.size(), 5u);
  EXPECT_THAT(found[0], HasSubstr("a a place: it was killed by signal 11"));
  EXPECT_EQ(found[1], "b, second : it ended the process with exit code 7");
  EXPECT_EQ(found[2], "c : it did not respond within 0.2 s");
  EXPECT_EQ(found[3], "d : threw an exception, which the contract forbids: thrown");
  EXPECT_EQ(found[4], "e, third here: tab and line");
}

TEST(Tasks, NameTheCallsThatHangOrCrash) {
  auto found = FindingsOf({
      {"a",
       [](CheckReporter&) {
         InBackend("creating a queue", [] {});
         std::thread([] { InBackend("waiting on a queue", [] { pause(); }); }).detach();
         for (;;) pause();
       },
       0.2},
      {"b", [](CheckReporter&) { InBackend("launching", [] { raise(SIGSEGV); }); }, 20},
  });
  EXPECT_THAT(found, testing::ElementsAre("a : while waiting on a queue, it did not respond within 0.2 s",
                                          HasSubstr("b : while launching, it was killed by signal 11")));
}

TEST(Tasks, StopAChildThatClosesItsFilesAndStays) {
  auto found = FindingsOf({{"a",
                            [](CheckReporter& w) {
                              w.At("a place");
                              closefrom(3);
                              for (;;) pause();
                            },
                            0.2}});
  EXPECT_THAT(found, testing::ElementsAre("a a place: it did not respond within 0.2 s"));
}

// A pipe that shows when all processes that inherited its write end have ended.
class Lifeline {
 public:
  Lifeline() { EXPECT_EQ(pipe(ends_), 0); }
  ~Lifeline() { close(ends_[0]); }
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;
  bool IsCut() {
    close(ends_[1]);
    pollfd end = {ends_[0], POLLIN, 0};
    return poll(&end, 1, 5000) == 1 && (end.revents & POLLHUP);
  }

 private:
  int ends_[2];
};

void StayAlive() {
  alarm(20);
  for (;;) pause();
}

TEST(Tasks, EndWithTheChildAndKillItsGroup) {
  Lifeline line;
  auto left = [](CheckReporter&) {
    if (fork() == 0) StayAlive();  // this process keeps the pipes open
  };
  auto hangs = [left](CheckReporter& w) {
    left(w);
    StayAlive();
  };
  EXPECT_THAT(FindingsOf({{"a", left, 10}, {"b", hangs, 0.2}}), testing::ElementsAre("b : it did not respond within 0.2 s"));
  EXPECT_TRUE(line.IsCut());
}

TEST(Tasks, AreNotTheGroupOfTheirParent) {
  auto found = FindingsOf({{"a", [](CheckReporter&) { kill(0, SIGKILL); }, 20},
                           {"b",
                            [](CheckReporter&) {
                              setpgid(0, getpgid(getppid()));
                              StayAlive();
                            },
                            0.2}});
  EXPECT_THAT(found, testing::ElementsAre("a : it was killed by signal 9 (Killed)", "b : it did not respond within 0.2 s"));
}

TEST(Tasks, EndWithTheirParentWhicheverSignalEndsIt) {
  for (int number : {SIGINT, SIGTERM, SIGKILL}) {
    Lifeline line;
    const pid_t parent = fork();
    if (parent == 0) {
      FindingsOf({{"a",
                   [number](CheckReporter&) {
                     kill(getppid(), number);
                     StayAlive();
                   },
                   20}});
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(parent, &status, 0), parent);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_TRUE(line.IsCut()) << number;
  }
}

TEST(Tasks, AnExecutedProgramEndsWithItsParent) {
  ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);  // the program becomes a child of this process
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const auto child = Child::Execute({"/bin/sh", "-c", "echo $$; exec sleep 1000"}, "", 20);
    child->ReadToEnd([&] { return child->output.find('\n') == std::string::npos; });
    if (write(ends[1], child->output.data(), child->output.size()) > 0) kill(getpid(), SIGKILL);
    _exit(1);
  }
  char text[32] = {};
  ASSERT_GT(read(ends[0], text, sizeof(text) - 1), 0);
  close(ends[0]);
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  const pid_t program = std::atoi(text);
  pid_t ended = 0;
  for (int i = 0; i < 500 && ended == 0; ++i, usleep(10'000)) ended = waitpid(program, &status, WNOHANG);
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  if (ended == 0) kill(program, SIGKILL);
  ASSERT_EQ(ended, program) << "it has not ended";
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
}

// Sets the limit of open files. Call it in a child process only, because the limit cannot be raised again.
void LimitFiles(rlim_t most) {
  rlimit files = {most, most};
  setrlimit(RLIMIT_NOFILE, &files);
}

TEST(Tasks, ThatCannotBeStartedAreErrorsAndNotFindings) {
  auto run = [] {
    LimitFiles(4);
    absl::Status status = RunTasks({{"a", [](CheckReporter&) {}, 20}}, 1, [](const CheckRecord&) { _exit(1); });
    std::fputs(FormatError(status).c_str(), stderr);
    _exit(KindOf(status) == ErrorKind::kMemory ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "a child process for the checks cannot be started\n  what:  Too many open files");
}

TEST(Tasks, WaitIfNotAllCanRunAtTheSameTime) {
  auto run = [] {
    const int free = dup(STDERR_FILENO);
    close(free);
    LimitFiles(static_cast<rlim_t>(free) + 8);  // enough for three tasks
    size_t done = 0;
    Task task = {"a", [](CheckReporter&) { usleep(20000); }, 20};
    absl::Status status =
        RunTasks(std::vector<Task>(10, task), 10, [&](const CheckRecord& r) { done += r.kind == RecordKind::kDone; });
    _exit(status.ok() && done == 10 ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(Tasks, KeepFindingsReportedBeforeACrash) {
  auto found = FindingsOf({{"a",
                            [](CheckReporter& w) {
                              for (int i = 0; i < 3000; ++i) w.Found("many", "", std::to_string(i));
                              std::fputs("last words\n", stderr);
                              raise(SIGABRT);
                            },
                            20}});
  ASSERT_EQ(found.size(), 3001u);
  EXPECT_THAT(found.front(), HasSubstr("; last line of its output: last words"));
}

}  // namespace
}  // namespace mge::conform
