// SPDX-License-Identifier: Apache-2.0
// Layouts: the order of a tensor's elements in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "mge/plugin.h"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

inline mge_layout PlainLayout() { return {sizeof(mge_layout), MGE_LAYOUT_PLAIN, 0, 0, {}, {}, {}, 0, 0}; }
inline mge_layout AnyLayout() { return {sizeof(mge_layout), MGE_LAYOUT_ANY, 0, 0, {}, {}, {}, 0, 0}; }
inline mge_layout Permuted(std::span<const int32_t> perm) {
  mge_layout l = {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, static_cast<int32_t>(perm.size()), 0, {}, {}, {}, 0, 0};
  for (size_t i = 0; i < perm.size(); ++i) l.perm[i] = perm[i];
  return l;
}
// Returns a layout known only to the backend, by its number. Needs Layouts::Describe and kernels for mge.Reorder.
inline mge_layout Opaque(uint64_t id, uint64_t bytes) {
  return {sizeof(mge_layout), MGE_LAYOUT_OPAQUE, 0, 0, {}, {}, {}, id, bytes};
}
// Returns the layout with channels innermost: dimension 1 moves to the end.
inline mge_layout ChannelsLast(int rank) {
  mge_layout l = {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, rank, 0, {}, {}, {}, 0, 0};
  for (int i = 0, axis = 0; i < rank; ++i, ++axis) {
    if (i == 1) ++axis;
    l.perm[i] = i == rank - 1 ? 1 : axis;
  }
  return l;
}
inline bool IsPlain(const mge_layout* l) { return !l || l->kind == MGE_LAYOUT_PLAIN; }
inline bool SameLayout(const mge_layout* a, const mge_layout* b) {
  if (IsPlain(a) || IsPlain(b)) return IsPlain(a) && IsPlain(b);
  if (a->kind != b->kind) return false;
  if (a->kind == MGE_LAYOUT_OPAQUE) return a->opaque_id == b->opaque_id;
  if (a->rank != b->rank || a->block_count != b->block_count) return false;
  return !std::memcmp(a->perm, b->perm, sizeof(int32_t) * static_cast<size_t>(a->rank)) &&
         !std::memcmp(a->block_axis, b->block_axis, sizeof(int32_t) * static_cast<size_t>(a->block_count)) &&
         !std::memcmp(a->block_size, b->block_size, sizeof(int32_t) * static_cast<size_t>(a->block_count));
}

}  // namespace MGE_HIDDEN
