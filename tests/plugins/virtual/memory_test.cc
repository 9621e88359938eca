// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "tests/plugins/virtual/virtual_backend.h"

namespace mge {
namespace {

using testing::Each;
using testing::HasSubstr;

struct Info {
  uint64_t free = 0, total = 0;
};
Info InfoOf(VirtualBackend& b, uint32_t device = 0) {
  Info info;
  b.memory().memory_info(b.Device(device), &info.free, &info.total);
  return info;
}

TEST(VirtualMemory, IsLimited) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.memory_bytes", "1048576"}});
  Slab most(b, 1000000);
  EXPECT_EQ(InfoOf(b).total, 1048576u);
  EXPECT_EQ(InfoOf(b).free, 48576u);
  mge_slab more = {};
  more.struct_size = sizeof(more);
  ErrorText error;
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), MGE_MEMORY_DEVICE, 48577, &more, error), MGE_RESOURCE_EXHAUSTED);
  EXPECT_THAT(error.text, HasSubstr("48577 bytes were asked for, 48576 of its 1048576 are free"));
  EXPECT_EQ(InfoOf(b).free, 48576u);
  { Slab rest(b, 48576); }
  EXPECT_EQ(InfoOf(b).free, 48576u);
  Slab pinned(b, 4 << 20, 0, MGE_MEMORY_PINNED);  // page-locked memory does not count
  EXPECT_EQ(InfoOf(b).free, 48576u);
  EXPECT_EQ(b.memory().slab_acquire(b.Device(), 7, 1, &more, error), MGE_UNIMPLEMENTED);
}

TEST(VirtualMemory, IsAlignedAndHasNoHostAddress) {
  VirtualBackend b;
  for (uint64_t bytes : {1, 63, 4096, 100000}) {
    Slab slab(b, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slab.at()) % 4096, 0u);
    EXPECT_EQ(slab.raw().host_address, nullptr);
  }
  EXPECT_FALSE(b.List()[0].flags & MGE_DEVICE_HOST_ACCESSIBLE);
}

TEST(VirtualMemoryDeathTest, FaultsWhenTheHostTouchesIt) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  VirtualBackend b;
  Slab slab(b, 4096);
  EXPECT_DEATH({ *const_cast<volatile char*>(slab.at(100)) = 1; }, "");
  EXPECT_DEATH({ std::thread([&] { (void)*const_cast<volatile char*>(slab.at()); }).join(); }, "");
}

TEST(VirtualMemory, IsPoisonedIfASettingAsksForIt) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.poison", "1"}});
  Slab slab(b, 100);
  std::vector<unsigned char> got(100);
  Queue queue(b);
  ASSERT_EQ(queue.Copy(got.data(), slab.at(), 100), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK);
  EXPECT_THAT(got, Each(0xff));
}

TEST(VirtualMemory, PinnedMemoryIsAccessibleToTheHost) {
  VirtualBackend b;
  Slab pinned(b, 256, 0, MGE_MEMORY_PINNED), slab(b, 256);
  ASSERT_EQ(pinned.raw().host_address, pinned.at());
  std::memset(pinned.at(), 7, 256);
  Queue in(b, MGE_QUEUE_COPY_IN);
  ASSERT_EQ(in.Copy(slab.at(), pinned.at(), 256), MGE_OK);
  ASSERT_EQ(in.Finish(), MGE_OK);
  std::memset(pinned.at(), 0, 256);
  Queue out(b, MGE_QUEUE_COPY_OUT);
  ASSERT_EQ(out.Copy(pinned.at(), slab.at(), 256), MGE_OK);
  ASSERT_EQ(out.Finish(), MGE_OK);
  EXPECT_EQ(pinned.at()[0], 7);
  EXPECT_EQ(pinned.at()[255], 7);
}

TEST(VirtualMemory, ReleaseAfterKeepsTheSlabUntilTheFence) {
  VirtualBackend b(kGated);
  Fence last(b);
  std::vector<char> data(5000, 'x'), got(5000);
  Queue queue(b);
  Gate gate(b);
  uint64_t before = InfoOf(b).free;
  Slab slab(b, 5000);
  gate.Hold(queue);
  ASSERT_EQ(queue.Copy(slab.at(), data.data(), 5000), MGE_OK);
  ASSERT_EQ(queue.Copy(got.data(), slab.at(), 5000), MGE_OK);
  ASSERT_EQ(queue.Signal(last, 1), MGE_OK);
  mge_fence_point point = {sizeof(point), 0, last, 1};
  mge_slab raw = slab.Take();
  b.memory().slab_release_after(b.Device(), &raw, &point);
  EXPECT_EQ(InfoOf(b).free, before - 5000);
  gate.Open();
  ASSERT_EQ(queue.Finish(), MGE_OK);
  EXPECT_EQ(got, data);
  EXPECT_EQ(InfoOf(b).free, before);
}

TEST(VirtualMemory, ReleaseAfterFreesTheSlabIfTheFenceFailsOrIsDestroyed) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.fault", "copy@1=fail"}});
  uint64_t before = InfoOf(b).free;
  Slab first(b, 64), second(b, 64);
  mge_slab one = first.Take(), two = second.Take();
  Fence fence(b), never(b);
  Queue queue(b);
  mge_fence_point point = {sizeof(point), 0, fence, 1}, unreached = {sizeof(point), 0, never, 1};
  b.memory().slab_release_after(b.Device(), &two, &unreached);
  char byte = 0;
  ASSERT_EQ(queue.Copy(one.address, &byte, 1), MGE_OK);
  ASSERT_EQ(queue.Signal(fence, 1), MGE_OK);
  b.memory().slab_release_after(b.Device(), &one, &point);
  EXPECT_EQ(fence.Wait(1), MGE_INTERNAL);
  queue.Destroy();
  EXPECT_EQ(InfoOf(b).free, before - 64);
  never.Destroy();
  EXPECT_EQ(InfoOf(b).free, before);
}

TEST(VirtualMemory, RangesUseMemoryOnlyForCommittedParts) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.memory_bytes", "262144"}});
  const mge_memory_api& m = b.memory();
  uint64_t granule = m.range_granularity(b.Device());
  ASSERT_EQ(262144 % granule, 0u);
  mge_slab range = {};
  range.struct_size = sizeof(range);
  ErrorText error;
  EXPECT_EQ(m.range_reserve(b.Device(), granule + 1, &range, error), MGE_INVALID_ARGUMENT);
  ASSERT_EQ(m.range_reserve(b.Device(), 64 * granule, &range, error), MGE_OK) << error.text;
  EXPECT_EQ(InfoOf(b).free, 262144u);
  char* at = static_cast<char*>(range.address);
  Queue queue(b);
  char byte = 'a', got = 0;
  EXPECT_EQ(queue.Copy(at, &byte, 1), MGE_INVALID_ARGUMENT);

  ASSERT_EQ(m.range_commit(b.Device(), &range, 2 * granule, 2 * granule, error), MGE_OK) << error.text;
  EXPECT_EQ(InfoOf(b).free, 262144 - 2 * granule);
  EXPECT_EQ(queue.Copy(at + 2 * granule - 1, &byte, 1), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(queue.Copy(at + 4 * granule, &byte, 1), MGE_INVALID_ARGUMENT);
  std::vector<char> across(2 * granule, 'b');
  EXPECT_EQ(queue.Copy(at + 2 * granule + 1, across.data(), 2 * granule), MGE_INVALID_ARGUMENT);
  ASSERT_EQ(queue.Copy(at + 2 * granule, across.data(), 2 * granule), MGE_OK);
  ASSERT_EQ(queue.Copy(&got, at + 4 * granule - 1, 1), MGE_OK);
  ASSERT_EQ(queue.Finish(), MGE_OK);
  EXPECT_EQ(got, 'b');

  EXPECT_EQ(m.range_commit(b.Device(), &range, 3 * granule, granule, error), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("already"));
  EXPECT_EQ(m.range_commit(b.Device(), &range, 63 * granule, 2 * granule, error), MGE_INVALID_ARGUMENT);
  EXPECT_EQ(m.range_commit(b.Device(), &range, 8 * granule, 32 * granule, error), MGE_RESOURCE_EXHAUSTED);
  m.range_decommit(b.Device(), &range, 2 * granule, 2 * granule);
  EXPECT_EQ(InfoOf(b).free, 262144u);
  EXPECT_EQ(queue.Copy(&got, at + 2 * granule, 1), MGE_INVALID_ARGUMENT);
  m.range_release(b.Device(), &range);
}

TEST(VirtualMemory, DevicesDoNotShareIt) {
  VirtualBackend b(Settings{{"virtual.devices", "2"}});
  Slab zero(b, 64, 0), one(b, 64, 1);
  Queue queue(b, MGE_QUEUE_COMPUTE, 0);
  char byte = 0;
  EXPECT_EQ(queue.Copy(one.at(), &byte, 1), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(queue.error.text, HasSubstr("not memory of virtual0"));
  EXPECT_EQ(queue.Copy(zero.at(), one.at(), 1), MGE_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace mge
