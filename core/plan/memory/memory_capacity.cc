// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/memory_capacity.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/plan/plan_context.h"
#include "fmt/format.h"

namespace mge {

Device& HostMemoryOf(const PlanContext& context, Device& device) {
  return device.Is(MGE_DEVICE_HOST_ACCESSIBLE) ? device : *context.services->host;
}

absl::StatusOr<MemoryCapacity> CapacityOf(Device& device) {
  if (uint64_t limit = device.budget().limit()) return MemoryCapacity{&device, limit, true};
  // Every plan asks, and a query may read files of the system. The total rarely changes.
  if (const uint64_t total = device.description().memory_total) return MemoryCapacity{&device, total, false};
  MGE_ASSIGN_OR_RETURN(MemoryInfo info, device.QueryMemory());
  return MemoryCapacity{&device, info.total_bytes ? info.total_bytes : UINT64_MAX, false};
}

std::string LargestOf(std::vector<NamedBytes> all) {
  constexpr size_t kNamed = 3;
  std::stable_sort(all.begin(), all.end(), [](const NamedBytes& a, const NamedBytes& b) { return a.bytes > b.bytes; });
  std::string text;
  for (size_t i = 0; i < all.size() && i < kNamed; ++i) {
    text += fmt::format("{}{} ({} bytes)", i ? ", " : "", all[i].name, all[i].bytes);
  }
  return text;
}

std::string CapacityText(const MemoryCapacity& capacity, uint64_t held) {
  return fmt::format("{} bytes are in use and {} {}", held, capacity.limited ? "the limit is" : "it has", capacity.bytes);
}

int64_t LargestPiece(const Device& device) {
  const uint64_t alignment = std::max<uint64_t>(256, device.BufferAlignment());
  const uint64_t most = device.LargestAllocation();
  if (most >= INT64_MAX) return INT64_MAX;
  const uint64_t spent = alignment - std::min(alignment, device.BufferAlignment());  // at a slab's begin
  return static_cast<int64_t>(most > 2 * alignment ? (most - spent) / alignment * alignment : most);
}

absl::Status TooLargeAtOnce(const Device& device, std::string_view name, int64_t bytes) {
  const std::string other =
      device.class_name() == "cpu"
          ? ""
          : fmt::format(", or allow another device for such steps, as in --device {},cpu0", device.name());
  return Fail(errors::kOverBudget, fmt::format("device {} cannot allocate so many bytes in one piece", device.name()),
              {.what = fmt::format("'{}' takes {} bytes; the most is {}, as its largest allocation is {}", name, bytes,
                                   LargestPiece(device), device.LargestAllocation()),
               .where = fmt::format("device {}", device.name()),
               .fix = "use a smaller batch" + other});
}

absl::Status DoesNotFit(const MemoryCapacity& capacity, std::string what, std::string fix) {
  const std::string& owner = capacity.device->budget().owner();
  return Fail(
      errors::kOverBudget,
      fmt::format("the model does not fit into the {} of device {}", capacity.limited ? "memory limit" : "memory", owner),
      {.what = std::move(what),
       .where = fmt::format("{} {}", capacity.limited ? "memory.limit of" : "device", owner),
       .fix = std::move(fix)});
}

}  // namespace mge
