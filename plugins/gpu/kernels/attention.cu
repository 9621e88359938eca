// SPDX-License-Identifier: Apache-2.0
// Attention in one pass over the keys, without the matrix of scores in memory. A block computes a tile of queries. For each
// tile of keys it computes the scores, and corrects the sums so far by the change of the row's maximum: the online softmax of
// M. Milakov and N. Gimelshein (2018), in the tiles of T. Dao et al., "FlashAttention" (2022). Each thread computes a small
// tile of 4 queries in registers, so that a factor is used several times for each load from shared memory.
#include <math.h>

#include "plugins/gpu/kernels/attention_operands.h"
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

constexpr int kAttentionThreads = 256, kRows = 4;

// A matrix in memory.
template <typename T>
struct Lines {
  const T* from;
  int64_t rows, row_stride, column_stride;
  int columns;
};
// Calls store(row, column, element) for a tile of rows from row0 on, with zeros around the matrix.
template <int kTileRows, int kTileColumns, typename T, typename Store>
GPU_DEVICE void LoadTile(const Lines<T>& m, int64_t row0, int thread, Store store) {
  constexpr int kEach = kTileRows * kTileColumns / kAttentionThreads;
  static_assert(kEach * kAttentionThreads == kTileRows * kTileColumns);
  GPU_UNROLL for (int j = 0; j < kEach; ++j) {
    const int i = thread + j * kAttentionThreads, row = i / kTileColumns, column = i % kTileColumns;
    const bool inside = row0 + row < m.rows && column < m.columns;
    store(row, column, inside ? Widen(m.from[(row0 + row) * m.row_stride + column * m.column_stride]) : Compute<T>(0));
  }
}

// Computes heads of up to kHead elements, kQueries queries a block, with kKeys keys at a time.
template <typename T, int kHead, int kQueries, int kKeys>
GPU_DEVICE void Attention(const AttentionArgs& args) {
  using C = Compute<T>;
  constexpr int kTeam = kAttentionThreads / (kQueries / kRows);  // threads that share kRows queries
  constexpr int kScores = kKeys > kTeam ? kKeys / kTeam : 1, kSums = kHead / kTeam;
  constexpr int kQueryPitch = kQueries + 4, kKeyPitch = kKeys + 2, kValuePitch = kHead + 4;
  constexpr int kTile = kHead * kKeyPitch > kKeys * kValuePitch ? kHead * kKeyPitch : kKeys * kValuePitch;
  GPU_SHARED(C, q, [kHead][kQueryPitch]);
  GPU_SHARED(C, kv, [kTile]);  // keys by columns, then values by rows
  GPU_SHARED(C, scores, [kKeys][kQueryPitch]);
  GPU_SHARED(C, weights, [kKeys][kQueryPitch]);
  GPU_SHARED(int32_t, needs, [kQueries]);  // whether a query needs the keys that the causal mask excludes
  GPU_STATE(C, sums, kAttentionThreads, [kRows][kSums]);
  GPU_STATE(C, state, kAttentionThreads, [kRows][3]);  // maximum so far, sum of weights so far, correction of the sums
  const C lowest = -C(INFINITY);
  const int64_t tiles = (args.queries + kQueries - 1) / kQueries;
  for (int64_t u = blockIdx.x; u < tiles * args.batch; u += gridDim.x) {
    const int64_t row0 = u % tiles * kQueries;
    const AttentionPlaces at = PlacesOf(args, u / tiles);
    const int64_t last = LastKey(args);  // the last key of query i is i + last
    int64_t end = row0 + kQueries + last < args.keys ? row0 + kQueries + last : args.keys;
    GPU_PHASE(t) {
      const Lines<T> lines = {static_cast<const T*>(args.q) + at.q, args.queries, args.q_row, args.q_column, args.head_size};
      LoadTile<kQueries, kHead>(lines, row0, t,
                                [&](int row, int column, C x) { q[column][row] = static_cast<C>(args.scale) * x; });
      GPU_UNROLL for (int r = 0; r < kRows; ++r) {
        GPU_UNROLL for (int c = 0; c < kSums; ++c) GPU_OWN(sums, t)[r][c] = C(0);
        GPU_OWN(state, t)[r][0] = lowest;
        GPU_OWN(state, t)[r][1] = C(0);
      }
    }
    for (int64_t key0 = 0; key0 < end; key0 += kKeys) {
      GPU_PHASE(t) {
        const Lines<T> lines = {static_cast<const T*>(args.k) + at.k, args.keys, args.k_row, args.k_column, args.head_size};
        LoadTile<kKeys, kHead>(lines, key0, t, [&](int row, int column, C x) { kv[column * kKeyPitch + row] = x; });
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        const int row = t / kTeam * kRows, column = t % kTeam * kScores;
        if (column < kKeys) {
          C own[kScores][kRows] = {};
          for (int i = 0; i < args.head_size; ++i) {
            GPU_UNROLL for (int c = 0; c < kScores; ++c) {
              const C key = kv[i * kKeyPitch + column + c];
              GPU_UNROLL for (int r = 0; r < kRows; ++r) own[c][r] += q[i][row + r] * key;
            }
          }
          GPU_UNROLL for (int c = 0; c < kScores; ++c) {
            GPU_UNROLL for (int r = 0; r < kRows; ++r) {
              const int64_t query = row0 + row + r, key = key0 + column + c;
              const bool inside = query < args.queries && key < args.keys;
              scores[column + c][row + r] = inside ? Masked<T>(args, at.mask, own[c][r], query, key) : lowest;
            }
          }
        }
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        const int row = t / kTeam * kRows, column = t % kTeam * kScores;
        C top[kRows];
        GPU_UNROLL for (int r = 0; r < kRows; ++r) top[r] = GPU_OWN(state, t)[r][0];
        for (int key = 0; key < kKeys; ++key) {
          GPU_UNROLL for (int r = 0; r < kRows; ++r) top[r] = JoinMax::Of(top[r], scores[key][row + r]);
        }
        GPU_UNROLL for (int r = 0; r < kRows; ++r) {
          GPU_OWN(state, t)[r][2] = top[r] == lowest ? C(1) : exp(GPU_OWN(state, t)[r][0] - top[r]);
          GPU_OWN(state, t)[r][0] = top[r];
          if (t % kTeam == 0) needs[row + r] = row0 + row + r < args.queries && !(top[r] > args.causal.enough);
          if (column < kKeys) {
            GPU_UNROLL for (int c = 0; c < kScores; ++c) {
              weights[column + c][row + r] = top[r] == lowest ? C(0) : exp(scores[column + c][row + r] - top[r]);
            }
          }
        }
        const Lines<T> lines = {static_cast<const T*>(args.v) + at.v, args.keys, args.v_row, args.v_column, args.value_size};
        LoadTile<kKeys, kHead>(lines, key0, t, [&](int key, int c, C x) { kv[key * kValuePitch + c] = x; });
      }
      GPU_BARRIER();
      if (key0 + kKeys >= end && end < args.keys && AnyNeeds(needs)) end = args.keys;
      GPU_PHASE(t) {
        const int row = t / kTeam * kRows, column = t % kTeam * kSums;
        C sum[kRows], own[kRows][kSums];
        GPU_UNROLL for (int r = 0; r < kRows; ++r) {
          const C correction = GPU_OWN(state, t)[r][2];
          sum[r] = GPU_OWN(state, t)[r][1] * correction;
          GPU_UNROLL for (int c = 0; c < kSums; ++c) own[r][c] = GPU_OWN(sums, t)[r][c] * correction;
        }
        for (int key = 0; key < kKeys; ++key) {
          GPU_UNROLL for (int r = 0; r < kRows; ++r) {
            const C weight = weights[key][row + r];
            sum[r] += weight;
            GPU_UNROLL for (int c = 0; c < kSums; ++c) own[r][c] += weight * kv[key * kValuePitch + column + c];
          }
        }
        GPU_UNROLL for (int r = 0; r < kRows; ++r) {
          GPU_OWN(state, t)[r][1] = sum[r];
          GPU_UNROLL for (int c = 0; c < kSums; ++c) GPU_OWN(sums, t)[r][c] = own[r][c];
        }
      }
      GPU_BARRIER();
    }
    GPU_PHASE(t) {
      const int64_t query0 = row0 + t / kTeam * kRows;
      GPU_UNROLL for (int r = 0; r < kRows; ++r) {
        if (query0 + r >= args.queries) continue;
        T* y = static_cast<T*>(args.y) + at.y + (query0 + r) * args.y_row;
        GPU_UNROLL for (int c = 0; c < kSums; ++c) {
          const int column = t % kTeam * kSums + c;
          if (column >= args.value_size) continue;
          y[column * args.y_column] = Narrow<T>::Of(GPU_OWN(sums, t)[r][c] / GPU_OWN(state, t)[r][1]);
        }
      }
    }
  }
}

// The kernels attentionHEADxQUERIES_TYPE.
#define GPU_ATTENTION_KERNELS(type, T)                                                                     \
  GPU_PHASED_KERNEL(attention64x64_##type, kAttentionThreads, AttentionArgs, (Attention<T, 64, 64, 32>))   \
  GPU_PHASED_KERNEL(attention64x32_##type, kAttentionThreads, AttentionArgs, (Attention<T, 64, 32, 32>))   \
  GPU_PHASED_KERNEL(attention128x32_##type, kAttentionThreads, AttentionArgs, (Attention<T, 128, 32, 32>)) \
  GPU_PHASED_KERNEL(attention256x16_##type, kAttentionThreads, AttentionArgs, (Attention<T, 256, 16, 16>))

GPU_ATTENTION_KERNELS(f32, float)
GPU_ATTENTION_KERNELS(f16, f16)
GPU_ATTENTION_KERNELS(bf16, bf16)

}  // namespace mge::gpu
