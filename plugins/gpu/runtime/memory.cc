// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/memory.h"

#include <algorithm>
#include <string>

namespace mge::gpu {
namespace {

void* At(const mge_slab& range, uint64_t offset) { return static_cast<char*>(range.address) + offset; }

// Adds the amounts to an error that says that memory ran out.
Result WithAmounts(Result r, uint64_t bytes) {
  if (r.code() != MGE_RESOURCE_EXHAUSTED) return r;
  size_t free_bytes = 0, total_bytes = 0;
  if (TheDriver().memory_info.call(&free_bytes, &total_bytes) != kDriverOk) return r;
  return {r.code(), r.text() + ": " + std::to_string(bytes) + " bytes were asked for, " + std::to_string(free_bytes) +
                        " of its " + std::to_string(total_bytes) + " are free"};
}

void Unmap(const mge_slab& range, uint64_t offset, uint64_t bytes, uint64_t unit) {
  for (uint64_t done = 0; done < bytes; done += unit) TheDriver().range_unmap.call(At(range, offset + done), unit);
}

// Maps new memory to one granule. A mapping keeps its memory, so the handle is released at once.
Result Map(Device& device, void* address, uint64_t bytes) {
  const Driver& d = TheDriver();
  PhysicalProperties properties;
  properties.location = device.ordinal();
  uint64_t memory = 0;
  if (Result r = Call(d.physical_create, &memory, bytes, &properties, 0ull); !r.ok())
    return WithAmounts(std::move(r), bytes);
  Result r = Call(d.range_map, address, bytes, size_t{0}, memory, 0ull);
  d.physical_release.call(memory);
  if (!r.ok()) return r;
  r = Call(d.range_allow, address, bytes, device.accessors().data(), device.accessors().size());
  if (!r.ok()) d.range_unmap.call(address, bytes);
  return r;
}

}  // namespace

Result Memory::Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
  const bool pinned = memory_class == MGE_MEMORY_PINNED;
  if (!pinned && memory_class != MGE_MEMORY_DEVICE) {
    return {MGE_UNIMPLEMENTED, "memory class " + std::to_string(memory_class) + " does not exist"};
  }
  return device.With([&]() -> Result {
    const Driver& d = TheDriver();
    void* address = nullptr;
    const size_t most = std::max<uint64_t>(bytes, 1);
    Result r = pinned ? Call(d.host_allocate, &address, most, kForAllContexts) : Call(d.allocate, &address, most);
    if (!r.ok()) return pinned ? r : WithAmounts(std::move(r), bytes);
    *out = MakeSlab(memory_class, bytes, address, pinned ? address : nullptr);
    return {};
  });
}

void Memory::Release(Device& device, const mge_slab& slab) {
  device.Always([&] {
    const Driver& d = TheDriver();
    slab.memory_class == MGE_MEMORY_PINNED ? d.host_release.call(slab.address) : d.release.call(slab.address);
  });
}

MemoryAmount Memory::Info(Device& device) {
  size_t free_bytes = 0, total_bytes = 0;
  (void)device.With([&] { return Call(TheDriver().memory_info, &free_bytes, &total_bytes); });
  return {.free_bytes = free_bytes, .total_bytes = total_bytes};
}

Result CreateExternal(Device& device, std::string_view function, const std::function<Result()>& f) {
  std::string_view logs;
  if (!ReadCoreSetting("debug.external_allocations", &logs).ok() || !ToBool(logs)) return device.With(f);
  const uint64_t before = Memory::Info(device).free_bytes;
  Result r = device.With(f);
  const uint64_t after = Memory::Info(device).free_bytes;
  Log(MGE_LOG_WARNING, std::string(function) + " takes " + std::to_string(before - std::min(before, after)) +
                           " bytes of the memory of " + device.name());
  return r;
}

uint64_t MemoryWithRanges::RangeGranularity(Device& device) { return device.granularity(); }

Result MemoryWithRanges::RangeReserve(Device& device, uint64_t bytes, mge_slab* out) {
  if (device.granularity() == 0) return {MGE_UNIMPLEMENTED, device.name() + " has no ranges of addresses"};
  return device.With([&]() -> Result {
    void* address = nullptr;
    if (Result r = Call(TheDriver().range_reserve, &address, bytes, size_t{0}, nullptr, 0ull); !r.ok()) return r;
    *out = MakeSlab(MGE_MEMORY_DEVICE, bytes, address, nullptr);
    return {};
  });
}

void MemoryWithRanges::RangeRelease(Device& device, const mge_slab& range) {
  device.Always([&] { TheDriver().range_release.call(range.address, range.bytes); });
}

// Each granule is a mapping of its own, because a part of a mapping cannot be unmapped.
Result MemoryWithRanges::RangeCommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes) {
  const uint64_t unit = device.granularity();
  if (unit == 0 || offset % unit || bytes % unit || offset > range.bytes || bytes > range.bytes - offset) {
    return {MGE_INVALID_ARGUMENT, std::to_string(bytes) + " bytes at " + std::to_string(offset) +
                                      " are not granules of a range of " + std::to_string(range.bytes) + " bytes"};
  }
  return device.With([&]() -> Result {
    for (uint64_t done = 0; done < bytes; done += unit) {
      if (Result r = Map(device, At(range, offset + done), unit); !r.ok()) {
        Unmap(range, offset, done, unit);
        return r;
      }
    }
    return {};
  });
}

void MemoryWithRanges::RangeDecommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes) {
  const uint64_t unit = device.granularity();
  if (unit == 0) return;
  device.Always([&] { Unmap(range, offset, bytes, unit); });
}

}  // namespace mge::gpu
