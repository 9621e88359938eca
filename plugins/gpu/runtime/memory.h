// SPDX-License-Identifier: Apache-2.0
// Device memory, page-locked memory, and ranges of addresses with memory committed to parts of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "plugins/gpu/runtime/device.h"

namespace mge::gpu {

struct Memory {
  static Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out);
  static void Release(Device& device, const mge_slab& slab);
  static MemoryAmount Info(Device& device);
};

// Calls f() with the device's context, where f calls this function of a vendor's library, which creates an object such as a
// handle. If the host has debug.external_allocations, logs how much of the device's free memory that takes.
Result CreateExternal(Device& device, std::string_view function, const std::function<Result()>& f);

// The same with ranges, for drivers that have them.
struct MemoryWithRanges : Memory {
  static uint64_t RangeGranularity(Device& device);
  static Result RangeReserve(Device& device, uint64_t bytes, mge_slab* out);
  static void RangeRelease(Device& device, const mge_slab& range);
  static Result RangeCommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes);
  static void RangeDecommit(Device& device, const mge_slab& range, uint64_t offset, uint64_t bytes);
};

}  // namespace mge::gpu
