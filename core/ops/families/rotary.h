// SPDX-License-Identifier: Apache-2.0
// The shapes of RotaryEmbedding.
#pragma once

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

// Unknown sizes are kUnknownDim.
struct RotaryShape {
  int64_t batch, sequence, heads;
  int64_t head_size;
  int64_t rotated;  // the first elements of a head, which are rotated; the others stay
};

// Returns the sizes in an input X: [batch, heads, sequence, head_size] or [batch, sequence, heads * head_size]. Fails with
// kInvalidNode if X and the attributes do not fit.
inline absl::StatusOr<RotaryShape> RotaryShapeOf(const Attributes& attrs, std::span<const int64_t> x) {
  RotaryShape s;
  if (x.size() == 4) {
    s = {x[0], x[2], x[1], x[3], 0};
  } else if (x.size() == 3) {
    s = {x[0], x[1], attrs.Int("num_heads"), x[2], 0};
    if (s.heads < 1) return BadNode(fmt::format("num_heads is {}; X has 3 dimensions, so it must be positive", s.heads));
    if (x[2] != kUnknownDim) {
      if (x[2] % s.heads != 0) return BadNode(fmt::format("num_heads = {} does not divide {}", s.heads, x[2]));
      s.head_size = x[2] / s.heads;
    }
  } else {
    return BadNode(fmt::format("X has {} dimensions, expected 3 or 4", x.size()));
  }
  const int64_t rotated = attrs.Int("rotary_embedding_dim");
  s.rotated = rotated == 0 ? s.head_size : rotated;
  if (rotated < 0 || (s.rotated != kUnknownDim && s.rotated % 2 != 0) ||
      (s.head_size != kUnknownDim && s.rotated > s.head_size)) {
    return BadNode(fmt::format("{} of {} elements of a head cannot be rotated", s.rotated, s.head_size));
  }
  return s;
}

// Checks the shape of a cache: [positions, n] with position_ids, else [batch, sequence, n], where batch and sequence may be
// 1. The first rotated / 2 elements of its rows are used; ONNX 1.19 allowed longer rows.
inline absl::Status CheckRotaryCache(std::string_view name, const RotaryShape& s, std::span<const int64_t> cache,
                                     bool has_positions) {
  MGE_RETURN_IF_ERROR(RequireRank(name, cache, has_positions ? 2 : 3));
  if (!has_positions && cache[0] != 1) MGE_RETURN_IF_ERROR(RequireSize("the cache's batch", cache[0], s.batch));
  if (!has_positions && cache[1] != 1) MGE_RETURN_IF_ERROR(RequireSize("the cache's sequence", cache[1], s.sequence));
  if (cache.back() == kUnknownDim || cache.back() >= s.rotated / 2) return absl::OkStatus();
  return BadNode(fmt::format("{} has rows of {}, expected {}", name, cache.back(), s.rotated / 2));
}

}  // namespace mge
