// SPDX-License-Identifier: Apache-2.0
// The memory available to a plan on a device, and the errors for plans that do not fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/device.h"

namespace mge {

struct PlanContext;  // core/plan/plan_context.h

// Returns the device whose budget is charged for host tensors used by work on `device`.
Device& HostMemoryOf(const PlanContext& context, Device& device);

// The memory available on a device.
struct MemoryCapacity {
  Device* device = nullptr;
  uint64_t bytes = 0;    // the memory limit, or the size of the memory if there is no limit; UINT64_MAX: unknown
  bool limited = false;  // true: `bytes` is the memory limit
};
// Returns the memory available on a device. Opens the device if it has no limit, and fails if that fails.
absl::StatusOr<MemoryCapacity> CapacityOf(Device& device);

// A buffer or constant with its size, for messages.
struct NamedBytes {
  std::string name;
  uint64_t bytes;
};
// Returns the largest three as text: "x (8 bytes), y (4 bytes)".
std::string LargestOf(std::vector<NamedBytes> all);

// Returns "8 bytes are in use and the limit is 64".
std::string CapacityText(const MemoryCapacity& capacity, uint64_t held);

// Returns the size limit of one arena, or of the constants behind one base, on the device. It is the device's largest
// allocation minus the bytes that pools need for alignment.
int64_t LargestPiece(const Device& device);

// Returns kOverBudget: `name` takes more bytes than LargestPiece().
absl::Status TooLargeAtOnce(const Device& device, std::string_view name, int64_t bytes);

// Returns kOverBudget: the model does not fit into the memory or memory limit of capacity.device.
absl::Status DoesNotFit(const MemoryCapacity& capacity, std::string what, std::string fix);

}  // namespace mge
