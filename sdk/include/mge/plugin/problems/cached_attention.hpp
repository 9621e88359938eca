// SPDX-License-Identifier: Apache-2.0
// Reads GroupQueryAttention: attention of new tokens over a cache of keys and values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// The tokens of a sample are its last valid keys. With `total` the number in the input total_sequence_length, all samples have
// `total` valid keys if there is one sample or if total == queries; otherwise sample b has seqlens_k[b] + 1.
//
// A window cache holds only the latest tokens: Resident(n) of n. It has one sample, and a run has one new token.
struct CachedAttention {
  enum Input { kQ, kK, kV, kPastKey, kPastValue, kLengths, kTotal, kCos, kSin, kPositions, kBias, kSinks, kInputs };

  bool packed = false;  // the query has the heads of the queries, then those of the keys, then those of the values
  bool has_past = false, has_positions = false;
  int64_t batch = 0, queries = 0;  // queries: new tokens of a sample
  int64_t heads = 0, kv_heads = 0, size = 0;
  int64_t past = 0,
          rows = 0;          // keys for which there is room in the past and in the present cache [batch,kv_heads,rows,size]
  int64_t cos_rows = 0;      // positions that can be rotated
  int64_t half = 0;          // pairs of a head that are rotated; 0: none
  bool interleaved = false;  // pairs are neighbours, otherwise halves
  bool causal = true;        // a query sees keys up to its own position
  int64_t window = 0;        // keys that a query sees, the latest ones; 0: all
  bool window_cache = false;
  bool has_sinks = false;        // the sum of the softmax of head h also has exp(sinks[h]); without the input, exp(0)
  float scale = 0, softcap = 0;  // factor of the scores; their limit, 0: none

  int64_t group() const { return heads / kv_heads; }  // queries that share a key
  // Elements between the heads of two tokens in the query, and in key and value.
  int64_t q_step() const { return (packed ? heads + 2 * kv_heads : heads) * size; }
  int64_t kv_step() const { return (packed ? heads + 2 * kv_heads : kv_heads) * size; }
  // Returns how many of the latest `tokens` a window cache holds. If it is full, rows - window + 1 are dropped at once.
  int64_t Resident(int64_t tokens) const {
    const int64_t step = rows - window + 1;
    return tokens <= rows ? tokens : tokens - (tokens - rows + step - 1) / step * step;
  }
};

// Fails for biases, norms, quantized caches, caches that another layer fills, a window cache for several samples or new tokens,
// operands of several types, sizes that do not fit together, and without outputs for the cache. Its host then computes the
// operator's body.
inline Result ReadCachedAttention(const Node& node, CachedAttention* out) {
  using A = CachedAttention;
  const auto no = [](const char* why) { return Result{MGE_UNIMPLEMENTED, why}; };
  for (int i = A::kInputs; i < node.input_count(); ++i) {
    if (node.has_input(i)) return no("scales, norms, or lengths of queries");
  }
  if (node.has_input(A::kBias)) return no("a bias");
  if (node.Int("kv_cache_bit_width") || node.has_output(3) || node.Word("k_quant_type") != "NONE" ||
      node.Word("v_quant_type") != "NONE") {
    return no("a quantized cache or output_qk");
  }
  if (!node.has_output(1) || !node.has_output(2)) return no("no output for the cache");
  if (!node.has_input(A::kLengths) || !node.has_input(A::kTotal)) return no("no lengths");
  if (node.has_input(A::kK) != node.has_input(A::kV)) return no("a key without a value, or a value without a key");
  const Value q = node.input(A::kQ), keys = node.output(1);
  for (int i : {A::kK, A::kV, A::kPastKey, A::kPastValue, A::kCos, A::kSin, A::kSinks}) {
    if (node.has_input(i) && node.input(i).dtype() != q.dtype()) return no("operands of several types");
  }
  for (int i : {0, 1, 2}) {
    if (node.output(i).dtype() != q.dtype()) return no("results of several types");
  }
  if (q.rank() != 3 || keys.rank() != 4) return no("sizes that do not fit together");
  A a;
  a.packed = !node.has_input(A::kK);
  a.batch = q.dim(0);
  a.queries = q.dim(1);
  a.heads = node.Int("num_heads");
  a.kv_heads = keys.dim(1);
  a.rows = keys.dim(2);
  a.size = keys.dim(3);
  a.has_past = node.has_input(A::kPastKey);
  if (a.has_past) a.past = node.input(A::kPastKey).rank() == 4 ? node.input(A::kPastKey).dim(2) : -1;
  const auto is = [&](int i, std::initializer_list<int64_t> dims) {
    return node.has_input(i) && std::ranges::equal(node.input(i).dims(), dims);
  };
  if (!a.packed && !is(A::kK, {a.batch, a.queries, a.kv_heads * a.size})) return no("a cache that another layer fills");
  const std::initializer_list<int64_t> cache = {a.batch, a.kv_heads, a.past, a.size};
  const bool fits = a.kv_heads > 0 && a.heads > 0 && a.heads % a.kv_heads == 0 && a.heads <= q.dim(2) && a.past <= a.rows &&
                    a.queries <= a.rows && is(A::kQ, {a.batch, a.queries, a.q_step()}) &&
                    (a.packed || is(A::kV, {a.batch, a.queries, a.kv_step()})) &&
                    (!a.has_past || (is(A::kPastKey, cache) && is(A::kPastValue, cache))) &&
                    node.input(A::kLengths).elements() == static_cast<uint64_t>(a.batch) &&
                    node.input(A::kTotal).elements() == 1;
  if (!fits) return no("sizes that do not fit together");
  a.causal = node.Int("causal") != 0;
  a.window = std::max<int64_t>(0, node.Int("local_window_size"));
  a.window_cache = node.Int("sliding_window_cache") != 0;
  if (a.window_cache && (a.batch != 1 || a.queries != 1 || !a.causal)) return no("a window cache for several tokens");
  if (a.window_cache && (a.past != a.rows || a.window < 1 || a.window > a.rows)) return no("sizes that do not fit together");
  a.softcap = node.Float("softcap");
  a.has_sinks = node.has_input(A::kSinks) || node.Int("smooth_softmax") > 0;
  if (a.has_sinks && a.softcap > 0) return no("sinks of limited scores");
  if (node.has_input(A::kSinks) && node.input(A::kSinks).elements() != static_cast<uint64_t>(a.heads)) {
    return no("sizes that do not fit together");
  }
  const float scale = node.Float("scale");  // absent or 0: that of the size
  a.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<float>(a.size));
  if (node.Int("do_rotary")) {
    if (!node.has_input(A::kCos) || node.input(A::kCos).rank() != 2) return no("no table of rotations");
    a.cos_rows = node.input(A::kCos).dim(0);
    a.half = node.input(A::kCos).dim(1);
    a.interleaved = node.Int("rotary_interleaved") != 0;
    a.has_positions = node.has_input(A::kPositions);
    if (a.cos_rows == 0 || !is(A::kSin, {a.cos_rows, a.half}) || 2 * a.half > a.size) {
      return no("tables of rotations that do not fit to a head");
    }
    if (a.has_positions && node.input(A::kPositions).elements() != static_cast<uint64_t>(a.batch * a.queries)) {
      return no("positions that are not one for each token");
    }
  }
  *out = a;
  return {};
}

}  // namespace MGE_HIDDEN
