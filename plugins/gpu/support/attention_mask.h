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

// Reads a mask that is a constant, leaves the keys up to i + keys - queries of query i as they are, and acts on all others in
// the same way. Returns false if it is no such mask.
bool ReadCausal(const Graph& graph, const Mask& mask, int64_t queries, int64_t keys, CausalMask* out);

// Sets how large a score must be so that the keys behind a query's last one weigh nothing. `other` acts on the same scores;
// its value is -1 if there is none. `type` is that of queries and keys.
void SetEnough(const Mask& other, mge_dtype type, CausalMask* causal);

}  // namespace mge::gpu
