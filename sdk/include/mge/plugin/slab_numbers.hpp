// SPDX-License-Identifier: Apache-2.0
// Numbers in place of addresses, for devices whose memory has only handles (such as cl_mem). Each slab gets a range of
// numbers of its own. From such a number, which steps and copies receive as an address, a table returns handle and offset.
//
//   mge::SlabNumbers<toy_memory> slabs;                  // a member of the Device
//   *out = mge::MakeSlab(memory_class, bytes, slabs.Add(memory), nullptr, memory);   // in Memory::Acquire
//   auto [memory, offset] = slabs.Find(mge::At<void>(run, slot));                    // in Launch; in Queue::Copy
//   slabs.Remove(slab.address);                                                      // in Memory::Release
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// The numbers of a device's slabs. A slab may have up to 1 TiB. The numbers are no addresses of the process, because their
// highest bit is set.
template <typename Handle, uint64_t kMaxSlabs = 16384>
class SlabNumbers {
 public:
  // A place in a slab. `handle` is NULL for an address that is in no slab, such as one of host memory.
  struct Place {
    Handle* handle;
    uint64_t offset;
  };

  // Returns the first number of a new range. Returns NULL if there are kMaxSlabs slabs already. [any]
  void* Add(Handle* handle) {
    std::lock_guard lock(mutex_);
    for (uint64_t i = 0; i < kMaxSlabs; ++i) {
      const uint64_t index = (next_ + i) % kMaxSlabs;
      if (handles_[index].load(std::memory_order_relaxed)) continue;
      handles_[index].store(handle, std::memory_order_release);
      next_ = index + 1;
      return reinterpret_cast<void*>(kMark | index << kOffsetBits);
    }
    return nullptr;
  }
  // Ends the range that begins with `address`. [any]
  void Remove(const void* address) {
    std::lock_guard lock(mutex_);
    handles_[IndexOf(address)].store(nullptr, std::memory_order_relaxed);
  }
  // Returns the slab and the offset of a number. Neither locks nor searches. [any]
  Place Find(const void* address) const {
    const uint64_t number = reinterpret_cast<uintptr_t>(address);
    if (!(number & kMark) || IndexOf(address) >= kMaxSlabs) return {nullptr, 0};
    return {handles_[IndexOf(address)].load(std::memory_order_acquire), number & ((uint64_t{1} << kOffsetBits) - 1)};
  }

 private:
  static_assert(sizeof(void*) == 8, "the numbers have 64 bits");
  static constexpr uint64_t kMark = uint64_t{1} << 63;
  static constexpr int kOffsetBits = 40;
  static uint64_t IndexOf(const void* address) { return (reinterpret_cast<uintptr_t>(address) & ~kMark) >> kOffsetBits; }

  std::mutex mutex_;  // guards next_ and changes of handles_
  uint64_t next_ = 0;
  std::array<std::atomic<Handle*>, kMaxSlabs> handles_ = {};
};

}  // namespace MGE_HIDDEN
