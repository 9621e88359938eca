// SPDX-License-Identifier: Apache-2.0
// Calls that cannot return an error, while the process has no memory.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/plugins/virtual/virtual_backend.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
TEST(VirtualNoMemory, IsSkippedIfASanitizerReplacesTheAllocator) { GTEST_SKIP() << "operator new is the sanitizer's"; }
#else

namespace {

std::atomic<bool> g_no_memory{false};

// A scope in which every operator new of the process fails.
struct NoMemory {
  NoMemory() { g_no_memory = true; }
  ~NoMemory() { g_no_memory = false; }
};

// Not inlined, because GCC would warn about free() after operator new.
[[gnu::noinline]] void Delete(void* memory) noexcept { std::free(memory); }

}  // namespace

void* operator new(size_t bytes) {
  void* out = g_no_memory ? nullptr : std::malloc(bytes ? bytes : 1);
  if (!out) throw std::bad_alloc();
  return out;
}
void operator delete(void* memory) noexcept { Delete(memory); }
void operator delete(void* memory, size_t) noexcept { Delete(memory); }

namespace mge {
namespace {

using testing::HasSubstr;

uint64_t FreeOf(VirtualBackend& b) {
  uint64_t free = 0, total = 0;
  b.memory().memory_info(b.Device(), &free, &total);
  return free;
}

TEST(VirtualNoMemory, AffectsAllocationsOfTheBackend) {
  VirtualBackend b;
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  mge_device* device = b.Device();
  mge_code code = MGE_OK;
  {
    NoMemory none;
    code = b.memory().slab_acquire(device, MGE_MEMORY_DEVICE, 8, &slab, nullptr);
  }
  EXPECT_EQ(code, MGE_RESOURCE_EXHAUSTED);
}

TEST(VirtualNoMemory, ASlabIsStillReleasedAfterItsFence) {
  VirtualBackend b;
  uint64_t before = FreeOf(b);
  for (int32_t memory_class : {MGE_MEMORY_DEVICE, MGE_MEMORY_PINNED}) {
    Slab slab(b, 5000, 0, memory_class);
    Fence last(b);
    Queue queue(b);
    mge_fence_point point = {sizeof(point), 0, last, 1};
    mge_slab raw = slab.Take();
    {
      NoMemory none;
      b.memory().slab_release_after(b.Device(), &raw, &point);
    }
    EXPECT_EQ(FreeOf(b), before - (memory_class == MGE_MEMORY_DEVICE ? 5000 : 0));
    ASSERT_EQ(queue.Signal(last, 1), MGE_OK);
    ASSERT_EQ(queue.Finish(), MGE_OK);
    EXPECT_EQ(FreeOf(b), before);
  }
}

TEST(VirtualNoMemory, WorkOfADestroyedQueueFailsForLackOfMemory) {
  VirtualBackend b({{"virtual.devices", "1"}, {"virtual.fault", "copy@1=hang"}});
  Slab slab(b, 8);
  Fence last(b);
  Queue queue(b);
  char byte = 0;
  ASSERT_EQ(queue.Copy(slab.at(), &byte, 1), MGE_OK);
  ASSERT_EQ(queue.Signal(last, 1), MGE_OK);
  {
    NoMemory none;
    queue.Destroy();
  }
  EXPECT_EQ(last.Wait(1, 0), MGE_RESOURCE_EXHAUSTED);
  EXPECT_THAT(last.error.text, HasSubstr("the host has no memory"));
}

}  // namespace
}  // namespace mge

#endif
