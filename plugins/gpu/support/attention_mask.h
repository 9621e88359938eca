// SPDX-License-Identifier: Apache-2.0
// Masks of attention.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"
#include "plugins/gpu/kernels/attention.h"

namespace mge::gpu {

// A tensor that acts on the scores. `value` is its id in the graph, or -1.
struct Mask {
  int32_t value = -1;
  MaskKind kind = kMaskAdds;
  float fill = 0;  // of kMaskKeeps and kMaskReplaces
};

// Returns whether the mask is a constant that leaves the keys up to i + keys - queries of query i as they are, and excludes
// all others. `type` is that of queries and keys.
bool IsCausal(const Graph& graph, const Mask& mask, mge_dtype type, int64_t queries, int64_t keys);

}  // namespace mge::gpu
