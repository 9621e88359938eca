// SPDX-License-Identifier: Apache-2.0
// How much there may be in the memory of a device, and the words for what does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/device.h"

namespace mge {

// The limit that is set for a device, or what it has where none is.
struct Room {
  Device* device = nullptr;
  uint64_t bytes = 0;  // UINT64_MAX: it does not tell
  bool limited = false;
};
absl::StatusOr<Room> RoomOf(Device& device);  // opens it where no limit is set

// Something that takes memory.
struct NamedBytes {
  std::string name;
  uint64_t bytes;
};
// In words, of the largest few: "x (8 bytes), y (4 bytes)".
std::string LargestOf(std::vector<NamedBytes> all);

// "8 bytes are in use and the limit is 64"
std::string RoomText(const Room& room, uint64_t held);

// Most bytes of one arena in the memory of a device, or of constants behind one base: its largest allocation, less what
// pools need to align it.
int64_t LargestPiece(const Device& device);

// Returns kOverBudget: `name` takes more bytes than LargestPiece().
absl::Status TooLargeAtOnce(const Device& device, std::string_view name, int64_t bytes);

// kOverBudget of that device.
absl::Status DoesNotFit(const Room& room, std::string what, std::string fix);

}  // namespace mge
