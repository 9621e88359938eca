// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/attention.h"

#include <cmath>

#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Moves the heads out of the rows of a shape of rank 3.
absl::StatusOr<Shape> WithHeads(std::string_view name, const Shape& shape, int64_t heads) {
  if (shape.size() == 4) return shape;
  const bool known = shape[2] != kUnknownDim;
  if (heads <= 0 || (known && shape[2] % heads != 0)) {
    return BadNode(fmt::format("{} {} cannot be divided into {} heads", name, ShapeText(shape), heads));
  }
  return Shape{shape[0], heads, shape[1], known ? shape[2] / heads : kUnknownDim};
}

}  // namespace

absl::StatusOr<AttentionDims> ResolveAttention(const Attributes& attrs, const Shape& q, const Shape& k, const Shape& v,
                                               const Shape* past_key, const Shape* past_value) {
  AttentionDims d;
  d.in_rows = q.size() == 3;
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size()) {
    return BadNode(fmt::format("Q, K and V have the shapes {}, {} and {}; all must have rank 3, or all rank 4", ShapeText(q),
                               ShapeText(k), ShapeText(v)));
  }
  const int64_t q_heads = attrs.Int("q_num_heads"), kv_heads = attrs.Int("kv_num_heads");
  MGE_ASSIGN_OR_RETURN(const Shape qh, WithHeads("Q", q, q_heads));
  MGE_ASSIGN_OR_RETURN(const Shape kh, WithHeads("K", k, kv_heads));
  MGE_ASSIGN_OR_RETURN(const Shape vh, WithHeads("V", v, kv_heads));
  d.batch = qh[0];
  d.q_heads = qh[1];
  d.queries = qh[2];
  d.head = qh[3];
  d.kv_heads = kh[1];
  d.new_keys = kh[2];
  d.value_head = vh[3];
  MGE_RETURN_IF_ERROR(RequireShape("K", kh, {{d.batch, d.kv_heads, d.new_keys, d.head}}));
  MGE_RETURN_IF_ERROR(RequireShape("V", vh, {{d.batch, d.kv_heads, d.new_keys, d.value_head}}));
  const bool known = d.q_heads != kUnknownDim && d.kv_heads != kUnknownDim;
  if (known && (d.kv_heads == 0 || d.q_heads % d.kv_heads != 0)) {
    return BadNode(fmt::format("{} heads of queries cannot share {} heads of keys", d.q_heads, d.kv_heads));
  }
  if ((past_key == nullptr) != (past_value == nullptr)) return BadNode("only one of past_key and past_value is given");
  if (past_key) {
    MGE_RETURN_IF_ERROR(RequireRank("past_key", *past_key, 4));
    d.past = (*past_key)[2];
    MGE_RETURN_IF_ERROR(RequireShape("past_key", *past_key, {{d.batch, d.kv_heads, d.past, d.head}}));
    MGE_RETURN_IF_ERROR(RequireShape("past_value", *past_value, {{d.batch, d.kv_heads, d.past, d.value_head}}));
  }
  return d;
}

absl::StatusOr<AttentionWindow> ReadAttentionWindow(const Attributes& attrs) {
  AttentionWindow w;
  w.causal = attrs.Int("is_causal") != 0;
  w.left = attrs.Int("left_window_size");
  w.right = attrs.Int("right_window_size");
  if (w.left < -1 || w.right < -1) {
    return BadNode(fmt::format("left_window_size {} and right_window_size {} must not be less than -1", w.left, w.right));
  }
  return w;
}

double AttentionScale(const Attributes& attrs, int64_t head) {
  return attrs.Has("scale") ? static_cast<double>(attrs.Float("scale")) : 1 / std::sqrt(static_cast<double>(head));
}

}  // namespace mge
