// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "settings.h"

namespace mge::cpu {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

// Maps addresses aligned to a huge page. `bytes` is a multiple of that size. Returns nullptr if there are none.
void* MapAligned(uint64_t bytes, int access) {
  const uint64_t mapped = bytes + kHugePage;
  void* base = mmap(nullptr, mapped, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  auto begin = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage, end = aligned + bytes;
  if (aligned > begin) munmap(base, aligned - begin);
  if (begin + mapped > end) munmap(reinterpret_cast<void*>(end), begin + mapped - end);
  return reinterpret_cast<void*>(aligned);
}

// Asks for huge pages if the setting wants them. This is a hint, so a failure is ignored.
void AdviseHugePages(void* address, uint64_t bytes) {
  if (ToBool(SettingOf(kHugePagesSetting))) (void)madvise(address, bytes, MADV_HUGEPAGE);
}

void* At(const mge_slab& range, uint64_t offset) { return static_cast<char*>(range.address) + offset; }

}  // namespace

Result Memory::Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
  if (bytes < kHugePage) return HostMemory::Acquire(device, memory_class, bytes, out);
  if (bytes > (uint64_t{1} << 62)) {
    return {MGE_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes are more than any address space"};
  }
  const uint64_t mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* address = MapAligned(mapped, PROT_READ | PROT_WRITE);
  if (!address) return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes of memory"};
  AdviseHugePages(address, mapped);
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

uint64_t Memory::RangeGranularity(Device&) {
  std::string_view policy;
  if (!ReadCoreSetting("memory.static_policy", &policy).ok()) return 0;
  return policy == "dynamic" || policy == "both" ? kHugePage : 0;
}

Result Memory::RangeReserve(Device&, uint64_t bytes, mge_slab* out) {
  void* address = bytes % kHugePage || bytes > (uint64_t{1} << 46) ? nullptr : MapAligned(bytes, PROT_NONE);
  if (!address) return {MGE_RESOURCE_EXHAUSTED, "cannot reserve " + std::to_string(bytes) + " bytes of addresses"};
  *out = MakeSlab(MGE_MEMORY_DEVICE, bytes, address, address);
  return {};
}

void Memory::RangeRelease(Device&, const mge_slab& range) { munmap(range.address, range.bytes); }

Result Memory::RangeCommit(Device&, const mge_slab& range, uint64_t offset, uint64_t bytes) {
  if (offset % kHugePage || bytes % kHugePage || offset > range.bytes || bytes > range.bytes - offset) {
    return {MGE_INVALID_ARGUMENT, "bytes " + std::to_string(offset) + " to " + std::to_string(offset + bytes) +
                                      " are not whole pages of 2 MiB inside the range"};
  }
  if (mprotect(At(range, offset), bytes, PROT_READ | PROT_WRITE) != 0) {
    return {MGE_RESOURCE_EXHAUSTED, "the system has no memory for " + std::to_string(bytes) + " more bytes"};
  }
  AdviseHugePages(At(range, offset), bytes);
  return {};
}

void Memory::RangeDecommit(Device&, const mge_slab& range, uint64_t offset, uint64_t bytes) {
  (void)madvise(At(range, offset), bytes, MADV_DONTNEED);  // returns the pages to the system
  (void)mprotect(At(range, offset), bytes, PROT_NONE);
}

}  // namespace mge::cpu
