// SPDX-License-Identifier: Apache-2.0
#include "core/plan/room.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<Room> RoomOf(Device& device) {
  if (uint64_t limit = device.budget().limit()) return Room{&device, limit, true};
  MGE_ASSIGN_OR_RETURN(MemoryInfo info, device.QueryMemory());
  return Room{&device, info.total_bytes ? info.total_bytes : UINT64_MAX, false};
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

std::string RoomText(const Room& room, uint64_t held) {
  return fmt::format("{} bytes are in use and {} {}", held, room.limited ? "the limit is" : "it has", room.bytes);
}

absl::Status DoesNotFit(const Room& room, std::string what, std::string fix) {
  const std::string& owner = room.device->budget().owner();
  return Fail(errors::kOverBudget,
              fmt::format("the model does not fit into the {} of device {}", room.limited ? "memory limit" : "memory", owner),
              {.what = std::move(what),
               .where = fmt::format("{} {}", room.limited ? "memory.limit of" : "device", owner),
               .fix = std::move(fix)});
}

}  // namespace mge
