// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "settings.h"

namespace mge::cpu {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Allocates a slab. Slabs of at least one huge page are mapped and aligned to it; smaller ones come from the heap.
mge_code SlabAcquire(mge_device*, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
  return Guard(error, [&]() -> mge_code {
    if (memory_class < 0 || memory_class >= MGE_MEMORY_CLASS_COUNT) {
      return Report(error, MGE_INVALID_ARGUMENT, "memory class " + std::to_string(memory_class) + " does not exist");
    }
    if (bytes > (uint64_t{1} << 62)) {
      return Report(error, MGE_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes are more than any address space");
    }
    void* address = nullptr;
    uint64_t mapped = 0;
    if (bytes >= kHugePage) {
      mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
      void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base != MAP_FAILED) {
        auto begin = reinterpret_cast<uintptr_t>(base);
        uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
        uintptr_t end = aligned + mapped - kHugePage;
        if (aligned > begin) munmap(base, aligned - begin);
        if (begin + mapped > end) munmap(reinterpret_cast<void*>(end), begin + mapped - end);
        mapped = end - aligned;
        address = reinterpret_cast<void*>(aligned);
        if (SettingIsOn(kSettingHugePages)) (void)madvise(address, mapped, MADV_HUGEPAGE);  // a hint; failure is ignored
      }
    } else {
      address = std::aligned_alloc(64, (std::max<uint64_t>(bytes, 1) + 63) / 64 * 64);
    }
    if (!address) {
      return Report(error, MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes of memory");
    }
    Fill(out, MakeSlab(memory_class, bytes, address, address, reinterpret_cast<void*>(mapped)));
    return MGE_OK;
  });
}

void SlabRelease(mge_device*, const mge_slab* slab) noexcept {
  if (auto mapped = reinterpret_cast<uintptr_t>(slab->handle)) {
    munmap(slab->address, mapped);
  } else {
    std::free(slab->address);
  }
}

void MemoryInfo(mge_device*, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
  MemoryAmount amount = Quietly([] { return HostMemoryAmount(); });  // zero: unknown
  if (free_bytes) *free_bytes = amount.free_bytes;
  if (total_bytes) *total_bytes = amount.total_bytes;
}

}  // namespace

const mge_memory_api kMemoryApi = Table<mge_memory_api>([](auto& t) {
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = MemoryInfo;
  t.pool = Text("growing");
  t.own_pool = nullptr;
  t.reserve = Text("none");
  t.own_reserve = nullptr;
});

}  // namespace mge::cpu
