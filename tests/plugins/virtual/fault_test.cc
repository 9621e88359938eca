// SPDX-License-Identifier: Apache-2.0
// Faults on demand, and the signals that carry them.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "mge/faults.h"
#include "tests/plugins/virtual/virtual_backend.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Settings With(const std::string& fault, int devices = 1) {
  return {{"virtual.devices", std::to_string(devices)}, {"virtual.fault", fault}};
}

TEST(VirtualFault, TheExtensionIsOfVersion1) {
  VirtualBackend b;
  EXPECT_EQ(b.plugin().extension(MGE_FAULTS_EXTENSION, 0), b.plugin().extension(MGE_FAULTS_EXTENSION, 1));
  EXPECT_NE(b.plugin().extension(MGE_FAULTS_EXTENSION, 1), nullptr);
  for (uint32_t newer : {2u, 99u, UINT32_MAX}) EXPECT_EQ(b.plugin().extension(MGE_FAULTS_EXTENSION, newer), nullptr);
  EXPECT_EQ(b.plugin().extension(nullptr, 1), nullptr);
}

TEST(VirtualFault, TheAllocationOfTheRuleFails) {
  VirtualBackend b(With("allocation@2=fail"));
  Slab first(b, 8);
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  ErrorText error;
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), MGE_MEMORY_DEVICE, 8, &slab, error), MGE_RESOURCE_EXHAUSTED);
  EXPECT_THAT(error.text, HasSubstr("virtual0 fails the allocation, as the fault allocation@2=fail asks"));
  Slab third(b, 8);
  mge_slab range = {};
  range.struct_size = sizeof(range);
  uint64_t granule = b.memory().range_granularity(b.Device());
  ASSERT_EQ(b.memory().range_reserve(b.Device(), granule, &range, error), MGE_OK);
  EXPECT_EQ(b.memory().range_commit(b.Device(), &range, 0, granule, error), MGE_OK);
  b.memory().range_release(b.Device(), &range);
}

TEST(VirtualFault, PageLockedMemoryCountsAmongTheAllocations) {
  VirtualBackend b(With("allocation@2=fail, allocation@4=lost"));
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  ErrorText error;
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), 7, 8, &slab, error), MGE_UNIMPLEMENTED);  // an unknown memory class
  Slab first(b, 8);
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), MGE_MEMORY_PINNED, 8, &slab, error), MGE_RESOURCE_EXHAUSTED);
  EXPECT_THAT(error.text, HasSubstr("virtual0 fails the allocation, as the fault allocation@2=fail asks"));
  Slab third(b, 8, 0, MGE_MEMORY_PINNED);
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), MGE_MEMORY_PINNED, 8, &slab, error), MGE_DEVICE_LOST);
}

TEST(VirtualFault, AllAllocationsFromANumberOnFail) {
  VirtualBackend b(With("allocation@2+=fail"));
  Slab first(b, 8);
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b.memory().slab_acquire(b.Device(), MGE_MEMORY_DEVICE, 8, &slab, nullptr), MGE_RESOURCE_EXHAUSTED);
  }
}

TEST(VirtualFault, AFailedCopyFailsTheFence) {
  VirtualBackend b(With("copy@2=fail"));
  Slab slab(b, 8);
  Queue queue(b);
  Fence fence(b);
  char one = 1, two = 2, got = 0;
  ASSERT_EQ(queue.Copy(slab.at(), &one, 1), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 1), MGE_OK);
  ASSERT_EQ(queue.Copy(slab.at(), &two, 1), MGE_OK);
  ASSERT_EQ(queue.Copy(&got, slab.at(), 1), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 2), MGE_OK);
  EXPECT_EQ(fence.Wait(2), MGE_INTERNAL);
  EXPECT_THAT(fence.error.text, HasSubstr("virtual0: a copy fails, as the fault copy@2=fail asks"));
  EXPECT_EQ(got, 0);  // work after a failure is skipped
  EXPECT_EQ(fence.Wait(1), MGE_OK);
}

TEST(VirtualFault, AKernelFails) {
  VirtualBackend b(With("kernel@1=fail"));
  Slab x(b, 40), y(b, 40);
  ElementwiseKernel relu(b, "Relu", 10);
  Queue queue(b);
  ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_INTERNAL);
  EXPECT_THAT(queue.error.text, AllOf(HasSubstr("the kernel relu"), HasSubstr("kernel@1=fail")));
}

TEST(VirtualFault, AFailureDoesNotStopQueuesThatWaitForIt) {
  VirtualBackend b(With("0:copy@1=fail", 2));
  Slab slab(b, 8, 0), other(b, 8, 1);
  Queue first(b, MGE_QUEUE_COPY_IN, 0), second(b, MGE_QUEUE_COMPUTE, 1);
  Fence between(b, 0), last(b, 1);
  char byte = 5, got = 0;
  ASSERT_EQ(first.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(first.Signal(between, 1), MGE_OK);
  ASSERT_EQ(second.Wait(between, 1), MGE_OK);
  ASSERT_EQ(second.Copy(&got, other.at(), 1), MGE_OK);
  ASSERT_EQ(second.Signal(last, 1), MGE_OK);
  EXPECT_EQ(last.Wait(1), MGE_OK);  // like an event of a real device: the host must look at the first fence
  EXPECT_EQ(between.Wait(1), MGE_INTERNAL);
  EXPECT_THAT(between.error.text, HasSubstr("virtual0: a copy fails"));
}

TEST(VirtualFault, AQueueThatFailedNeverWorksAgain) {
  VirtualBackend b(With("copy@1=fail"));
  Slab slab(b, 8);
  Queue queue(b), other(b);
  Fence failed(b), also(b);
  char byte = 5, got = 0;
  ASSERT_EQ(queue.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(queue.Signal(failed, 1), MGE_OK);
  EXPECT_EQ(failed.Wait(1), MGE_INTERNAL);
  ASSERT_EQ(queue.Signal(failed, 2), MGE_OK);
  ASSERT_EQ(queue.Copy(&got, slab.at(), 1), MGE_OK);
  ASSERT_EQ(queue.Signal(also, 1), MGE_OK);
  EXPECT_EQ(also.Wait(1), MGE_INTERNAL);
  EXPECT_EQ(failed.Wait(2), MGE_INTERNAL);
  ASSERT_EQ(other.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(other.Copy(&got, slab.at(), 1), MGE_OK);
  EXPECT_EQ(other.Finish(), MGE_OK);
  EXPECT_EQ(got, 5);
}

TEST(VirtualFault, AReplayCountsAndFailsLikeTheRecordedWork) {
  VirtualBackend b(With("copy@3=fail"));
  Slab slab(b, 8);
  Queue queue(b);
  char byte = 1, got = 0;
  void* record = nullptr;
  ASSERT_EQ(b.queues().capture_begin(queue, nullptr), MGE_OK);
  ASSERT_EQ(queue.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(queue.Copy(&got, slab.at(), 1), MGE_OK);
  ASSERT_EQ(b.queues().capture_end(queue, &record, nullptr), MGE_OK);
  ASSERT_EQ(b.queues().replay(queue, record, nullptr), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_OK);
  ASSERT_EQ(b.queues().replay(queue, record, nullptr), MGE_OK);
  EXPECT_EQ(queue.Finish(), MGE_INTERNAL);
  b.queues().record_destroy(b.Device(), record);
}

TEST(VirtualFault, ASlowCopyIsStillCorrect) {
  VirtualBackend b(With("copy@1=slow(30ms)"));
  Slab slab(b, 8);
  Queue queue(b);
  char byte = 3, got = 0;
  const mge_profile_api& api = *b.plugin().profile;
  mge_stamp *begin = nullptr, *end = nullptr;
  ASSERT_EQ(api.stamp_create(b.Device(), &begin, nullptr), MGE_OK);
  ASSERT_EQ(api.stamp_create(b.Device(), &end, nullptr), MGE_OK);
  ASSERT_EQ(api.stamp(queue, begin, nullptr), MGE_OK);
  ASSERT_EQ(queue.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(api.stamp(queue, end, nullptr), MGE_OK);
  ASSERT_EQ(queue.Copy(&got, slab.at(), 1), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK);
  double us = 0;
  ASSERT_EQ(api.elapsed_us(begin, end, &us, nullptr), MGE_OK);
  EXPECT_GE(us, 30000);
  EXPECT_EQ(got, 3);
  api.stamp_destroy(begin);
  api.stamp_destroy(end);
}

TEST(VirtualFault, AKernelHangsUntilItsQueueIsDestroyed) {
  VirtualBackend b(With("kernel@1=hang"));
  Slab x(b, 40), y(b, 40);
  ElementwiseKernel relu(b, "Relu", 10);
  Queue queue(b);
  Fence fence(b);
  ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 1), MGE_OK);
  EXPECT_EQ(fence.Wait(1, 20'000'000), MGE_DEADLINE_EXCEEDED);
  queue.Destroy();
  EXPECT_EQ(fence.Wait(1), MGE_CANCELLED);
}

TEST(VirtualFault, ALostDeviceStaysLost) {
  VirtualBackend b(With("0:any@2=lost", 2));
  const mge_device_api& devices = *b.plugin().device;
  Slab x(b, 40), y(b, 40), other(b, 40, 1);
  ElementwiseKernel relu(b, "Relu", 10);
  Queue queue(b), idle(b), healthy(b, MGE_QUEUE_COMPUTE, 1);
  Fence before(b), fence(b), unrelated(b), elsewhere(b, 1);
  std::vector<float> data(10, 1);
  EXPECT_EQ(devices.status(b.Device(), nullptr), MGE_OK);
  ASSERT_EQ(queue.Copy(x.at(), data.data(), 40), MGE_OK);
  ASSERT_EQ(queue.Signal(before, 1), MGE_OK);
  ASSERT_EQ(before.Wait(1), MGE_OK);
  ASSERT_EQ(idle.Signal(unrelated, 1), MGE_OK);
  ASSERT_EQ(unrelated.Wait(1), MGE_OK);
  ASSERT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_OK);
  const mge_code signalled = queue.Signal(fence, 1);
  EXPECT_TRUE(signalled == MGE_OK || signalled == MGE_DEVICE_LOST);  // the kernel may have run already
  EXPECT_EQ(fence.Wait(1), MGE_DEVICE_LOST);
  EXPECT_THAT(fence.error.text, HasSubstr("virtual0 is lost: the fault 0:any@2=lost occurred at the kernel relu"));
  mge_code later = MGE_OK;
  for (int i = 0; i < 1000 && later != MGE_DEVICE_LOST; ++i) {  // the loss reaches one fence after the other
    later = unrelated.Wait(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(later, MGE_DEVICE_LOST);
  EXPECT_EQ(before.Wait(1), MGE_OK);

  ErrorText error;
  EXPECT_EQ(devices.status(b.Device(), error), MGE_DEVICE_LOST);
  EXPECT_THAT(error.text, HasSubstr("virtual0 is lost"));
  EXPECT_EQ(relu.Run(queue, {x.at(), y.at()}), MGE_DEVICE_LOST);
  EXPECT_EQ(idle.Copy(x.at(), data.data(), 40), MGE_DEVICE_LOST);
  EXPECT_EQ(idle.Wait(fence, 1), MGE_DEVICE_LOST);
  EXPECT_EQ(idle.Signal(elsewhere, 1), MGE_DEVICE_LOST);
  EXPECT_EQ(b.queues().capture_begin(idle, nullptr), MGE_DEVICE_LOST);
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  mge_queue* none = nullptr;
  for (int32_t memory_class : {MGE_MEMORY_DEVICE, MGE_MEMORY_PINNED}) {
    EXPECT_EQ(b.memory().slab_acquire(b.Device(), memory_class, 8, &slab, nullptr), MGE_DEVICE_LOST);
  }
  EXPECT_EQ(b.queues().create(b.Device(), MGE_QUEUE_COMPUTE, &none, nullptr), MGE_DEVICE_LOST);
  Fence late(b);
  EXPECT_EQ(late.Wait(1), MGE_DEVICE_LOST);
  EXPECT_EQ(b.queues().copy_peer(healthy, b.Device(1), other.at(), b.Device(0), x.at(), 4, nullptr), MGE_DEVICE_LOST);

  EXPECT_EQ(devices.status(b.Device(1), nullptr), MGE_OK);
  EXPECT_EQ(healthy.Copy(other.at(), data.data(), 40), MGE_OK);
  EXPECT_EQ(healthy.Finish(), MGE_OK);
}

TEST(VirtualFault, ADeviceIsLostByAnAllocation) {
  VirtualBackend b(With("allocation@1=lost"));
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), MGE_MEMORY_DEVICE, 8, &slab, nullptr), MGE_DEVICE_LOST);
  EXPECT_EQ(b.plugin().device->status(b.Device(), nullptr), MGE_DEVICE_LOST);
}

TEST(VirtualFault, RulesOfOtherDevicesDoNotApply) {
  VirtualBackend b(With("1:copy@1=fail; kernel@9=fail", 2));
  Slab zero(b, 8, 0), one(b, 8, 1);
  char byte = 0;
  Queue queue0(b, MGE_QUEUE_COMPUTE, 0), queue1(b, MGE_QUEUE_COMPUTE, 1);
  ASSERT_EQ(queue0.Copy(zero.at(), &byte, 1), MGE_OK);
  EXPECT_EQ(queue0.Finish(), MGE_OK);
  ASSERT_EQ(queue1.Copy(one.at(), &byte, 1), MGE_OK);
  EXPECT_EQ(queue1.Finish(), MGE_INTERNAL);
}

}  // namespace
}  // namespace mge
