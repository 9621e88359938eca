// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/arena_history.h"

#include <iterator>

namespace mge {

void ArenaHistory::Use(int32_t buffer, std::vector<int32_t>& before) {
  const Buffer& b = memory_.buffers[buffer];
  if (started_[buffer] || b.where != Buffer::Where::kArena || b.bytes == 0) return;
  started_[buffer] = true;
  const int64_t begin = b.offset, end = b.offset + b.bytes;
  auto at = pieces_.lower_bound({b.arena, begin});
  if (at != pieces_.begin()) {
    const auto left = std::prev(at);
    if (left->first.first == b.arena && left->second.end > begin) at = left;
  }
  while (at != pieces_.end() && at->first.first == b.arena && at->first.second < end) {
    const auto [key, piece] = *at;
    before.push_back(piece.owner);
    at = pieces_.erase(at);
    if (key.second < begin) pieces_.emplace(key, Piece{begin, piece.owner});
    if (piece.end > end) at = pieces_.emplace(std::pair(b.arena, end), Piece{piece.end, piece.owner}).first;
  }
  pieces_[{b.arena, begin}] = {end, buffer};
}

}  // namespace mge
