// SPDX-License-Identifier: Apache-2.0
// The operands of attention's batch, and its mask. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/attention.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

struct AttentionPlaces {
  int64_t q, k, v, mask, y;
};
GPU_DEVICE AttentionPlaces PlacesOf(const AttentionArgs& args, int64_t batch) {
  AttentionPlaces at = {0, 0, 0, 0, 0};
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    const int64_t rest = batch / args.batch_dims[d], i = batch - rest * args.batch_dims[d];
    at.q += i * args.q_batch[d];
    at.k += i * args.k_batch[d];
    at.v += i * args.v_batch[d];
    at.mask += i * args.mask_batch[d];
    at.y += i * args.y_batch[d];
    batch = rest;
  }
  return at;
}

// Returns the last key of query 0 in front of those on which the causal mask acts. Query i has i keys more.
GPU_DEVICE int64_t LastKey(const AttentionArgs& args) {
  return args.causal.kind == kNotCausal ? args.keys : args.keys - args.queries;
}

// Returns a score behind the mask in memory, if there is one. `place` is its offset for the batch index.
template <typename T, typename C>
GPU_DEVICE C MaskedByMemory(const AttentionArgs& args, int64_t place, C score, int64_t query, int64_t key) {
  if (!args.mask) return score;
  place += query * args.mask_row + key * args.mask_column;
  switch (args.mask_kind) {
    case kMaskAdds: return score + Widen(static_cast<const T*>(args.mask)[place]);
    case kMaskAddsFloats: return score + static_cast<const float*>(args.mask)[place];
    case kMaskKeeps: return static_cast<const uint8_t*>(args.mask)[place] ? score : static_cast<C>(args.fill);
    default: return static_cast<const uint8_t*>(args.mask)[place] ? static_cast<C>(args.fill) : score;
  }
}

// Returns a score behind all masks.
template <typename T, typename C>
GPU_DEVICE C Masked(const AttentionArgs& args, int64_t place, C score, int64_t query, int64_t key) {
  const auto fill = static_cast<C>(args.causal.fill);
  if (key <= query + LastKey(args)) return MaskedByMemory<T>(args, place, score, query, key);
  if (args.causal.last) score = MaskedByMemory<T>(args, place, score, query, key);
  score = args.causal.kind == kCausalAdds ? score + fill : fill;
  return args.causal.last ? score : MaskedByMemory<T>(args, place, score, query, key);
}

// Returns whether one of the queries needs the keys behind its last one. `needs` is in shared memory.
template <int kQueries>
GPU_DEVICE bool AnyNeeds(const int32_t (&needs)[kQueries]) {
  int32_t any = 0;
  for (int i = 0; i < kQueries; ++i) any |= needs[i];
  return any != 0;
}

}  // namespace mge::gpu
