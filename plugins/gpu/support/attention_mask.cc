// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/attention_mask.h"

#include "mge/float16.hpp"

namespace mge::gpu {
namespace {

// Returns the largest number that excludes a key whose score it is added to or replaces: the weight is 0. Scores of float16
// are masked with its lowest number.
float ExcludedFrom(mge_dtype type) { return type == MGE_DTYPE_F16 ? -6e4f : -1e30f; }

float ElementOf(const Value& v, size_t i) {
  switch (v.dtype()) {
    case MGE_DTYPE_F16: return static_cast<float>(v.data<F16>()[i]);
    case MGE_DTYPE_BF16: return static_cast<float>(v.data<BF16>()[i]);
    case MGE_DTYPE_BOOL: return v.data<uint8_t>()[i] ? 1.0f : 0.0f;
    default: return v.data<float>()[i];
  }
}

}  // namespace

bool IsCausal(const Graph& graph, const Mask& mask, mge_dtype type, int64_t queries, int64_t keys) {
  const Value m = graph.value(mask.value);
  if (!m.is_constant() || keys < queries || m.elements() != static_cast<uint64_t>(queries * keys)) return false;
  if (m.rank() < 2 || m.dim(-1) != keys || m.dim(-2) != queries) return false;
  const bool adds = mask.kind == kMaskAdds || mask.kind == kMaskAddsFloats;
  const float excluded = ExcludedFrom(type), kept = mask.kind == kMaskKeeps ? 1.0f : 0.0f;
  if (!adds && !(mask.fill <= excluded)) return false;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) {
      const float v = ElementOf(m, static_cast<size_t>(i * keys + j));
      const bool is_kept = v == kept, is_excluded = adds ? v <= excluded : !is_kept;
      if (j <= i + keys - queries ? !is_kept : !is_excluded) return false;
    }
  }
  return true;
}

}  // namespace mge::gpu
