// SPDX-License-Identifier: Apache-2.0
// Child processes of the kit: every way in which they end is a result, and neither they nor their children outlive the kit.
#include "core/conform/task.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "core/conform/backend_call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge::conform {
namespace {

using testing::HasSubstr;

std::vector<std::string> FindingsOf(std::vector<Task> tasks) {
  std::vector<std::string> out;
  size_t done = 0;
  absl::Status status = RunTasks(
      tasks, 2,
      [&](const Task& t, const CheckRecord& r) {
        if (r.kind == RecordKind::kFound) out.push_back(t.name + " " + r.check + " " + r.where + ": " + r.what);
      },
      [&](const Task&, double) { ++done; });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(done, tasks.size());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Tasks, ReportCrashesExitsAndHangsAndContinue) {
  auto found = FindingsOf({
      {"a", "first",
       [](CheckReporter& w) {
         w.At("a place");
         raise(SIGSEGV);
       },
       20},
      {"b", "first",
       [](CheckReporter& w) {
         w.Begin("second");
         _exit(7);
       },
       20},
      {"c", "first",
       [](CheckReporter&) {
         for (;;) pause();
       },
       0.2},
      {"d", "first", [](CheckReporter&) { throw std::runtime_error("thrown"); }, 20},
      {"e", "first", [](CheckReporter& w) { w.Found("third", "here", "tab\tand\nline"); }, 20},
      {"f", "first", [](CheckReporter&) {}, 20},
  });
  ASSERT_EQ(found.size(), 5u);
  EXPECT_THAT(found[0], HasSubstr("a first a place: crashed the process (SIGSEGV)"));
  EXPECT_EQ(found[1], "b second : ended the process (exit code 7)");
  EXPECT_EQ(found[2], "c first : did not end within 0.2 s");
  EXPECT_EQ(found[3], "d first : threw an exception, which the contract forbids: thrown");
  EXPECT_EQ(found[4], "e third here: tab and line");
}

TEST(Tasks, NameTheCallsThatHangOrCrash) {
  auto found = FindingsOf({
      {"a", "first",
       [](CheckReporter&) {
         InBackend("creating a queue", [] {});
         std::thread([] { InBackend("waiting on a queue", [] { pause(); }); }).detach();
         for (;;) pause();
       },
       0.2},
      {"b", "first", [](CheckReporter&) { InBackend("launching", [] { raise(SIGSEGV); }); }, 20},
  });
  EXPECT_THAT(found, testing::ElementsAre("a first : did not end within 0.2 s, while waiting on a queue",
                                          "b first : crashed the process (SIGSEGV), while launching"));
}

TEST(Tasks, GetMoreTimeForWorkThatIsSlowButNotForEver) {
  int fits = 0;
  std::string found;
  absl::Status status = RunTasks(
      {{"a", "first",
        [](CheckReporter& w) {
          w.Fact("fits", std::to_string(w.Fit(1000, 0.1)));
          for (;;) pause();
        },
        0.2}},
      1,
      [&](const Task&, const CheckRecord& r) {
        if (r.kind == RecordKind::kFact) fits = std::stoi(r.what);
        if (r.kind == RecordKind::kFound) found = r.what;
      },
      [](const Task&, double) {});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(found, "did not end within 1 s");
  EXPECT_GE(fits, 1);
  EXPECT_LE(fits, 7);  // tasks that fit into three quarters of a second
}

TEST(Tasks, StopAChildThatClosesItsFilesAndStays) {
  auto found = FindingsOf({{"a", "first",
                            [](CheckReporter& w) {
                              w.At("a place");
                              closefrom(3);
                              for (;;) pause();
                            },
                            0.2}});
  EXPECT_THAT(found, testing::ElementsAre("a first a place: did not end within 0.2 s"));
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
  EXPECT_THAT(FindingsOf({{"a", "first", left, 10}, {"b", "first", hangs, 0.2}}),
              testing::ElementsAre("b first : did not end within 0.2 s"));
  EXPECT_TRUE(line.IsCut());
}

TEST(Tasks, AreNotTheGroupOfTheirParent) {
  auto found = FindingsOf({{"a", "first", [](CheckReporter&) { kill(0, SIGKILL); }, 20},
                           {"b", "first",
                            [](CheckReporter&) {
                              setpgid(0, getpgid(getppid()));
                              StayAlive();
                            },
                            0.2}});
  EXPECT_THAT(found, testing::ElementsAre("a first : crashed the process (SIGKILL)", "b first : did not end within 0.2 s"));
}

TEST(Tasks, EndWithTheirParentWhicheverSignalEndsIt) {
  for (int number : {SIGINT, SIGTERM, SIGKILL}) {
    Lifeline line;
    const pid_t parent = fork();
    if (parent == 0) {
      FindingsOf({{"a", "first",
                   [number](CheckReporter&) {
                     if (fork() == 0) StayAlive();
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

// Sets the limit of open files. Call it in a child process only, because the limit cannot be raised again.
void LimitFiles(rlim_t most) {
  rlimit files = {most, most};
  setrlimit(RLIMIT_NOFILE, &files);
}

TEST(Tasks, ThatCannotBeStartedAreErrorsAndNotFindings) {
  auto run = [] {
    LimitFiles(4);
    absl::Status status = RunTasks(
        {{"a", "first", [](CheckReporter&) {}, 20}}, 1, [](const Task&, const CheckRecord&) { _exit(1); },
        [](const Task&, double) { _exit(1); });
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
    Task task = {"a", "first", [](CheckReporter&) { usleep(20000); }, 20};
    absl::Status status = RunTasks(
        std::vector<Task>(10, task), 10, [](const Task&, const CheckRecord&) {}, [&](const Task&, double) { ++done; });
    _exit(status.ok() && done == 10 ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

TEST(Tasks, KeepFindingsReportedBeforeACrash) {
  auto found = FindingsOf({{"a", "first",
                            [](CheckReporter& w) {
                              for (int i = 0; i < 3000; ++i) w.Found("many", "", std::to_string(i));
                              std::fputs("last words\n", stderr);
                              raise(SIGABRT);
                            },
                            20}});
  ASSERT_EQ(found.size(), 3001u);
  EXPECT_THAT(found.front(), HasSubstr("its output: last words"));
}

}  // namespace
}  // namespace mge::conform
