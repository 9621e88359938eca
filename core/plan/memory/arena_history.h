// SPDX-License-Identifier: Apache-2.0
// The buffers that had a piece of an arena before another one. The order of steps must keep the users of both apart.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/plan/memory/buffers.h"

namespace mge {

// Follows the buffers of a plan in the order of their first use. The plan must outlive this object.
class ArenaHistory {
 public:
  explicit ArenaHistory(const MemoryPlan& memory) : memory_(memory), started_(memory.buffers.size(), false) {}

  // Appends the last owners of the buffer's memory if this is its first use. Earlier owners are not needed: the last ones came
  // after them. Does nothing for a buffer outside of the arenas.
  void Use(int32_t buffer, std::vector<int32_t>& before);

 private:
  struct Piece {
    int64_t end;
    int32_t owner;
  };

  const MemoryPlan& memory_;
  std::vector<bool> started_;
  std::map<std::pair<int32_t, int64_t>, Piece> pieces_;  // by arena and first byte
};

}  // namespace mge
