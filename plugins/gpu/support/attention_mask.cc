// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/attention_mask.h"

#include <cmath>

#include "mge/float16.hpp"

namespace mge::gpu {
namespace {

// Returns the largest number that leaves a key no weight beside scores above half of it. If it is added, scores of other keys
// must be far from it, too: those of float16 are masked with its lowest number.
float ExcludedFrom(CausalKind kind, mge_dtype type) {
  if (kind == kCausalReplaces) return -1e4f;
  return type == MGE_DTYPE_F16 ? -6e4f : -1e8f;
}

float ElementOf(const Value& v, size_t i) {
  switch (v.dtype()) {
    case MGE_DTYPE_F16: return static_cast<float>(v.data<F16>()[i]);
    case MGE_DTYPE_BF16: return static_cast<float>(v.data<BF16>()[i]);
    case MGE_DTYPE_BOOL: return v.data<uint8_t>()[i] ? 1.0f : 0.0f;
    default: return v.data<float>()[i];
  }
}

}  // namespace

bool ReadCausal(const Graph& graph, const Mask& mask, int64_t queries, int64_t keys, CausalMask* out) {
  const Value m = graph.value(mask.value);
  if (!m.is_constant() || keys < queries || m.elements() != static_cast<uint64_t>(queries * keys)) return false;
  if (m.rank() < 2 || m.dim(-1) != keys || m.dim(-2) != queries) return false;
  const bool adds = mask.kind == kMaskAdds || mask.kind == kMaskAddsFloats;
  const float kept = mask.kind == kMaskKeeps ? 1.0f : 0.0f;
  const float excluded = queries > 1 ? ElementOf(m, static_cast<size_t>(keys - queries + 1)) : -INFINITY;
  if (excluded == kept) return false;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      if (ElementOf(m, static_cast<size_t>(i * keys + j)) != (j <= i + keys - queries ? kept : excluded)) return false;
    }
  }
  *out = {adds ? kCausalAdds : kCausalReplaces, 0, adds ? excluded : mask.fill, 0};
  return true;
}

void SetEnough(const Mask& other, mge_dtype type, CausalMask* causal) {
  float fill = causal->fill;
  const bool replaces = other.value >= 0 && (other.kind == kMaskKeeps || other.kind == kMaskReplaces);
  if (replaces && !causal->last && !(other.fill <= fill)) fill = other.fill;
  causal->enough = fill <= ExcludedFrom(causal->kind, type) ? fill / 2 : INFINITY;
}

}  // namespace mge::gpu
