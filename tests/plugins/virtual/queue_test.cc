// SPDX-License-Identifier: Apache-2.0
// Queues, fences, capture and stamps.
#include <gmock/gmock.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "tests/plugins/virtual/virtual_backend.h"

namespace mge {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<float> Ramp(size_t n) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i) - static_cast<float>(n) / 2;
  return v;
}

TEST(VirtualQueue, CopiesInOutAndWithin) {
  VirtualBackend b;
  Slab slab(b, 3000);
  std::vector<char> data(1000), got(1000);
  std::iota(data.begin(), data.end(), 1);
  Queue queue(b);
  ASSERT_EQ(queue.Copy(slab.at(17), data.data(), 1000), MGE_OK);
  ASSERT_EQ(queue.Copy(slab.at(2000), slab.at(17), 1000), MGE_OK);
  ASSERT_EQ(queue.Copy(slab.at(2001), slab.at(2000), 999), MGE_OK);  // source and target overlap
  ASSERT_EQ(queue.Copy(got.data(), slab.at(2000), 1000), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK);
  EXPECT_EQ(got[0], data[0]);
  EXPECT_TRUE(std::equal(data.begin(), data.end() - 1, got.begin() + 1));
}

TEST(VirtualQueue, RefusesCopiesOutsideOfTheDevicesMemory) {
  VirtualBackend b;
  Slab slab(b, 100);
  char host[200] = {};
  Queue queue(b);
  EXPECT_EQ(queue.Copy(host, host + 100, 100), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(queue.error.text, HasSubstr("neither end of the copy is memory of virtual0"));
  EXPECT_EQ(queue.Copy(slab.at(1), host, 100), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(queue.error.text, HasSubstr("the destination of the copy: 100 bytes there are not memory of virtual0"));
  EXPECT_EQ(queue.Copy(host, slab.at(101), 1), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(queue.Copy(host, slab.at() - 1, 1), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(queue.Copy(nullptr, slab.at(), 1), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(queue.Copy(slab.at(), nullptr, 1), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(queue.Copy(slab.at(100), host, 0), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_OK);  // a refused copy does not make the queue fail
  mge_queue* none = nullptr;
  EXPECT_EQ(b.queues().create(b.Device(), 4, &none, nullptr), MGE_UNIMPLEMENTED);
}

TEST(VirtualQueue, ReturnsAtOnceAndWorksInOrder) {
  VirtualBackend b(kGated);
  Slab slab(b, 8);
  Queue queue(b);
  Fence done(b);
  Gate gate(b);
  std::vector<uint64_t> got(200, 99);
  gate.Hold(queue);
  std::vector<uint64_t> values(200);
  for (uint64_t i = 0; i < 200; ++i) {  // more than the initial capacity of a queue
    values[i] = i;
    ASSERT_EQ(queue.Copy(slab.at(), &values[i], 8), MGE_OK);
    ASSERT_EQ(queue.Copy(&got[i], slab.at(), 8), MGE_OK);
  }
  ASSERT_EQ(queue.Signal(done, 1), MGE_OK);
  EXPECT_EQ(done.Wait(1, 1'000'000), MGE_DEADLINE_EXCEEDED);
  EXPECT_THAT(got, Each(99u));
  gate.Open();
  EXPECT_EQ(done.Wait(1), MGE_OK);
  EXPECT_EQ(got, values);
}

TEST(VirtualQueue, QueuesOfOneDeviceWorkInParallel) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.fault", "copy@1=hang"}});
  Slab slab(b, 8);
  char byte = 1;
  Queue in(b, MGE_QUEUE_COPY_IN), out(b, MGE_QUEUE_COPY_OUT);
  Fence stuck(b);
  ASSERT_EQ(in.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(in.Signal(stuck, 1), MGE_OK);
  EXPECT_EQ(stuck.Wait(1, 50'000'000), MGE_DEADLINE_EXCEEDED);
  ASSERT_EQ(out.Copy(&byte, slab.at(), 1), MGE_OK);
  EXPECT_EQ(out.Finish(), MGE_OK);
  EXPECT_EQ(stuck.Wait(1, 0), MGE_DEADLINE_EXCEEDED);
}

TEST(VirtualFence, OrdersQueuesOfSeveralDevices) {
  VirtualBackend b(Settings{{"virtual.devices", "2"}});
  Slab zero(b, 4, 0), one(b, 4, 1);
  Queue queue0(b, MGE_QUEUE_COMPUTE, 0), queue1(b, MGE_QUEUE_COMPUTE, 1);
  Fence there(b, 0), back(b, 1);
  uint32_t value = 0, got = 0;
  for (uint32_t turn = 1; turn <= 100; ++turn) {
    value = turn;
    ASSERT_EQ(queue0.Copy(zero.at(), &value, 4), MGE_OK);
    ASSERT_EQ(queue0.Signal(there, turn), MGE_OK);
    ASSERT_EQ(queue1.Wait(there, turn), MGE_OK);
    ASSERT_EQ(b.queues().copy_peer(queue1, b.Device(1), one.at(), b.Device(0), zero.at(), 4, nullptr), MGE_OK);
    ASSERT_EQ(queue1.Copy(&got, one.at(), 4), MGE_OK);
    ASSERT_EQ(queue1.Signal(back, turn), MGE_OK);
    ASSERT_EQ(queue0.Wait(back, turn), MGE_OK);
    ASSERT_EQ(back.Wait(turn), MGE_OK);
    ASSERT_EQ(got, turn);
  }
}

TEST(VirtualFence, ValuesIncreaseAndEachIsSignalledOnce) {
  VirtualBackend b;
  Queue queue(b);
  Fence fence(b);
  ASSERT_EQ(queue.Signal(fence, 5), MGE_OK);
  for (uint64_t value : {3, 5}) {
    EXPECT_EQ(queue.Signal(fence, value), MGE_FAILED_PRECONDITION);
    EXPECT_THAT(queue.error.text, HasSubstr("its values must increase"));
  }
  ASSERT_EQ(queue.Finish(), MGE_OK);
  for (uint64_t value : {0, 1, 5}) EXPECT_EQ(fence.Wait(value, 0), MGE_OK);
}

// A real device would not wait for an event that was never recorded: a race that no test of a host would see.
TEST(VirtualFence, RefusesAWaitBeforeItsSignal) {
  VirtualBackend b;
  Queue queue(b);
  Fence fence(b);
  EXPECT_EQ(queue.Wait(fence, 1), MGE_FAILED_PRECONDITION);
  EXPECT_THAT(queue.error.text, HasSubstr("no signal of that value has been enqueued before"));
  EXPECT_EQ(fence.Wait(1), MGE_FAILED_PRECONDITION);
  ASSERT_EQ(queue.Signal(fence, 1), MGE_OK);
  EXPECT_EQ(queue.Wait(fence, 2), MGE_FAILED_PRECONDITION);
  EXPECT_EQ(fence.Wait(2, 0), MGE_FAILED_PRECONDITION);
  EXPECT_EQ(queue.Wait(fence, 1), MGE_OK);
  EXPECT_EQ(fence.Wait(1), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_OK);
}

TEST(VirtualFence, KeepsTheOutcomeOfEachValue) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.fault", "copy@2=fail"}});
  Slab slab(b, 8);
  Queue queue(b);
  Fence fence(b);
  char byte = 1;
  for (uint64_t value = 1; value <= 3; ++value) {
    ASSERT_EQ(queue.Copy(slab.at(), &byte, 1), MGE_OK);
    ASSERT_EQ(queue.Signal(fence, value), MGE_OK);
  }
  EXPECT_EQ(fence.Wait(3), MGE_INTERNAL);
  EXPECT_EQ(fence.Wait(2), MGE_INTERNAL);
  EXPECT_EQ(fence.Wait(1), MGE_OK);
}

TEST(VirtualFence, MayBeDestroyedBeforeAQueueSignalsIt) {
  VirtualBackend b(kGated);
  Queue queue(b), other(b);
  Gate gate(b);
  {
    Fence fence(b);
    gate.Hold(queue);
    ASSERT_EQ(queue.Signal(fence, 1), MGE_OK);
    ASSERT_EQ(other.Wait(fence, 1), MGE_OK);
  }
  gate.Open();
  EXPECT_EQ(queue.Finish(), MGE_OK);
  EXPECT_EQ(other.Finish(), MGE_OK);
}

TEST(VirtualKernel, ComputesOnTheQueue) {
  VirtualBackend b;
  constexpr size_t kCount = 5000;
  Slab x(b, 4 * kCount), y(b, 4 * kCount);
  std::vector<float> data = Ramp(kCount), got(kCount);
  ElementwiseKernel relu(b, "Relu", kCount);
  Queue queue(b);
  ASSERT_EQ(queue.Copy(x.at(), data.data(), 4 * kCount), MGE_OK);
  ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK) << relu.error.text;
  ASSERT_EQ(queue.Copy(got.data(), y.at(), 4 * kCount), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK) << queue.error.text;
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(got[i], std::max(0.f, data[i])) << i;
}

TEST(VirtualKernel, RunsOnTheHostsThreads) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
  constexpr size_t kCount = 1 << 20;
  Slab x(b, 4 * kCount), y(b, 4 * kCount);
  std::vector<float> data = Ramp(kCount), got(kCount);
  ElementwiseKernel relu(b, "Relu", kCount);
  Queue queue(b);
  ASSERT_EQ(queue.Copy(x.at(), data.data(), 4 * kCount), MGE_OK);
  ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
  ASSERT_EQ(queue.Copy(got.data(), y.at(), 4 * kCount), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK) << queue.error.text;
  EXPECT_GT(b.chunks, 1u);
  for (float& v : data) v = std::max(0.f, v);
  EXPECT_TRUE(got == data);
}

TEST(VirtualKernel, FailsIfAnOperandIsNotMemoryOfTheDevice) {
  VirtualBackend b(kGated);
  Slab x(b, 4000), y(b, 4000), foreign(b, 4000, 1);
  ElementwiseKernel relu(b, "Relu", 1000);
  {
    Queue queue(b);
    ASSERT_EQ(relu.Run(queue, {foreign.at(), y.at()}), MGE_OK);
    EXPECT_EQ(queue.Finish(), MGE_INVALID_ARGUMENT);
    EXPECT_THAT(queue.error.text, HasSubstr("an address that is not memory of this device"));
  }
  Queue queue(b);
  Gate gate(b);
  gate.Hold(queue);
  ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
  mge_slab raw = x.Take();
  b.memory().slab_release(b.Device(), &raw);  // released while the kernel may use it
  gate.Open();
  EXPECT_EQ(queue.Finish(), MGE_INVALID_ARGUMENT);
}

// The fault word is copied in front of each signal and judged by the host's wait. The queue itself works on.
TEST(VirtualKernel, AnErrorInItsDataFailsLaterSignalsAndStopsNothing) {
  VirtualBackend b;
  Slab x(b, 40), y(b, 40), z(b, 40);
  ElementwiseKernel div(b, "Div", 10, 2, MGE_DTYPE_I32);
  std::vector<int32_t> ones(10, 1), divisors(10, 1), got(10, 0);
  divisors[7] = 0;
  Fence fence(b), waited(b);
  Queue queue(b), other(b);
  ASSERT_EQ(queue.Copy(x.at(), ones.data(), 40), MGE_OK);
  ASSERT_EQ(queue.Copy(y.at(), divisors.data(), 40), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 1), MGE_OK);
  ASSERT_EQ(div.Run(queue, {x.at(), y.at(), z.at()}), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 2), MGE_OK);
  ASSERT_EQ(div.Run(queue, {x.at(), x.at(), z.at()}), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 3), MGE_OK);
  ASSERT_EQ(other.Wait(fence, 3), MGE_OK);
  ASSERT_EQ(other.Copy(got.data(), z.at(), 40), MGE_OK);
  ASSERT_EQ(other.Signal(waited, 1), MGE_OK);
  EXPECT_EQ(waited.Wait(1), MGE_OK);
  EXPECT_THAT(got, Each(1));
  EXPECT_EQ(fence.Wait(1), MGE_OK);
  for (uint64_t value : {2, 3}) {
    EXPECT_EQ(fence.Wait(value), MGE_INVALID_ARGUMENT);
    EXPECT_THAT(fence.error.text, HasSubstr("an integer is divided by zero"));
  }
}

TEST(VirtualKernel, IsRefusedOnACopyQueue) {
  VirtualBackend b;
  Slab x(b, 40), y(b, 40);
  ElementwiseKernel relu(b, "Relu", 10);
  Queue in(b, MGE_QUEUE_COPY_IN), out(b, MGE_QUEUE_COPY_OUT), between(b, MGE_QUEUE_COMMUNICATION);
  EXPECT_EQ(relu.Run(between, {x.at(), y.at()}), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(relu.Run(in, {x.at(), y.at()}), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(relu.Run(out, {x.at(), y.at()}), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(relu.error.text, HasSubstr("a copy queue cannot run kernels"));
}

TEST(VirtualKernel, TheWrongKernelIsOfferedOnRequestAndGivesZeros) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.wrong_kernel", "1"}, {"virtual.poison", "1"}});
  Slab x(b, 40), y(b, 40);
  ElementwiseKernel exp(b, "Exp", 10);
  size_t wrong = 0;
  while (wrong < exp.ids.size() && exp.ids[wrong] != "virtual.wrong") ++wrong;
  ASSERT_LT(wrong, exp.ids.size());
  for (const mge_candidate& c : exp.candidates) EXPECT_GE(c.cost_us, exp.candidates[wrong].cost_us);
  EXPECT_TRUE(exp.candidates[wrong].attributes & MGE_KERNEL_DETERMINISTIC);
  exp.Prepare(wrong);
  std::vector<float> data(10, 1), got(10, 1);
  Queue queue(b);
  ASSERT_EQ(queue.Copy(x.at(), data.data(), 40), MGE_OK);
  ASSERT_EQ(exp.Run(queue, {x.at(), y.at()}), MGE_OK);
  ASSERT_EQ(queue.Copy(got.data(), y.at(), 40), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK);
  EXPECT_THAT(got, Each(0.f));
}

// Returns the memory after Relu wrote each element into the next one, with one thread per element. Source and target
// overlap, so the result shows the order of the threads. Operands of correct plans never overlap like this.
std::vector<float> Shifted(const char* order) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.thread_order", order}});
  constexpr size_t kCount = 64;
  Slab x(b, 4 * (kCount + 1));
  std::vector<float> data(kCount + 1);
  std::iota(data.begin(), data.end(), 1.f);
  ElementwiseKernel relu(b, "Relu", kCount);
  Queue queue(b);
  EXPECT_EQ(queue.Copy(x.at(), data.data(), 4 * data.size()), MGE_OK);
  EXPECT_EQ(relu.Run(queue, {x.at(), x.at(4)}), MGE_OK) << relu.error.text;
  EXPECT_EQ(queue.Copy(data.data(), x.at(), 4 * data.size()), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_OK) << queue.error.text;
  return data;
}

TEST(VirtualKernel, ThreadsStartInTheConfiguredOrder) {
  std::vector<float> forward = Shifted("forward"), reverse = Shifted("reverse"), shuffled = Shifted("shuffled");
  EXPECT_THAT(forward, Each(1.f));
  for (size_t i = 1; i < reverse.size(); ++i) ASSERT_EQ(reverse[i], static_cast<float>(i));
  EXPECT_NE(shuffled, forward);
  EXPECT_NE(shuffled, reverse);
  EXPECT_EQ(shuffled, Shifted("shuffled"));  // the same order in every run
}

// Sums 2^24 and two elements of 1, which are in the next 32 elements. Adding a single 1 does not change 2^24 in float32.
// The sum changes only if a second warp of 32 threads adds the two ones first.
float SumByWarps(const char* warp) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.warp", warp}});
  Slab x(b, 1024), y(b, 4);
  ElementwiseKernel sum(b, "ReduceSum", 256, 1, MGE_DTYPE_F32, 1);
  size_t block = 0;
  while (block < sum.ids.size() && sum.ids[block] != "gpu.reduce.block") ++block;
  EXPECT_LT(block, sum.ids.size());
  sum.Prepare(block);
  std::vector<float> data(256, 0.f);
  data[0] = 0x1p24f;
  data[32] = data[40] = 1;
  float got = 0;
  Queue queue(b);
  EXPECT_EQ(queue.Copy(x.at(), data.data(), 1024), MGE_OK);
  EXPECT_EQ(sum.Run(queue, {x.at(), y.at()}), MGE_OK) << sum.error.text;
  EXPECT_EQ(queue.Copy(&got, y.at(), 4), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_OK) << queue.error.text;
  return got;
}

TEST(VirtualKernel, WarpsHaveTheConfiguredWidth) {
  EXPECT_EQ(SumByWarps("32"), 0x1p24f + 2);  // the second warp adds the two ones first
  EXPECT_EQ(SumByWarps("64"), 0x1p24f);      // the ones are added to 2^24 one after another
}

class VirtualCapture : public testing::Test {
 protected:
  VirtualCapture() : x_(b_, 40), y_(b_, 40), relu_(b_, "Relu", 10) {}
  // Records y = Relu(x) and the copy of y to the host.
  void Record() {
    ASSERT_EQ(api_.capture_begin(queue_, nullptr), MGE_OK);
    ASSERT_EQ(relu_.Run(queue_, {x_.at(), y_.at()}), MGE_OK);
    ASSERT_EQ(queue_.Copy(got_.data(), y_.at(), 40), MGE_OK);
    ASSERT_EQ(api_.capture_end(queue_, &record_, nullptr), MGE_OK);
  }
  VirtualBackend b_{kGated};
  const mge_queue_api& api_ = b_.queues();
  Slab x_, y_;
  ElementwiseKernel relu_;
  Queue queue_{b_};
  std::vector<float> got_ = std::vector<float>(10, -1);
  void* record_ = nullptr;
};

TEST_F(VirtualCapture, RecordsWorkAndRunsItOnlyWhenReplayed) {
  Gate(b_).Open();  // the fault of the settings
  Record();
  ASSERT_EQ(queue_.Finish(), MGE_OK);
  EXPECT_THAT(got_, Each(-1.f));
  for (float value : {3.f, 4.f, -5.f}) {
    std::vector<float> data(10, value);
    ASSERT_EQ(queue_.Copy(x_.at(), data.data(), 40), MGE_OK);
    ASSERT_EQ(api_.replay(queue_, record_, nullptr), MGE_OK);
    ASSERT_EQ(queue_.Finish(), MGE_OK);
    EXPECT_THAT(got_, Each(std::max(value, 0.f)));
  }
  api_.record_destroy(b_.Device(), record_);
}

TEST_F(VirtualCapture, ARecordMayBeDestroyedBeforeItsReplayHasRun) {
  Record();
  std::vector<float> data(10, 2);
  Gate gate(b_);
  gate.Hold(queue_);
  ASSERT_EQ(queue_.Copy(x_.at(), data.data(), 40), MGE_OK);
  ASSERT_EQ(api_.replay(queue_, record_, nullptr), MGE_OK);
  api_.record_destroy(b_.Device(), record_);
  gate.Open();
  ASSERT_EQ(queue_.Finish(), MGE_OK);
  EXPECT_THAT(got_, Each(2.f));
}

TEST_F(VirtualCapture, RefusesFencesStampsAndReplays) {
  Record();
  Fence fence(b_);
  ASSERT_EQ(queue_.Signal(fence, 1), MGE_OK);
  ASSERT_EQ(api_.capture_begin(queue_, nullptr), MGE_OK);
  EXPECT_EQ(queue_.Signal(fence, 2), MGE_FAILED_PRECONDITION);
  EXPECT_EQ(queue_.Wait(fence, 1), MGE_FAILED_PRECONDITION);
  EXPECT_THAT(queue_.error.text, HasSubstr("only copies, fills and kernels can be captured"));
  EXPECT_EQ(api_.replay(queue_, record_, nullptr), MGE_FAILED_PRECONDITION);
  EXPECT_EQ(api_.capture_begin(queue_, nullptr), MGE_FAILED_PRECONDITION);
  void* empty = nullptr;
  ASSERT_EQ(api_.capture_end(queue_, &empty, nullptr), MGE_OK);
  EXPECT_EQ(api_.replay(queue_, empty, nullptr), MGE_OK);
  EXPECT_EQ(api_.capture_end(queue_, &empty, nullptr), MGE_FAILED_PRECONDITION);
  EXPECT_EQ(queue_.Finish(), MGE_OK);
  api_.record_destroy(b_.Device(), empty);
  api_.record_destroy(b_.Device(), record_);
}

TEST_F(VirtualCapture, AnUpdatedRecordUsesTheNewAddresses) {
  Gate(b_).Open();  // the fault of the settings
  Record();
  Slab x(b_, 40), y(b_, 40);
  std::vector<float> data(10, 7), got(10, -1);
  auto capture = [&](bool copy) {
    ASSERT_EQ(api_.capture_begin(queue_, nullptr), MGE_OK);
    ASSERT_EQ(relu_.Run(queue_, {x.at(), y.at()}), MGE_OK);
    if (copy) {
      ASSERT_EQ(queue_.Copy(got.data(), y.at(), 40), MGE_OK);
    }
  };
  ASSERT_EQ(queue_.Copy(x.at(), data.data(), 40), MGE_OK);
  capture(/*copy=*/false);
  EXPECT_EQ(api_.capture_update(queue_, record_, queue_.error), MGE_UNIMPLEMENTED);
  EXPECT_THAT(queue_.error.text, HasSubstr("the captured work is not that of the record"));
  capture(/*copy=*/true);
  ASSERT_EQ(api_.capture_update(queue_, record_, nullptr), MGE_OK);
  ASSERT_EQ(api_.replay(queue_, record_, nullptr), MGE_OK);
  ASSERT_EQ(queue_.Finish(), MGE_OK);
  EXPECT_THAT(got, Each(7.f));
  EXPECT_THAT(got_, Each(-1.f));
  EXPECT_EQ(api_.capture_update(queue_, record_, nullptr), MGE_FAILED_PRECONDITION);  // no capture was begun
  api_.record_destroy(b_.Device(), record_);
}

TEST_F(VirtualCapture, AReplayOnAnotherDeviceIsRefused) {
  Record();
  Queue elsewhere(b_, MGE_QUEUE_COMPUTE, 1);
  EXPECT_EQ(api_.replay(elsewhere, record_, nullptr), MGE_INVALID_ARGUMENT);
  api_.record_destroy(b_.Device(), record_);
}

TEST(VirtualQueue, DestroyFinishesEnqueuedWork) {
  VirtualBackend b;
  Slab slab(b, 8);
  std::vector<uint64_t> values(500), got(500);
  std::iota(values.begin(), values.end(), 1);
  Queue queue(b);
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(queue.Copy(slab.at(), &values[i], 8), MGE_OK);
    ASSERT_EQ(queue.Copy(&got[i], slab.at(), 8), MGE_OK);
  }
  queue.Destroy();
  EXPECT_EQ(got, values);
}

TEST(VirtualQueue, DestroyCancelsItsOwnWorkThatHangs) {
  VirtualBackend b(kGated);
  Slab slab(b, 8);
  Fence hung(b), waited(b);
  Queue hangs(b), waits(b);
  char byte = 0;
  ASSERT_EQ(hangs.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(hangs.Signal(hung, 1), MGE_OK);
  ASSERT_EQ(waits.Wait(hung, 1), MGE_OK);
  ASSERT_EQ(waits.Signal(waited, 1), MGE_OK);
  EXPECT_EQ(waited.Wait(1, 20'000'000), MGE_DEADLINE_EXCEEDED);
  hangs.Destroy();
  EXPECT_EQ(hung.Wait(1), MGE_CANCELLED);
  EXPECT_THAT(hung.error.text, HasSubstr("a queue of virtual0 was destroyed"));
  EXPECT_EQ(waited.Wait(1), MGE_OK);
}

// Lets the queue wait for `on`, then signal `then`.
void Pass(Queue& queue, const Fence& on, const Fence& then) {
  ASSERT_EQ(queue.Wait(on, 1), MGE_OK);
  ASSERT_EQ(queue.Signal(then, 1), MGE_OK);
}

TEST(VirtualQueue, DestroyWaitsForSignalsOfOtherQueues) {
  VirtualBackend b({{"virtual.devices", "2"}, {"virtual.latency_us", "30000"}});
  Slab slab(b, 8);
  Fence copied(b), passed(b, 1), done(b);
  Queue copies(b, MGE_QUEUE_COPY_IN), passes(b, MGE_QUEUE_COMPUTE, 1), waits(b);
  uint64_t value = 7, got = 0;
  ASSERT_EQ(copies.Copy(slab.at(), &value, 8), MGE_OK);
  ASSERT_EQ(copies.Signal(copied, 1), MGE_OK);
  Pass(passes, copied, passed);
  ASSERT_EQ(waits.Wait(passed, 1), MGE_OK);
  ASSERT_EQ(waits.Copy(&got, slab.at(), 8), MGE_OK);
  ASSERT_EQ(waits.Signal(done, 1), MGE_OK);
  waits.Destroy();
  EXPECT_EQ(done.Wait(1, 0), MGE_OK) << done.error.text;
  EXPECT_EQ(got, 7u);
  EXPECT_EQ(copied.Wait(1, 0), MGE_OK);
}

TEST(VirtualQueue, DestroyWaitsForQueuesThatPassWorkToEachOther) {
  VirtualBackend b(Settings{{"virtual.devices", "2"}});
  constexpr uint64_t kTurns = 300;
  Fence ping(b), pong(b, 1);
  Queue first(b), second(b, MGE_QUEUE_COMPUTE, 1);
  Slab slab(b, 1 << 20);
  std::vector<char> data(1 << 20);
  ASSERT_EQ(first.Copy(slab.at(), data.data(), data.size()), MGE_OK);
  for (uint64_t turn = 1; turn <= kTurns; ++turn) {
    if (turn > 1) {
      ASSERT_EQ(first.Wait(pong, turn - 1), MGE_OK);
    }
    ASSERT_EQ(first.Signal(ping, turn), MGE_OK);
    ASSERT_EQ(second.Wait(ping, turn), MGE_OK);
    ASSERT_EQ(second.Signal(pong, turn), MGE_OK);
  }
  std::thread thread([&] { second.Destroy(); });
  first.Destroy();
  thread.join();
  EXPECT_EQ(pong.Wait(kTurns, 0), MGE_OK) << pong.error.text;
}

TEST(VirtualQueue, ManyThreadsMayUseManyQueues) {
  VirtualBackend b(Settings{{"virtual.devices", "2"}});
  b.Device(0);
  b.Device(1);
  constexpr uint32_t kThreads = 4, kTurns = 200;
  std::atomic<uint32_t> right = 0;
  auto work = [&](uint32_t t) {
    uint32_t device = t % 2;
    Slab x(b, 400, device);
    Queue in(b, MGE_QUEUE_COPY_IN, device), out(b, MGE_QUEUE_COPY_OUT, device);
    Fence filled(b, device), emptied(b, device);
    std::vector<uint32_t> data(100, 0), got(100);
    for (uint32_t turn = 1; turn <= kTurns; ++turn) {
      std::fill(data.begin(), data.end(), t * kTurns + turn);
      if (in.Copy(x.at(), data.data(), 400) != MGE_OK || in.Signal(filled, turn) != MGE_OK ||
          out.Wait(filled, turn) != MGE_OK || out.Copy(got.data(), x.at(), 400) != MGE_OK ||
          out.Signal(emptied, turn) != MGE_OK || emptied.Wait(turn) != MGE_OK) {
        return;
      }
      if (got == data) ++right;
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, kThreads * kTurns);
}

}  // namespace
}  // namespace mge
