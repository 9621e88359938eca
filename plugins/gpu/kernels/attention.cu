// SPDX-License-Identifier: Apache-2.0
// Attention in one pass over the keys, without the matrix of scores in memory. A block computes 32 queries, or 16 of
// large heads. For each tile of as many keys it computes the scores, and corrects the sums so far by the change of the
// row's maximum: the online softmax of M. Milakov and N. Gimelshein (2018), in the tiles of T. Dao et al.,
// "FlashAttention" (2022).
#include <math.h>

#include "plugins/gpu/kernels/attention_operands.h"
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

constexpr int kAttentionThreads = 256;

// Copies rows [row0, row0 + kRows) of a matrix to shared memory, with zeros behind the last row.
template <typename T, typename C, int kRows, int kPitch>
GPU_DEVICE void LoadRows(C (&tile)[kRows][kPitch], const T* from, int64_t row0, int64_t rows, int columns,
                         int64_t row_stride, int64_t column_stride, C factor, int thread) {
  for (int i = thread; i < kRows * columns; i += kAttentionThreads) {
    const int row = i / columns, column = i % columns;
    tile[row][column] = row0 + row < rows ? factor * Widen(from[(row0 + row) * row_stride + column * column_stride]) : C(0);
  }
}

// Computes heads of up to kHead elements.
template <typename T, int kHead>
GPU_DEVICE void Attention(const AttentionArgs& args) {
  using C = Compute<T>;
  constexpr int kTile = kHead > 128 ? 16 : 32, kThreadsPerQuery = kAttentionThreads / kTile;
  GPU_SHARED(C, q, [kTile][kHead + 1]);
  GPU_SHARED(C, kv, [kTile][kHead + 1]);  // keys, then values
  GPU_SHARED(C, scores, [kTile][kTile + 1]);
  GPU_SHARED(C, weights, [kTile][kTile + 1]);
  GPU_SHARED(int32_t, needs, [kTile]);  // whether a query needs the keys that the causal mask excludes
  GPU_STATE(C, sums, kAttentionThreads, [kHead / kThreadsPerQuery]);
  GPU_STATE(C, state, kAttentionThreads, [3]);  // maximum so far, sum of weights so far, correction of the sums
  const C lowest = -C(INFINITY);
  const int64_t tiles = (args.queries + kTile - 1) / kTile;
  for (int64_t u = blockIdx.x; u < tiles * args.batch; u += gridDim.x) {
    const int64_t row0 = u % tiles * kTile;
    const AttentionPlaces at = PlacesOf(args, u / tiles);
    const int64_t last = LastKey(args);  // the last key of query i is i + last
    int64_t end = row0 + kTile + last < args.keys ? row0 + kTile + last : args.keys;
    GPU_PHASE(t) {
      LoadRows(q, static_cast<const T*>(args.q) + at.q, row0, args.queries, args.head_size, args.q_row, args.q_column,
               static_cast<C>(args.scale), t);
      for (int i = 0; i < kHead / kThreadsPerQuery; ++i) GPU_OWN(sums, t)[i] = C(0);
      GPU_OWN(state, t)[0] = lowest;
      GPU_OWN(state, t)[1] = C(0);
    }
    for (int64_t key0 = 0; key0 < end; key0 += kTile) {
      GPU_PHASE(t) {
        LoadRows(kv, static_cast<const T*>(args.k) + at.k, key0, args.keys, args.head_size, args.k_row, args.k_column, C(1),
                 t);
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        const int row = t / kThreadsPerQuery;
        for (int column = t % kThreadsPerQuery; column < kTile; column += kThreadsPerQuery) {
          const int64_t query = row0 + row, key = key0 + column;
          C score = lowest;
          if (query < args.queries && key < args.keys) {
            score = C(0);
            for (int i = 0; i < args.head_size; ++i) score += q[row][i] * kv[column][i];
            score = Masked<T>(args, at.mask, score, query, key);
          }
          scores[row][column] = score;
        }
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        const int row = t / kThreadsPerQuery;
        C top = GPU_OWN(state, t)[0];
        for (int i = 0; i < kTile; ++i) top = JoinMax::Of(top, scores[row][i]);
        GPU_OWN(state, t)[2] = top == lowest ? C(1) : exp(GPU_OWN(state, t)[0] - top);
        GPU_OWN(state, t)[0] = top;
        if (t % kThreadsPerQuery == 0) needs[row] = row0 + row < args.queries && !(top > args.causal.enough);
        for (int column = t % kThreadsPerQuery; column < kTile; column += kThreadsPerQuery) {
          weights[row][column] = top == lowest ? C(0) : exp(scores[row][column] - top);
        }
        LoadRows(kv, static_cast<const T*>(args.v) + at.v, key0, args.keys, args.value_size, args.v_row, args.v_column, C(1),
                 t);
      }
      GPU_BARRIER();
      if (key0 + kTile >= end && end < args.keys && AnyNeeds(needs)) end = args.keys;
      GPU_PHASE(t) {
        const int row = t / kThreadsPerQuery;
        const C correction = GPU_OWN(state, t)[2];
        C sum = GPU_OWN(state, t)[1] * correction;
        for (int i = 0; i < kTile; ++i) sum += weights[row][i];
        GPU_OWN(state, t)[1] = sum;
        for (int i = 0, column = t % kThreadsPerQuery; column < args.value_size; ++i, column += kThreadsPerQuery) {
          C total = GPU_OWN(sums, t)[i] * correction;
          for (int key = 0; key < kTile; ++key) total += weights[row][key] * kv[key][column];
          GPU_OWN(sums, t)[i] = total;
        }
      }
      GPU_BARRIER();
    }
    GPU_PHASE(t) {
      const int64_t query = row0 + t / kThreadsPerQuery;
      if (query < args.queries) {
        T* y = static_cast<T*>(args.y) + at.y + query * args.y_row;
        for (int i = 0, column = t % kThreadsPerQuery; column < args.value_size; ++i, column += kThreadsPerQuery) {
          y[column * args.y_column] = Narrow<T>::Of(GPU_OWN(sums, t)[i] / GPU_OWN(state, t)[1]);
        }
      }
    }
  }
}

// The kernels NAME_TYPE, for heads of up to 128 elements, and NAME256_TYPE.
#define GPU_ATTENTION_KERNELS(type, T)                                                       \
  GPU_PHASED_KERNEL(attention_##type, kAttentionThreads, AttentionArgs, (Attention<T, 128>)) \
  GPU_PHASED_KERNEL(attention256_##type, kAttentionThreads, AttentionArgs, (Attention<T, 256>))

GPU_ATTENTION_KERNELS(f32, float)
GPU_ATTENTION_KERNELS(f16, f16)
GPU_ATTENTION_KERNELS(bf16, bf16)

}  // namespace mge::gpu
