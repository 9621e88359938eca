// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "settings.h"

namespace mge::cpu {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

}  // namespace

Result Memory::Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
  if (bytes < kHugePage) return HostMemory::Acquire(device, memory_class, bytes, out);
  if (bytes > (uint64_t{1} << 62)) {
    return {MGE_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes are more than any address space"};
  }
  uint64_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes of memory"};
  auto begin = reinterpret_cast<uintptr_t>(base);
  uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  uintptr_t end = aligned + mapped - kHugePage;
  if (aligned > begin) munmap(base, aligned - begin);
  if (begin + mapped > end) munmap(reinterpret_cast<void*>(end), begin + mapped - end);
  mapped = end - aligned;
  void* address = reinterpret_cast<void*>(aligned);
  if (ToBool(SettingOf(kHugePagesSetting))) (void)madvise(address, mapped, MADV_HUGEPAGE);  // a hint; failure is ignored
  *out = MakeSlab(memory_class, bytes, address, address, reinterpret_cast<void*>(mapped));
  return {};
}

void Memory::Release(Device& device, const mge_slab& slab) {
  if (auto mapped = reinterpret_cast<uintptr_t>(slab.handle)) {
    munmap(slab.address, mapped);
  } else {
    HostMemory::Release(device, slab);
  }
}

MemoryAmount Memory::Info(Device&) { return HostMemoryAmount(); }

}  // namespace mge::cpu
