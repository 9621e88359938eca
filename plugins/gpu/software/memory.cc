// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "plugins/gpu/software/address.h"

namespace mge::software {
namespace {

constexpr uint64_t kPage = 4096;  // page size of x86-64; the kernel rounds up to larger pages
constexpr uint64_t kGuard = Memory::kGranularity;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

std::shared_ptr<Mapping> Mapping::Make(uint64_t bytes) {
  uint64_t mapped = RoundUp(std::max<uint64_t>(bytes, 1), kPage);
  void* base = mmap(nullptr, mapped + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  std::unique_ptr<Mapping> made(new (std::nothrow) Mapping(static_cast<char*>(base) + kGuard, bytes, mapped));
  if (!made) munmap(base, mapped + 2 * kGuard);
  return made;
}

Mapping::~Mapping() { munmap(data_ - kGuard, mapped_ + 2 * kGuard); }

uint64_t Memory::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

// Returns an error if `bytes` exceed the free memory. The caller holds the lock.
Result Memory::CheckRoom(uint64_t bytes) const {
  if (bytes > capacity_ - used_) {
    return {MGE_RESOURCE_EXHAUSTED, std::to_string(bytes) + " bytes were asked for, " + std::to_string(capacity_ - used_) +
                                        " of its " + std::to_string(capacity_) + " are free"};
  }
  return {};
}

Result Memory::Allocate(uint64_t bytes, void** out) {
  std::lock_guard lock(mutex_);
  if (Result r = CheckRoom(bytes); !r.ok()) return r;
  std::shared_ptr<Mapping> mapping = Mapping::Make(bytes);
  if (!mapping || mprotect(mapping->data_, mapping->mapped_, PROT_READ | PROT_WRITE) != 0) {
    return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes to back device memory"};
  }
  if (poison_) std::memset(mapping->data_, 0xff, bytes);
  *out = ToDevice(mapping->data_);
  mappings_.emplace(mapping->data_, mapping);
  used_ += bytes;  // last, so that an exception before leaves it unchanged
  return {};
}

Result Memory::Reserve(uint64_t bytes, void** out) {
  if (bytes == 0 || bytes % kGranularity) {
    return {MGE_INVALID_ARGUMENT, std::to_string(bytes) + " bytes are not a multiple of " + std::to_string(kGranularity)};
  }
  std::lock_guard lock(mutex_);
  std::shared_ptr<Mapping> mapping = Mapping::Make(bytes);
  if (!mapping) {
    return {MGE_RESOURCE_EXHAUSTED, "cannot reserve addresses for a range of " + std::to_string(bytes) + " bytes"};
  }
  mapping->range_ = true;
  mapping->committed_.assign(bytes / kGranularity, false);
  *out = ToDevice(mapping->data_);
  mappings_.emplace(mapping->data_, std::move(mapping));
  return {};
}

Result Memory::Commit(const void* range, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto it = mappings_.find(ToMapped(range));
  if (it == mappings_.end() || !it->second->range_) return {MGE_INVALID_ARGUMENT, "no range begins at this address"};
  Mapping& m = *it->second;
  if (offset % kGranularity || bytes % kGranularity || offset > m.bytes_ || bytes > m.bytes_ - offset) {
    return {MGE_INVALID_ARGUMENT, std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                                      " are not granules of a range of " + std::to_string(m.bytes_) + " bytes"};
  }
  auto begin = m.committed_.begin() + static_cast<int64_t>(offset / kGranularity);
  auto end = begin + static_cast<int64_t>(bytes / kGranularity);
  if (std::find(begin, end, true) != end) return {MGE_INVALID_ARGUMENT, "this part of the range already has memory"};
  if (Result r = CheckRoom(bytes); !r.ok()) return r;
  if (mprotect(m.data_ + offset, bytes, PROT_READ | PROT_WRITE) != 0) {
    return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes to back device memory"};
  }
  if (poison_) std::memset(m.data_ + offset, 0xff, bytes);
  std::fill(begin, end, true);
  used_ += bytes;
  return {};
}

void Memory::Decommit(const void* range, uint64_t offset, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto it = mappings_.find(ToMapped(range));
  if (it == mappings_.end()) return;
  Mapping& m = *it->second;
  auto begin = m.committed_.begin() + static_cast<int64_t>(offset / kGranularity);
  auto end = begin + static_cast<int64_t>(bytes / kGranularity);
  used_ -= static_cast<uint64_t>(std::count(begin, end, true)) * kGranularity;
  std::fill(begin, end, false);
  madvise(m.data_ + offset, bytes, MADV_DONTNEED);  // memory that is committed again begins as zeros
  mprotect(m.data_ + offset, bytes, PROT_NONE);
}

void Memory::Free(const void* address) {
  std::shared_ptr<Mapping> last;  // unmapped without the lock
  std::lock_guard lock(mutex_);
  auto it = mappings_.find(ToMapped(address));
  if (it == mappings_.end()) return;
  last = std::move(it->second);
  mappings_.erase(it);
  used_ -= last->range_
               ? static_cast<uint64_t>(std::count(last->committed_.begin(), last->committed_.end(), true)) * kGranularity
               : last->bytes_;
}

Pin Memory::Find(const void* address, uint64_t bytes) const {
  if (!IsDeviceAddress(address)) return nullptr;
  const char* data = ToMapped(address);
  std::lock_guard lock(mutex_);
  auto it = mappings_.upper_bound(data);
  if (it == mappings_.begin()) return nullptr;
  const std::shared_ptr<Mapping>& m = std::prev(it)->second;
  uint64_t offset = static_cast<uint64_t>(data - m->data_);
  if (offset > m->bytes_ || bytes > m->bytes_ - offset) return nullptr;
  if (m->range_ && bytes) {
    auto begin = m->committed_.begin() + static_cast<int64_t>(offset / kGranularity);
    auto end = m->committed_.begin() + static_cast<int64_t>((offset + bytes - 1) / kGranularity + 1);
    if (std::find(begin, end, false) != end) return nullptr;
  }
  return m;
}

}  // namespace mge::software
