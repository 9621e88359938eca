// SPDX-License-Identifier: Apache-2.0
// Work on a device that ends late or never: the waiting caller gets an error, and memory that the device may still access
// is kept until the work ends.
#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "tests/core/engine/queues.h"
#include "tests/support/forked_child.h"

namespace mge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StuckWork : public Queues {
 protected:
  // Runs the session and cancels the run as soon as a kernel or copy hangs.
  absl::Status RunUntilItHangs(std::vector<HostValue> in) {
    RunState control;
    std::atomic<bool> done{false};
    std::thread user([&] {
      while (!done && control_->hanging == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      control.cancel = kStopAsked;
    });
    absl::Status status = Run(*session_, std::move(in), control).status();
    done = true;
    user.join();
    return status;
  }
};

TEST_F(StuckWork, EndsARunThatIsCancelledOrOutOfTimeAndTheNextOneRuns) {
  session_ = Load(kSmall, "async0");
  std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  auto expected = Run(*session_, in);
  ASSERT_TRUE(expected.ok());
  control_->hangs = true;
  RunState late;
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(ErrorId(Run(*session_, in, late).status()), errors::kTimeout.id);
  RunState cancelled;
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled.cancel = 1;
  });
  EXPECT_EQ(ErrorId(Run(*session_, in, cancelled).status()), errors::kCancelled.id);
  canceller.join();
  control_->hangs = false;
  auto again = Run(*session_, in);
  ASSERT_TRUE(again.ok()) << FormatError(again.status());
  EXPECT_EQ(*again, *expected);
}

// The second device waits for the first. The error must name the device that hangs.
TEST_F(StuckWork, IsNamedByDeviceAndNodeWhenTheTimeIsUp) {
  session_ = Load(R"(
input x : float32[4,4]
a = Relu(x) on "async1"
b = Relu(a) on "async0"
output b
)",
                  "async0+async1");
  ASSERT_TRUE(Run(*session_, {Numbers({4, 4})}).ok());
  control_->hangs = true;
  RunState late;
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  absl::Status status = Run(*session_, {Numbers({4, 4})}, late).status();
  EXPECT_EQ(ErrorId(status), errors::kTimeout.id);
  EXPECT_THAT(FormatError(status), HasSubstr("device async1, node '' (Relu)"));
}

TEST_F(StuckWork, KeepsTheMemoryOfARunThatDoesNotEnd) {
  session_ = Load(kSmall, "async0");
  std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  control_->hangs = control_->stubborn = true;
  EXPECT_EQ(ErrorId(RunUntilItHangs(in)), errors::kCancelled.id);
  EXPECT_GT(control_->queues, 0);  // the queue still works
  control_->hangs = control_->stubborn = false;
  EXPECT_TRUE(Run(*session_, in).ok());
  session_.reset();
  EXPECT_EQ(control_->queues, 0);
}

TEST_F(StuckWork, KeepsTheMemoryOfAnUploadThatDoesNotEnd) {
  session_ = Load(kPerceptron, "async0");
  control_->good_copies = 0;
  EXPECT_EQ(ErrorId(RunUntilItHangs({Numbers({3, 4})})), errors::kCancelled.id);
  EXPECT_GT(control_->queues, 0);  // the queue still works
  RunState cancelled;
  cancelled.cancel = kStopAsked;
  EXPECT_EQ(ErrorId(Run(*session_, {Numbers({3, 4})}, cancelled).status()), errors::kCancelled.id);
  control_->good_copies = kEveryCopy;
  auto got = Run(*session_, {Numbers({3, 4})});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_EQ(*got, *Run(*Load(kPerceptron, "host"), {Numbers({3, 4})}));
  session_.reset();
  EXPECT_EQ(control_->queues, 0);
  EXPECT_EQ(control_->fences, 0);
}

TEST_F(StuckWork, KeepsTheMemoryOfATrialWhoseResultsDoNotArrive) {
  Restart({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  session_ = Load(kTwoCandidates, "async0");
  auto in_use = [&] { return session_->device().Stats().pool.in_use; };
  control_->good_copies = 2;  // the copy into the input, and the one that fills the output before the kernel
  EXPECT_EQ(ErrorId(RunUntilItHangs({Numbers({4, 4})})), errors::kCancelled.id);
  EXPECT_EQ(control_->kernels, 1);
  EXPECT_GT(in_use(), 0u);
  control_->good_copies = kEveryCopy;
  EXPECT_TRUE(Run(*session_, {Numbers({4, 4})}).ok());
}

TEST_F(StuckWork, KeepsTheMemoryOfATrialThatDoesNotEnd) {
  Restart({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  session_ = Load(kTwoCandidates, "async0");
  control_->hangs = control_->stubborn = true;
  EXPECT_EQ(ErrorId(RunUntilItHangs({Numbers({4, 4})})), errors::kCancelled.id);
  EXPECT_GT(control_->queues, 0);  // the queue still works
  control_->hangs = control_->stubborn = false;
  EXPECT_TRUE(Run(*session_, {Numbers({4, 4})}).ok());
  session_.reset();
  EXPECT_EQ(control_->queues, 0);
  EXPECT_EQ(control_->fences, 0);
  EXPECT_EQ(control_->records, 0);
}

TEST_F(StuckWork, OfATrialIsCancelledWhenNobodyWaitsForIt) {
  Restart({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  session_ = Load(kTwoCandidates, "async0");
  control_->hangs = true;
  EXPECT_EQ(ErrorId(RunUntilItHangs({Numbers({4, 4})})), errors::kCancelled.id);
  EXPECT_EQ(control_->queues, 0);
  control_->hangs = false;
  for (const Unit& u : PlanOf({Numbers({4, 4})})->units) {
    for (const Alternative& a : u.alternatives) EXPECT_THAT(a.reason, Not(HasSubstr("told to stop")));
  }
}

TEST_F(StuckWork, WhilePlanningDoesNotBlockRunsOfOtherPlansOrBeyondTheirTimeLimit) {
  Restart({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  session_ = Load("input x : float32[N,4]\na = Abs(x)\noutput a\n", "async0");
  std::shared_ptr<const Plan> known = PlanOf({Numbers({1, 4})});
  PlanOf({Numbers({2, 4})});
  control_->hangs = true;
  RunState first;
  std::thread planner([&] { EXPECT_EQ(ErrorId(Run(*session_, {Numbers({3, 4})}, first).status()), errors::kCancelled.id); });
  while (control_->hanging == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(PlanOf({Numbers({1, 4})}), known);
  RunState late;
  late.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_EQ(ErrorId(Run(*session_, {Numbers({3, 4})}, late).status()), errors::kTimeout.id);
  EXPECT_GT(control_->hanging, 0);
  first.cancel = kStopAsked;
  planner.join();
  control_->hangs = false;
  EXPECT_TRUE(Run(*session_, {Numbers({3, 4})}).ok());
}

TEST_F(StuckWork, ThatNeverEndsKeepsItsDeviceOpen) {
  session_.reset();
  runtime_.reset();
  EXPECT_EQ(InChild([&] {
              Restart({});
              session_ = Load(kPerceptron, "async0");
              control_->good_copies = 0;
              bool cancelled = ErrorId(RunUntilItHangs({Numbers({3, 4})})) == errors::kCancelled.id;
              session_.reset();
              runtime_.reset();
              return cancelled && control_->queues > 0;
            }),
            0);
}

}  // namespace
}  // namespace mge
