// SPDX-License-Identifier: Apache-2.0
// Sessions on devices with queues and separate memory: the asynchronous test backend (fakes/async.h).
#include "tests/core/engine/queues.h"

#include <filesystem>
#include <map>
#include <thread>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/forked_child.h"

namespace mge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST_F(Queues, RunAModelInMemoryThatTheHostCannotTouch) {
  Compare(kSmall, "async0", {Numbers({4, 6}), Numbers({4, 6}, 2)});
  EXPECT_EQ(control_->copies_in, 6);
  EXPECT_EQ(control_->copies_out, 3);
}

TEST_F(Queues, UploadConstantsOnceForAPlan) {
  Compare(kPerceptron, "async0", {Numbers({3, 4})});
  auto plan = PlanOf({Numbers({3, 4})});
  ASSERT_EQ(plan->device_constants.size(), 1u);
  EXPECT_GE(plan->report.uploaded_bytes, 28 * 4);
  // Constants of 64 and 48 bytes are copied once, the input of 48 bytes three times.
  EXPECT_EQ(control_->copied_bytes_in, 64 + 48 + 3 * 48);
  EXPECT_EQ(plan->report.packed_bytes, 0);
}

TEST_F(Queues, ShareLargeConstantsAmongThePlansOfASession) {
  session_ = Load(R"(
input x : float32[N,4]
input z : float32[128,128]
const w = float32[128,128]<2>
a = Relu(x)
b = Add(z, w)
output a
output b
)",
                  "async0");
  for (int64_t n : {2, 3, 4}) ASSERT_TRUE(Run(*session_, {Numbers({n, 4}), Numbers({128, 128})}).ok());
  EXPECT_EQ(control_->copied_bytes_in, 65536 + (2 + 3 + 4) * 16 + 3 * 65536);
  auto got = Run(*session_, {Numbers({2, 4}), Numbers({128, 128})});
  ASSERT_TRUE(got.ok());
  EXPECT_EQ((*got)[8], Numbers({128, 128}).tensor.Data<float>()[0] + 2);
}

TEST_F(Queues, PackAndUploadAWeightOnceForThePlansOfASession) {
  const std::string model = "input x : float32[N,128]\nconst w = float32[128,128]<2>\ny = MatMul(x, w)\noutput y\n";
  session_ = Load(model, "async0");
  auto host = Load(model, "host");
  for (int64_t n : {1, 2, 3}) {
    auto got = Run(*session_, {Numbers({n, 128})}), expected = Run(*host, {Numbers({n, 128})});
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(*got, *expected);
  }
  EXPECT_EQ(control_->packed_on_queue, 1);
  EXPECT_EQ(control_->packed, 0);
  EXPECT_EQ(control_->copied_bytes_in, 65536 + (1 + 2 + 3) * 512);
}

TEST_F(Queues, PackOnTheHostIfTheBackendCannotPackOnItsQueue) {
  control_->packs_on_host = true;
  const std::string model = R"(
input x : float32[N,128]
const w = float32[128,128]<2>
const v = float32[128,128]<3>
a = MatMul(x, w)
y = MatMul(a, v)
output y
)";
  session_ = Load(model, "async0");
  auto host = Load(model, "host");
  for (int64_t n : {1, 2}) {
    auto got = Run(*session_, {Numbers({n, 128})}), expected = Run(*host, {Numbers({n, 128})});
    ASSERT_TRUE(got.ok()) << FormatError(got.status());
    EXPECT_EQ(*got, *expected);
  }
  EXPECT_EQ(control_->packed_on_queue, 0);
  EXPECT_EQ(control_->packed, 2);
  // The constant for which the backend was asked first was uploaded in both forms.
  EXPECT_EQ(control_->copied_bytes_in, 3 * 65536 + (1 + 2) * 512);
}

TEST_F(Queues, AddNoSecondCopyOfAnyConstantForASecondSignature) {
  session_ = Load(R"(
input x : float32[N,4]
input z : float32[4,4]
const small = float32[4,4]<1>
const weight = float32[4,6]<2>
const large = float32[128,128]<3>
input l : float32[128,128]
a = Add(z, small)
b = MatMul(x, weight)
c = Add(l, large)
output a
output b
output c
)",
                  "async0");
  auto in = [](int64_t n) { return std::vector{Numbers({n, 4}), Numbers({4, 4}), Numbers({128, 128})}; };
  ASSERT_TRUE(Run(*session_, in(1)).ok());
  auto first = PlanOf(in(1));
  const int64_t copied = control_->copied_bytes_in;
  ASSERT_TRUE(Run(*session_, in(2)).ok());
  auto second = PlanOf(in(2));
  ASSERT_NE(first, second);
  EXPECT_EQ(control_->copied_bytes_in - copied, 2 * 16 + 64 + 65536);  // the inputs
  EXPECT_EQ(second->report.measured_constant_bytes, 0);
  EXPECT_GT(first->report.measured_constant_bytes, 0);
  EXPECT_EQ(first->report.uploaded_bytes, second->report.uploaded_bytes);
}

TEST_F(Queues, PackAWeightOnceForTheStepsOfAPlan) {
  session_ = Load(R"(
input x : float32[2,4]
const w = float32[4,4]<2>
a = MatMul(x, w)
b = MatMul(a, w)
output b
)",
                  "async0");
  auto got = Run(*session_, {Numbers({2, 4})});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_EQ(control_->packed_on_queue, 1);
  EXPECT_EQ(control_->copied_bytes_in, 64 + 32);
}

TEST_F(Queues, RunStepsWithoutAKernelOnTheHostWithTheNeededCopies) {
  Compare(R"(
input x : float32[4,6]
a = Relu(x)
b = Erf(a)
c = Add(b, a)
d = Neg(c)
e = Relu(d)
output e
output b
)",
          "async0", {Numbers({4, 6})});
  auto plan = PlanOf({Numbers({4, 6})});
  EXPECT_EQ(plan->report.reference_steps, 2);
}

TEST_F(Queues, DropUnusedResultsOfHostSteps) {
  // The evaluator of LayerNormalization computes mean and deviation too.
  Compare(R"(
input x : float32[4,6]
const scale = float32[6]<1,2,3,4,5,6>
a = Relu(x)
n = LayerNormalization(a, scale)
y = Relu(n)
output y
)",
          "async0", {Numbers({4, 6})});
}

TEST_F(Queues, CheckTypesKnownOnlyInTheRunInHostSteps) {
  session_ = Load(R"(
input s : seq float32
input i : int64[]
x = SequenceAt(s, i)
q = SplitToSequence(x) {axis=1}
y = SequenceAt(q, i)
output y
)",
                  "async0");
  ASSERT_TRUE(session_);
  HostValue sequence, index;
  sequence.kind = ValueKind::kSequence;
  index.tensor = Tensor::Scalar<int64_t>(0);
  sequence.sequence = {Numbers({6}).tensor};
  EXPECT_EQ(ErrorId(Run(*session_, {sequence, index}).status()), errors::kInvalidNode.id);
  sequence.sequence = {Numbers({2, 3}).tensor};
  auto got = Run(*session_, {sequence, index});
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_EQ(got->size(), 2u);
}

TEST_F(Queues, WorkTogetherWithHostValuesShapesAndControlFlow) {
  Compare(R"(
input x : float32[4,6]
input go : bool[]
a = Relu(x)
b = If(go) captures(a, a) {then_branch=graph {
  capture a
  r = Add(a, a)
  output r
}, else_branch=graph {
  capture a
  n = Neg(a)
  output n
}} : float32[4,6]
c = Relu(b)
output c
)",
          "async0", {Numbers({4, 6}), [] {
                       HostValue v;
                       v.tensor = Tensor::Scalar(true);
                       return v;
                     }()});
}

TEST_F(Queues, PlanStepsOfUnknownShapesDuringTheRun) {
  Compare(R"(
input x : float32[4,6]
a = Relu(x)
i = NonZero(a)
f = Cast(i) {to=1}
g = Add(f, f)
r = Relu(g)
output r
output a
)",
          "async0", {Numbers({4, 6})});
}

TEST_F(Queues, PassInputsConstantsAndViewsThroughAsOutputs) {
  Compare(R"(
input x : float32[4,6]
const k = float32[2]<1,2>
const s = int64[1]<24>
v = Reshape(x, s)
a = Relu(v)
t = Reshape(a, s)
output x
output k
output t
output a
output v
)",
          "async0", {Numbers({4, 6})});
}

TEST_F(Queues, CaptureASegmentInItsSecondRunAndReplayItLater) {
  Compare(kPerceptron, "async0", {Numbers({3, 4})});
  EXPECT_EQ(control_->captures, 1);
  EXPECT_EQ(control_->replays, 2);  // the second run and the third
  EXPECT_EQ(control_->kernels, 9);
  EXPECT_EQ(control_->records, 1);
  session_.reset();
  EXPECT_EQ(control_->records, 0);
  EXPECT_EQ(control_->queues, 0);
  EXPECT_EQ(control_->fences, 0);
}

TEST_F(Queues, SayWhereSegmentsBeginAndWhy) {
  session_ = Load(kSmall, "async0");
  std::string why = Why({Numbers({4, 6}), Numbers({4, 6}, 2)});
  EXPECT_THAT(why, HasSubstr("segment on async0, compute: step 2, capture-safe\n"));
  EXPECT_THAT(why, HasSubstr("segment on async0, compute: steps 5 6 7, capture-safe; begins here because Add waits for "
                             "async0 copy in"));
}

TEST_F(Queues, GiveIdenticalResultsToThreadsThatShareASession) {
  session_ = Load(kPerceptron, "async0");
  std::vector<std::vector<float>> expected;
  for (int t = 0; t < 4; ++t) expected.push_back(*Run(*session_, {Numbers({3, 4}, t)}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        auto got = Run(*session_, {Numbers({3, 4}, t)});
        wrong += !got.ok() || *got != expected[static_cast<size_t>(t)];
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// Returns a model of eight inputs with one kernel each.
std::string Pipeline() {
  std::string text;
  for (int i = 0; i < 8; ++i) text += "input x" + std::to_string(i) + " : float32[64]\n";
  for (int i = 0; i < 8; ++i) text += "y" + std::to_string(i) + " = Relu(x" + std::to_string(i) + ")\n";
  for (int i = 0; i < 8; ++i) text += "output y" + std::to_string(i) + "\n";
  return text;
}

TEST_F(Queues, WaitForEachStepInARunThatIsObserved) {
  struct Counter : RunObserver {
    void BeginPlan(const std::shared_ptr<const Plan>&, std::string_view) override {}
    void EndPlan() override {}
    void BeginStep(int32_t) override { at_begin = control->kernels + control->copies_in + control->copies_out; }
    void EndStep() override { done.push_back(control->kernels + control->copies_in + control->copies_out - at_begin); }
    void BeginPlanning() override {}
    void EndPlanning() override {}
    void BeginShare() noexcept override {}
    void EndShare() noexcept override {}
    void BeginChunk(uint32_t) noexcept override {}
    void EndChunk(uint32_t) noexcept override {}
    mge_async_control* control = nullptr;
    int64_t at_begin = 0;
    std::vector<int64_t> done;  // operations that the device finished within each step
  };
  Compare(kPerceptron, "async0", {Numbers({3, 4})});  // captures the segment and replays it
  const int64_t replays = control_->replays;
  Counter counter;
  counter.control = control_;
  RunState control;
  control.observer = &counter;
  auto plan = PlanOf({Numbers({3, 4})});
  auto got = Run(*session_, {Numbers({3, 4})}, control);
  ASSERT_TRUE(got.ok()) << FormatError(got.status());
  EXPECT_EQ(control_->replays, replays);
  EXPECT_EQ(counter.done.size(), plan->steps.size());
  for (int64_t done : counter.done) EXPECT_LE(done, 1);
  auto again = Run(*session_, {Numbers({3, 4})});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(control_->replays, replays + 1);  // the record is still there
  EXPECT_EQ(*again, *got);
}

TEST_F(Queues, CopyAndComputeAtTheSameTime) {
  std::vector<HostValue> in;
  for (int i = 0; i < 8; ++i) in.push_back(Numbers({64}, i));
  control_->kernel_us = control_->copy_us = 5000;
  Compare(Pipeline(), "async0", in);
  EXPECT_GE(control_->most_at_once, 2);  // queues overlapped; times would depend on the machine
}

TEST_F(Queues, NameAFailingKernelWithItsNodeAndRunAgain) {
  session_ = Load(kSmall, "async0");
  std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  auto expected = Run(*session_, in);
  ASSERT_TRUE(expected.ok());
  for (int round = 0; round < 3; ++round) {
    control_->kernel_fails = true;
    auto failed = Run(*session_, in);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(ErrorId(failed.status()), errors::kKernelFailed.id);
    EXPECT_THAT(FormatError(failed.status()), HasSubstr("the test broke a kernel"));
    EXPECT_THAT(FormatError(failed.status()), HasSubstr("Relu"));
    EXPECT_THAT(FormatError(failed.status()), HasSubstr("async0"));
    auto again = Run(*session_, in);
    ASSERT_TRUE(again.ok()) << FormatError(again.status());
    EXPECT_EQ(*again, *expected);
  }
}

// The device works on behind a failure. The host must not read what it then finds: Gather would name a wrong index.
TEST_F(Queues, ReportAFailureBeforeAStepReadsWhatDependsOnIt) {
  session_ = Load(R"(
input x : float32[4]
input data : float32[8]
a = Relu(x)
b = Relu(a)
i = Cast(b) {to=7}
y = Gather(data, i)
output y
)",
                  "async0");
  std::vector<HostValue> in = {Numbers({4}), Numbers({8})};
  for (int round = 0; round < 3; ++round) {
    control_->kernel_fails = true;
    auto failed = Run(*session_, in);
    EXPECT_THAT(FormatError(failed.status()), AllOf(HasSubstr("the test broke a kernel"), HasSubstr("Relu")));
  }
}

TEST_F(Queues, NameAKernelThatWritesBesideItsBufferWhenMemoryIsChecked) {
  std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  Restart({{"debug.check_memory", "1"}});
  Compare(kSmall, "async0", in);
  EXPECT_EQ(control_->captures, 0);
  control_->overruns = true;
  for (int round = 0; round < 2; ++round) {
    absl::Status status = Run(*session_, in).status();
    EXPECT_EQ(ErrorId(status), errors::kKernelFailed.id);
    EXPECT_THAT(FormatError(status), AllOf(HasSubstr("kernel async.relu of device async0 wrote outside of its memory"),
                                           HasSubstr("1 of the 96 bytes behind the buffer"), HasSubstr("(Relu)")));
  }
  control_->overruns = false;
  EXPECT_TRUE(Run(*session_, in).ok());
  control_->kernel_fails = true;
  const auto its_place = HasSubstr("device async0, kernel async.relu, node '' (Relu)");
  EXPECT_THAT(FormatError(Run(*session_, in).status()), AllOf(HasSubstr("the test broke a kernel"), its_place));
  control_->hangs = true;
  RunState control;
  control.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  absl::Status late = Run(*session_, in, control).status();
  EXPECT_EQ(ErrorId(late), errors::kTimeout.id);
  EXPECT_THAT(FormatError(late), its_place);
}

TEST_F(Queues, ReportALostDeviceInEveryLaterRun) {
  session_ = Load(kSmall, "async0");
  std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  ASSERT_TRUE(Run(*session_, in).ok());
  control_->lost = true;
  for (int round = 0; round < 3; ++round) {
    auto lost = Run(*session_, in);
    ASSERT_FALSE(lost.ok());
    EXPECT_EQ(ErrorId(lost.status()), errors::kDeviceLost.id) << FormatError(lost.status());
  }
  EXPECT_TRUE(Run(*Load(kSmall, "cpu0"), in).ok());
}

TEST_F(Queues, FailInAForkedChildBecauseTheyBelongToTheParent) {
  session_ = Load(kSmall, "async0");
  std::vector<HostValue> in = {Numbers({4, 6}), Numbers({4, 6}, 2)};
  auto expected = Run(*session_, in);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(InChild([&] {
              bool forked = ErrorId(Run(*session_, in).status()) == errors::kForked.id;
              session_.reset();  // must not release objects of the parent
              return forked;
            }),
            0);
  EXPECT_EQ(*Run(*session_, in), *expected);
}

TEST_F(Queues, TakeThePredictedMemory) {
  Compare(kPerceptron, "async0", {Numbers({3, 4})});
  auto plan = PlanOf({Numbers({3, 4})});
  ASSERT_EQ(plan->arenas.size(), 2u);
  int64_t bytes = 0;
  for (const Arena& a : plan->arenas) bytes += a.bytes;
  EXPECT_EQ(plan->report.arena_bytes, bytes);
  EXPECT_EQ(PlannedPeakBytes(*plan), bytes + plan->report.uploaded_bytes);
}

TEST_F(Queues, KeepWithinTheBudgetOfTheDevice) {
  Restart({{"memory.limit", "async0=64"}});
  session_ = Load(kPerceptron, "async0");
  auto status = Run(*session_, {Numbers({3, 4})}).status();
  EXPECT_EQ(KindOf(status), ErrorKind::kMemory) << FormatError(status);
  EXPECT_THAT(FormatError(status), HasSubstr("async0"));
}

// ---------------------------------------------------------------- several devices

TEST_F(Queues, RunStepsThatTheFirstDeviceCannotDoOnTheNext) {
  std::vector<HostValue> in = {Numbers({4, 4}), Numbers({4, 4}, 2)};
  std::string text = R"(
input x : float32[4,4]
input y : float32[4,4]
a = Relu(x)
m = Mul(a, y)
z = Add(m, a)
output z
)";
  Compare(text, "async0,async1", in);
  std::string why = Why(in);
  EXPECT_THAT(why, HasSubstr("async0 has no kernel for it; Mul: this device lacks it")) << why;
  EXPECT_THAT(why, HasSubstr("directly over test link (50.0 GB/s)")) << why;
  EXPECT_GT(control_->peer_copies, 0);
  Compare(text, "async0,cpu0", in);
  EXPECT_EQ(PlanOf(in)->report.reference_steps, 0);
  Compare(text, "async2,async1", in);
  EXPECT_THAT(Why(in), HasSubstr("no direct way between the devices"));
}

TEST_F(Queues, RefuseALinkWithFlagsThatTheHostDoesNotKnow) {
  const char text[] = "input x : float32[4,4]\na = Relu(x) on \"async0\"\nb = Relu(a) on \"async1\"\noutput b\n";
  control_->link_flags = 0x40;
  auto session = Load(text, "async0+async1");
  auto result = Run(*session, {Numbers({4, 4})});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(FormatError(result.status()), AllOf(HasSubstr("backend async sets flags of a link"), HasSubstr("0x40"),
                                                  HasSubstr("from device async0 to async1")));
  control_->link_flags = 0;
  EXPECT_TRUE(Run(*session, {Numbers({4, 4})}).ok());
}

TEST_F(Queues, ProfileMeasuresTheDeviceWithoutTheLaunchOnTheHost) {
  Restart({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  control_->wait_us = 10000;  // measured by the host's clock, every kernel would take at least 10 ms
  session_ = Load(kTwoCandidates, "async0");
  for (const Unit& u : PlanOf({Numbers({4, 4})})->units) {
    if (u.kind != Unit::Kind::kKernel) continue;
    EXPECT_EQ(u.kernel, "async.abs.slow_to_launch");
    EXPECT_GE(u.measured_us, 200);
    EXPECT_LT(u.measured_us, 5000);
  }
}

TEST_F(Queues, AKernelThatFailsInATrialDoesNotAffectLaterTrials) {
  Restart({{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}});
  control_->kernel_fails = true;
  session_ = Load(kTwoCandidates, "async0");
  std::string reasons;
  for (const Unit& u : PlanOf({Numbers({4, 4})})->units) {
    if (u.kind != Unit::Kind::kKernel) continue;
    EXPECT_GT(u.measured_us, 0);
    for (const Alternative& a : u.alternatives) reasons += a.reason + "\n";
  }
  EXPECT_THAT(reasons, HasSubstr("the test broke a kernel"));
}

TEST_F(Queues, SplitAModelOverTwoDevices) {
  std::string text = "input x : float32[8,8]\na0 = Relu(x)\n";
  for (int i = 0; i < 10; ++i) {
    std::string before = "a" + std::to_string(i), after = "a" + std::to_string(i + 1);
    text += after + " = Add(" + before + ", " + (i ? "a" + std::to_string(i - 1) : "x") + ")\n";
  }
  text += "output a10\n";
  for (const char* device : {"async0+async1", "async0+async2", "async1+cpu0", "async0+async1+async2"}) {
    Compare(text, device, {Numbers({8, 8})});
    std::vector<int> steps(3, 0);
    auto plan = PlanOf({Numbers({8, 8})});
    for (const Unit& u : plan->units) {
      if (u.kind != Unit::Kind::kKernel) continue;
      for (size_t d = 0; d < session_->devices().size(); ++d) steps[d] += u.device == session_->devices()[d]->name();
    }
    for (size_t d = 0; d < session_->devices().size(); ++d) EXPECT_GE(steps[d], 1) << device << Why({Numbers({8, 8})});
    EXPECT_THAT(PlanText(*plan, true), HasSubstr("part 1 of"));
    EXPECT_THAT(PlanText(*plan, false), HasSubstr(std::string("device ") + device));
  }
}

TEST_F(Queues, SplitAModelBetweenClaimedGroups) {
  if (!std::filesystem::exists(std::string(kBuiltInPlugins) + "/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  Restart({{"virtual.devices", "2"}});
  std::vector<HostValue> in = {Numbers({8, 8})};
  auto steps = [&](const std::string& device, int blocks) {
    Compare(Blocks(blocks), device, in);
    std::map<std::string, int> out;
    for (const Unit& u : PlanOf(in)->units) out[u.device] += u.kind == Unit::Kind::kKernel;
    return out;
  };
  for (int blocks : {2, 3, 5, 7}) {
    int alone = steps("virtual0", blocks)["virtual0"];
    auto both = steps("virtual0+virtual1", blocks);
    EXPECT_EQ(both["virtual0"] + both["virtual1"], alone) << Why(in);
    EXPECT_GE(std::min(both["virtual0"], both["virtual1"]), 1) << Why(in);
  }
}

TEST_F(Queues, PutAStepOnTheOnlyDeviceThatCanRunIt) {
  std::vector<HostValue> in = {Numbers({4, 4}), Numbers({4, 4}, 2)};
  Compare(R"(
input x : float32[4,4]
input y : float32[4,4]
a = Mul(x, y)
b = MatMul(a, x)
c = Mul(b, a)
output c
)",
          "async0+async1", in);
  auto plan = PlanOf(in);
  EXPECT_EQ(plan->report.reference_steps, 0);
  EXPECT_THAT(PlanText(*plan, true), HasSubstr("it is the only device with a kernel"));
}

TEST_F(Queues, FollowTheAnnotationsOfTheModel) {
  std::vector<HostValue> in = {Numbers({4, 4})};
  std::string text = R"(
input x : float32[4,4]
a = Relu(x) on "async1"
b = Relu(a) on "async0"
c = Add(b, a) on "async1"
output c
)";
  for (const char* device : {"async0+async1", "async0,async1"}) {
    Compare(text, device, in);
    std::vector<std::string> where;
    for (const Unit& u : PlanOf(in)->units) {
      if (u.kind == Unit::Kind::kKernel) where.push_back(u.device);
    }
    EXPECT_EQ(where, (std::vector<std::string>{"async1", "async0", "async1"})) << device;
    EXPECT_THAT(Why(in), HasSubstr("the model asks for it"));
  }
  Compare(text, "async0", in);
  EXPECT_THAT(Why(in), HasSubstr("the model asks for async1, which this session does not have"));
}

}  // namespace
}  // namespace mge
