// SPDX-License-Identifier: Apache-2.0
// Timing of kernels in mge-worker: a kernel that hangs or crashes is left out of the choice.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>

#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kRelu[] = "input x : float32[?]\ny = Relu(x)\noutput y\n";
constexpr char kNeg[] = "input x : float32[?]\ny = Neg(x)\noutput y\n";
constexpr char kBackends[] = MGE_BINARY_DIR "/tests/engine_fakes";
constexpr char kWorker[] = MGE_BINARY_DIR "/lib/mge/mge-worker";

// Returns whether this process has a child process, running or ended.
bool HasChildProcess() {
  siginfo_t child = {};
  return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

class Workers : public testing::Test {
 protected:
  // Returns the settings of a process that times kernels within `limit` and stores the times.
  std::vector<Assignment> Within(const std::string& limit) const {
    return {Set("MEGENGINE_EXECUTION_STRATEGY", "PROFILE"), Set("MGE_FASTRUN_CACHE_TYPE", "FILE"),
            Set("MGE_FASTRUN_CACHE_DIR", folder_.path()), Set("MGB_CONV_PROFILING_TIMEOUT", limit)};
  }
  // Returns a program that counts its calls in Calls(), and then does what mge-worker does.
  std::string Counting() const {
    const std::string path = folder_.At("worker.sh");
    WriteText(path, "#!/bin/sh\necho call >>" + folder_.At("calls") + "\nexec " + std::string(kWorker) + " \"$@\"\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  int64_t Calls() const {
    const std::string text = ReadText(folder_.At("calls"));
    return std::count(text.begin(), text.end(), '\n');
  }
  static std::string ReasonAgainst(const Plan& plan, const std::string& id) {
    for (const Alternative& a : plan.units[0].alternatives) {
      if (a.id == id) return a.reason;
    }
    return "no alternative";
  }
  Folder folder_;
};

TEST_F(Workers, AKernelThatHangsIsKilledNamedAndLeftOutAndNotTimedAgain) {
  const auto begin = std::chrono::steady_clock::now();
  Host host(Within("0.5"), "tuner_stuck0", kBackends, Counting());
  auto plan = host.PlanOf(kRelu);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[0].kernel, "loose");
  EXPECT_EQ(host.record().launches, 0);  // this process has run no kernel
  const auto why = AllOf(HasSubstr("did not respond within 0.5 s"), HasSubstr("select.profiling_timeout_seconds"));
  EXPECT_THAT(ReasonAgainst(**plan, "stuck"), why);
  EXPECT_THAT(PlanText(**plan, true), HasSubstr("not stuck: left out: while it was timed, it did not respond"));
  EXPECT_THAT(host.warnings, Contains(AllOf(HasSubstr("kernel 'stuck' of backend tuner_stuck"), why)));
  EXPECT_EQ(Calls(), 2);  // the second times what the first did not
  EXPECT_FALSE(HasChildProcess());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));

  Host second(Within("0.5"), "tuner_stuck0", kBackends, Counting());
  auto known = second.PlanOf(kRelu);
  ASSERT_TRUE(known.ok()) << FormatError(known.status());
  EXPECT_EQ((*known)->units[0].kernel, "loose");
  EXPECT_THAT(ReasonAgainst(**known, "stuck"), why);
  EXPECT_EQ(Calls(), 2);

  // Without a limit, the stored result holds: the kernel is not timed in this process.
  Host unlimited(Within("0"), "tuner_stuck0", kBackends, Counting());
  EXPECT_EQ(unlimited.Chosen(kRelu), "loose");
  EXPECT_EQ(Calls(), 2);

  // With a larger limit it is timed again, alone.
  Host larger(Within("0.7"), "tuner_stuck0", kBackends, Counting());
  auto again = larger.PlanOf(kRelu);
  ASSERT_TRUE(again.ok()) << FormatError(again.status());
  EXPECT_THAT(ReasonAgainst(**again, "stuck"), HasSubstr("within 0.7 s"));
  EXPECT_EQ(Calls(), 3);
}

TEST_F(Workers, TheResultIsThatOfTimingInTheProcess) {
  Host here({Set("select.strategy", "profile")}), there(Within("30"), "tuner0", kBackends, Counting());
  auto mine = here.PlanOf(kRelu), theirs = there.PlanOf(kRelu);
  ASSERT_TRUE(mine.ok() && theirs.ok());
  EXPECT_EQ((*mine)->units[0].kernel, (*theirs)->units[0].kernel);
  EXPECT_GE((*theirs)->units[0].measured_us, 10);
  EXPECT_THAT(ReasonAgainst(**theirs, "wrong"), HasSubstr("wrong results: output 0"));
  EXPECT_GT(here.record().launches, 0);
  EXPECT_EQ(Calls(), 1);
}

TEST_F(Workers, IfNoKernelSurvivesTheHeuristicChoosesAndAWarningSaysSo) {
  Host host(Within("1"), "tuner_stuck0", kBackends, kWorker);
  auto plan = host.PlanOf(kNeg);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  Host estimates({Set("select.strategy", "heuristic")}, "tuner_stuck0");
  EXPECT_EQ((*plan)->units[0].kernel, estimates.Chosen(kNeg));
  EXPECT_THAT(host.warnings, Contains(AllOf(HasSubstr("no kernel of backend tuner_stuck for Neg"), HasSubstr("estimates"))));
  EXPECT_THAT(host.warnings, Contains(AllOf(HasSubstr("kernel 'loose'"), HasSubstr("killed by signal 6 (Aborted)"))));
}

TEST_F(Workers, AProgramThatIgnoresTheEndOfItsChildrenGetsTheSameChoice) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  Host host(Within("1"), "tuner_stuck0", kBackends, kWorker);
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_THAT(host.warnings, Contains(HasSubstr("kernel 'stuck'")));
  Host crashes(Within("1"), "tuner_stuck0", kBackends, kWorker);
  EXPECT_THAT(crashes.Chosen(kNeg), Not(HasSubstr("error")));
  EXPECT_THAT(crashes.warnings, Contains(AllOf(HasSubstr("kernel 'loose'"), HasSubstr("it ended the process"))));
  signal(SIGCHLD, before);
}

TEST_F(Workers, WithoutTheProgramKernelsAreTimedInTheProcessAndOneWarningSaysSo) {
  Host host(Within("1"), "tuner0", kBackends, folder_.At("absent"));
  host.record() = {};
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_EQ(host.Chosen(kRelu, 32), "loose");
  EXPECT_GT(host.record().launches, 0);
  auto about = HasSubstr("without select.profiling_timeout_seconds: '" + folder_.At("absent"));
  EXPECT_EQ(std::count_if(host.warnings.begin(), host.warnings.end(),
                          [&](const std::string& w) { return testing::Value(w, about); }),
            1);
}

TEST_F(Workers, AProgramThatOthersMayChangeIsNotExecuted) {
  const std::string program = Counting();
  std::filesystem::permissions(program, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  Host host(Within("1"), "tuner0", kBackends, program);
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_THAT(host.warnings, Contains(HasSubstr("is not executed")));
  EXPECT_EQ(Calls(), 0);
}

TEST_F(Workers, WithoutALimitNoProgramIsExecuted) {
  Host host(Within("0"), "tuner0", kBackends, Counting());
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_EQ(Calls(), 0);
}

TEST_F(Workers, ARunThatIsStoppedKillsTheWorker) {
  Host host(Within("60"), "tuner_stuck0", kBackends, kWorker);
  auto session = host.Make(kRelu);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  HostValue input, output;
  input.tensor = Tensor::Vector<float>(std::vector<float>(64, 1.0f));
  RunState control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  const absl::Status run = (*session)->Run({&input, 1}, {&output, 1}, control);
  EXPECT_EQ(run.code(), absl::StatusCode::kDeadlineExceeded) << run;
  EXPECT_FALSE(HasChildProcess());
}

}  // namespace
}  // namespace mge
