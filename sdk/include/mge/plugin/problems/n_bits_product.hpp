// SPDX-License-Identifier: Apache-2.0
// Reads com.microsoft::MatMulNBits: rows times weights of 2, 4 or 8 bits. Column n of the weights has `blocks` blocks of `block`
// numbers, of which the last may be longer than the column; its bits are dense, the first number in the lowest ones. A block has
// one scale and one zero point, (column, block) after (column, block); packed zero points begin anew with each column's byte.
#pragma once

#include <cstdint>
#include <string>

#include "mge/plugin/graph.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

struct NBitsProduct {
  enum Input : int { kA, kB, kScales, kZeros, kGroups, kBias };
  enum class Zeros {
    kMiddle,  // none: 2^(bits - 1)
    kPacked,  // uint8, as many bits as a weight has
    kNumbers  // the type of the scales
  };

  int64_t rows = 0, k = 0, n = 0, blocks = 0, block = 0;
  int bits = 4;
  mge_dtype type = MGE_DTYPE_F32;  // of rows, scales and the result
  Zeros zeros = Zeros::kMiddle;
  bool has_bias = false;

  int64_t scales() const { return n * blocks; }
  int64_t column_bytes() const { return blocks * (block / 8) * bits; }
  int64_t zero_bytes() const { return (blocks * bits + 7) / 8; }  // packed, of a column
};

// Reads a node of known shapes. Returns the reason if it has another form than MatMulNBits allows, or g_idx, which is not
// described here.
inline std::string ReadNBitsProduct(const Node& node, NBitsProduct* out) {
  NBitsProduct w;
  w.k = node.Int("K");
  w.n = node.Int("N");
  w.block = node.Int("block_size");
  w.bits = static_cast<int>(node.Int("bits"));
  if (w.bits != 2 && w.bits != 4 && w.bits != 8) return "the weights have another number of bits than 2, 4 or 8";
  if (w.k <= 0 || w.n <= 0 || w.block < 8 || w.block % 8 != 0 || node.Int("weight_prepacked") != 0)
    return "the weights are in another form";
  if (node.has_input(NBitsProduct::kGroups)) return "g_idx is present";
  const Value a = node.input(NBitsProduct::kA), scales = node.input(NBitsProduct::kScales);
  w.type = a.dtype();
  if (scales.dtype() != w.type) return "the scales have another type";
  if (a.rank() < 1 || a.dim(-1) != w.k) return "A does not have K columns";
  w.blocks = (w.k - 1) / w.block + 1;
  w.rows = static_cast<int64_t>(a.elements()) / w.k;
  if (node.input(NBitsProduct::kB).elements() != static_cast<uint64_t>(w.n * w.column_bytes()) ||
      scales.elements() != static_cast<uint64_t>(w.scales())) {
    return "B and scales do not fit";
  }
  w.has_bias = node.has_input(NBitsProduct::kBias);
  if (w.has_bias && node.input(NBitsProduct::kBias).elements() != static_cast<uint64_t>(w.n)) return "the bias is broadcast";
  if (node.has_input(NBitsProduct::kZeros)) {
    const Value z = node.input(NBitsProduct::kZeros);
    w.zeros = z.dtype() == MGE_DTYPE_U8 ? NBitsProduct::Zeros::kPacked : NBitsProduct::Zeros::kNumbers;
    const int64_t count = w.zeros == NBitsProduct::Zeros::kPacked ? w.n * w.zero_bytes() : w.scales();
    if (z.elements() != static_cast<uint64_t>(count)) return "zero_points do not fit";
    if (w.zeros == NBitsProduct::Zeros::kNumbers && z.dtype() != w.type) return "zero_points have another type";
  }
  *out = w;
  return {};
}

}  // namespace MGE_HIDDEN
