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

// Returns a score behind the mask, which must not be null. `place` is its offset for the batch index.
template <typename T, typename C>
GPU_DEVICE C Masked(const AttentionArgs& args, int64_t place, C score, int64_t query, int64_t key) {
  place += query * args.mask_row + key * args.mask_column;
  switch (args.mask_kind) {
    case kMaskAdds: return score + Widen(static_cast<const T*>(args.mask)[place]);
    case kMaskAddsFloats: return score + static_cast<const float*>(args.mask)[place];
    case kMaskKeeps: return static_cast<const uint8_t*>(args.mask)[place] ? score : static_cast<C>(args.fill);
    default: return static_cast<const uint8_t*>(args.mask)[place] ? static_cast<C>(args.fill) : score;
  }
}

}  // namespace mge::gpu
