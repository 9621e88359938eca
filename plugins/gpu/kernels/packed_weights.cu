// SPDX-License-Identifier: Apache-2.0
// Products of few rows with weights of 2, 4 or 8 bits, which are read once, as they are stored; and such weights as numbers, for the
// products of many rows.
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/kernels/pack.h"
#include "plugins/gpu/kernels/packed_weights.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T>
GPU_DEVICE Compute<T> ZeroOf(const PackedWeightsArgs& args, int64_t column, int64_t block) {
  using C = Compute<T>;
  if (!args.zeros) return static_cast<C>(1 << (args.bits - 1));
  if (!args.packed_zeros) return Widen(static_cast<const T*>(args.zeros)[column * args.blocks + block]);
  const int64_t bit = block * args.bits;
  const uint32_t byte = static_cast<const uint8_t*>(args.zeros)[column * args.zero_bytes + bit / 8];
  return static_cast<C>(byte >> (bit % 8) & ((1u << args.bits) - 1));
}

// A warp has one column and up to kPackedRows rows at a time; its threads take words of the column in turns.
template <typename T, int kBits>
GPU_DEVICE void PackedProduct(const PackedWeightsArgs& args) {
  using C = Compute<T>;
  constexpr int kEach = 32 / kBits;
  constexpr int kPack = kEach < kWidest<T> ? kEach : kWidest<T>;
  const int lane = static_cast<int>(threadIdx.x) % GPU_WARP;
  const int64_t k = args.k.value, words = args.column_bytes / 4, groups = (args.m + kPackedRows - 1) / kPackedRows;
  const T* a = static_cast<const T*>(args.a);
  const bool whole = k % kEach == 0 && IsAligned(a);
  for (int64_t u = GridThread() / GPU_WARP; u < args.n * groups; u += GridThreads() / GPU_WARP) {
    const int64_t column = u / groups, row0 = (u - column * groups) * kPackedRows;
    const auto* from = reinterpret_cast<const uint32_t*>(args.b + column * args.column_bytes);
    C sums[kPackedRows] = {};
    for (int64_t w = lane; w < words; w += GPU_WARP) {
      const int64_t block = Divide(w, args.word_block).quotient, first = w * kEach;
      const C scale = Widen(static_cast<const T*>(args.scales)[column * args.blocks + block]);
      const C zero = ZeroOf<T>(args, column, block);
      const uint32_t word = from[w];
      C weights[kEach];
      GPU_UNROLL for (int j = 0; j < kEach; ++j) {
        weights[j] = (static_cast<C>(word >> (kBits * j) & ((1u << kBits) - 1)) - zero) * scale;
      }
      GPU_UNROLL for (int r = 0; r < kPackedRows; ++r) {
        if (row0 + r >= args.m || first >= k) continue;
        const T* x = a + (row0 + r) * k + first;
        if (whole) {
          GPU_UNROLL for (int p = 0; p < kEach / kPack; ++p) {
            const Pack<T, kPack> pack = ReadPack<kPack>(x + p * kPack);
            GPU_UNROLL for (int j = 0; j < kPack; ++j) sums[r] += weights[p * kPack + j] * Widen(pack.at[j]);
          }
        } else {
          GPU_UNROLL for (int j = 0; j < kEach; ++j) {
            if (first + j < k) sums[r] += weights[j] * Widen(x[j]);
          }
        }
      }
    }
    GPU_UNROLL for (int r = 0; r < kPackedRows; ++r) {
      C sum = WarpReduce<JoinSum>(sums[r]);
      if (lane != 0 || row0 + r >= args.m) continue;
      if (args.bias) sum += Widen(static_cast<const T*>(args.bias)[column]);
      static_cast<T*>(args.y)[(row0 + r) * args.n + column] = Narrow<T>::Of(sum);
    }
  }
}

template <typename T>
GPU_DEVICE void UnpackWeights(const PackedWeightsArgs& args) {
  using C = Compute<T>;
  for (int64_t i = GridThread(); i < args.n * args.k.value; i += GridThreads()) {
    const auto [column, at] = Divide(i, args.k);
    const int64_t block = Divide(at, args.block).quotient, bit = at * args.bits;
    const uint32_t byte = args.b[column * args.column_bytes + bit / 8];
    const C number = static_cast<C>(byte >> (bit % 8) & ((1u << args.bits) - 1));
    const C scale = Widen(static_cast<const T*>(args.scales)[column * args.blocks + block]);
    static_cast<T*>(args.y)[i] = Narrow<T>::Of((number - ZeroOf<T>(args, column, block)) * scale);
  }
}

#define GPU_PACKED_WEIGHTS(type, T)                                                 \
  GPU_KERNEL(packed_product2_##type, 256, PackedWeightsArgs, (PackedProduct<T, 2>)) \
  GPU_KERNEL(packed_product4_##type, 256, PackedWeightsArgs, (PackedProduct<T, 4>)) \
  GPU_KERNEL(packed_product8_##type, 256, PackedWeightsArgs, (PackedProduct<T, 8>)) \
  GPU_KERNEL(unpack_weights_##type, 256, PackedWeightsArgs, UnpackWeights<T>)

GPU_PACKED_WEIGHTS(f32, float)
GPU_PACKED_WEIGHTS(f16, f16)
GPU_PACKED_WEIGHTS(bf16, bf16)

}  // namespace mge::gpu
