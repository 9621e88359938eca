// SPDX-License-Identifier: Apache-2.0
// Attention by matrix units, of 16-bit floats and of floats rounded to TF32 (phased). It follows T. Dao, "FlashAttention-2"
// (2023): a block computes 64 queries, 16 of them in each of its 4 warps, in one pass over the keys. Queries, scores and
// sums stay in registers. The scores of a warp, once they are weights, are the left factor of its second product as they
// lie. Keys and values are copied to shared memory while the product before them is computed. Registers are enough for 128
// columns of values: more of them are the work of another block, which computes the scores again.
#include <math.h>

#include "plugins/gpu/kernels/attention_operands.h"
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/mma_stage.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

// A matrix in shared memory has rows of vectors of 16 bytes, and one more between them: 8 rows are in different banks.
template <typename T, int kColumns>
struct SharedRow {
  static constexpr int kVectors = kColumns / kEach<T>;
  Vector<T> at[kVectors + 1];
};

// The tile of a block, for heads of up to kHead elements.
template <typename T, int kHead>
struct AttentionTile {
  static constexpr int kThreads = 128, kQueries = 64;
  static constexpr int kColumns = kHead > kAttentionColumns ? kAttentionColumns : kHead;  // of values and of sums
  static constexpr int kKeys = sizeof(T) * kHead > 256 ? 32 : 64;                         // of a step
  using Key = SharedRow<T, kHead>;
  using Value = SharedRow<T, kColumns>;
  // Steps of 8 words along the head, and along the keys of a tile.
  static constexpr int kHeadSteps = kHead * sizeof(T) / 32, kKeySteps = kKeys * sizeof(T) / 32;
  // Shared memory has the queries at first, then keys and values.
  static constexpr int kFirstBytes = kQueries * sizeof(Key), kStepBytes = kKeys * (sizeof(Key) + sizeof(Value));
  static constexpr int kVectors = (kFirstBytes > kStepBytes ? kFirstBytes : kStepBytes) / 16;
};

// Begins to copy rows [row0, row0 + kRows) of a matrix, with zeros outside of it. The rows have `size` elements.
template <typename Tile, int kRows, typename T, typename Row>
GPU_DEVICE void CopyRows(Row* to, const Lines<T>& of, int64_t row0, int64_t size, int thread) {
  const int vector = thread % Row::kVectors;
  const int64_t column = vector * kEach<T>;
  for (int row = thread / Row::kVectors; row < kRows; row += Tile::kThreads / Row::kVectors) {
    if (of.IsWhole(row0 + row, column, size)) {
      CopyAsync(&to[row].at[vector], of.At(row0 + row, column), true, thread);
    } else {
      of.CopyElements(row0 + row, column, size, &to[row].at[vector]);
    }
  }
}

// Loads step k of the fragments of 8 * kAcross keys, which are the columns of the right factor.
template <typename T, int kAcross, typename Key>
GPU_DEVICE void LoadKeys(uint32_t (&b)[kAcross][2], const Key* keys, int k, int lane) {
  const auto at = [&](int block, int l, int vector) { return &keys[block + l].at[vector]; };
  GPU_UNROLL_REGISTERS for (int j = 0; j < kAcross; j += 2) {
    LoadAlongK<kRightFactor>(at, 8 * j, k, lane, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
    RoundFactors<T>(b[j]);
    RoundFactors<T>(b[j + 1]);
  }
}

// Loads step k of the fragments of 8 * kAcross columns of the values, where k runs over keys. Each thread gets the keys
// whose weights it has (WeightsOf).
template <typename T, int kAcross, typename Value>
GPU_DEVICE void LoadValues(uint32_t (&b)[kAcross][2], const Value* values, int k, int lane) {
  if constexpr (sizeof(T) == 4) {
    GPU_UNROLL_REGISTERS for (int j = 0; j < kAcross; ++j) {
      GPU_UNROLL_REGISTERS for (int r = 0; r < 2; ++r) {
        b[j][r] = BitCast<uint32_t>(reinterpret_cast<const float*>(values[8 * k + lane % 4 * 2 + r].at)[8 * j + lane / 4]);
      }
      RoundFactors<T>(b[j]);
    }
  } else {
    const auto at = [&](int block, int l, int vector) { return &values[block + l].at[vector]; };
    GPU_UNROLL_REGISTERS for (int j = 0; j < kAcross; j += 2) {
      LoadAcrossLines<kRightFactor>(at, 8 * j, k, lane, b[j][0], b[j][1], b[j + 1][0], b[j + 1][1]);
    }
  }
}

// Makes step k of the weights, which lie like a result, the left factor. If T is float, a thread has two neighbouring keys
// of a row: they take the places of keys that are 4 apart, in both factors.
template <typename T, int kAcross>
GPU_DEVICE void WeightsOf(uint32_t (&a)[4], const float (&weights)[kAcross][4], int k) {
  GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) {
    if constexpr (sizeof(T) == 4) {
      a[r] = BitCast<uint32_t>(RoundToTf32(weights[k][2 * (r % 2) + r / 2]));
    } else {
      const float(&pair)[4] = weights[2 * k + r / 2];
      a[r] = PackPair<T>(pair[2 * (r % 2)], pair[2 * (r % 2) + 1]);
    }
  }
}

// Stores two neighbouring columns of a row, or only the first one.
template <typename T>
GPU_DEVICE void StorePair(T* y, int64_t stride, bool both, float first, float second) {
  struct alignas(2 * sizeof(T)) Pair {
    T at[2];
  };
  const Pair pair = {{Narrow<T>::Of(first), Narrow<T>::Of(second)}};
  if (both && stride == 1 && reinterpret_cast<uintptr_t>(y) % sizeof(Pair) == 0) {
    *reinterpret_cast<Pair*>(y) = pair;
    return;
  }
  y[0] = pair.at[0];
  if (both) y[stride] = pair.at[1];
}

template <typename T, int kHead>
GPU_DEVICE void AttentionMma(const AttentionArgs& args) {
  using Tile = AttentionTile<T, kHead>;
  constexpr float kLog2e = 1.44269504088896340736f;
  constexpr int kKeys = Tile::kKeys, kColumns = Tile::kColumns;
  GPU_SHARED(Vector<T>, tile, [Tile::kVectors]);
  GPU_STATE(uint32_t, queries, Tile::kThreads, [Tile::kHeadSteps][4]);
  GPU_STATE(uint32_t, a, Tile::kThreads, [1][4]);
  GPU_STATE(uint32_t, keys_b, Tile::kThreads, [kKeys / 8][2]);
  GPU_STATE(uint32_t, values_b, Tile::kThreads, [kColumns / 8][2]);
  GPU_STATE(float, scores, Tile::kThreads, [1][kKeys / 8][4]);  // then weights
  GPU_STATE(float, sums, Tile::kThreads, [1][kColumns / 8][4]);
  // The thread has two rows: row 0 has the registers 0 and 1 of a result, row 1 has 2 and 3.
  GPU_STATE(float, top, Tile::kThreads, [2]);     // largest score so far
  GPU_STATE(float, before, Tile::kThreads, [2]);  // the same before this step
  GPU_STATE(float, total, Tile::kThreads, [2]);   // sum of the thread's weights so far
  GPU_SHARED(int32_t, needs, [Tile::kQueries]);   // whether a query needs the keys that the causal mask excludes
  auto* const query_rows = reinterpret_cast<typename Tile::Key*>(tile);
  auto* const keys = query_rows;
  auto* const values = reinterpret_cast<typename Tile::Value*>(keys + kKeys);
  const int64_t tiles = (args.queries + Tile::kQueries - 1) / Tile::kQueries,
                parts = (args.value_size + kColumns - 1) / kColumns;
  for (int64_t u = blockIdx.x; u < tiles * parts * args.batch; u += gridDim.x) {
    // Causal: the last queries have the most keys, so they begin first.
    const int64_t row0 = (args.causal.kind != kNotCausal ? tiles - 1 - u % tiles : u % tiles) * Tile::kQueries;
    const int64_t column0 = u / tiles % parts * kColumns, columns = args.value_size - column0;
    const AttentionPlaces at = PlacesOf(args, u / tiles / parts);
    const int64_t last = LastKey(args);  // the last key of query i is i + last
    int64_t end = row0 + Tile::kQueries + last < args.keys ? row0 + Tile::kQueries + last : args.keys;
    const Lines<T> q = {static_cast<const T*>(args.q) + at.q, args.queries, args.q_row, args.q_column, false},
                   k = {static_cast<const T*>(args.k) + at.k, args.keys, args.k_row, args.k_column, false},
                   v = {static_cast<const T*>(args.v) + at.v + column0 * args.v_column, args.keys, args.v_row, args.v_column,
                        false};
    GPU_PHASE(t) {
      CopyRows<Tile, Tile::kQueries>(query_rows, q, row0, args.head_size, t);
      AwaitCopies(t);
    }
    GPU_BARRIER();
    GPU_PHASE(t) {
      GPU_UNROLL_REGISTERS for (int step = 0; step < Tile::kHeadSteps; ++step) {
        uint32_t(&to)[4] = GPU_OWN(queries, t)[step];
        const auto place = [&](int block, int l, int vector) { return &query_rows[block + l].at[vector]; };
        LoadAlongK<kLeftFactor>(place, t / 32 * 16, step, t % 32, to[0], to[1], to[2], to[3]);
        RoundFactors<T>(to);
      }
      GPU_UNROLL_REGISTERS for (int r = 0; r < 2; ++r) {
        GPU_OWN(top, t)[r] = -INFINITY;
        GPU_OWN(total, t)[r] = 0;
      }
      GPU_UNROLL_REGISTERS for (int j = 0; j < kColumns / 8; ++j) {
        GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) GPU_OWN(sums, t)[0][j][r] = 0;
      }
    }
    GPU_BARRIER();
    GPU_PHASE(t) CopyRows<Tile, kKeys>(keys, k, 0, args.head_size, t);
    for (int64_t key0 = 0; key0 < end; key0 += kKeys) {
      GPU_PHASE(t) AwaitCopies(t);
      GPU_BARRIER();  // the keys are there, and no thread reads values of the step before any more
      GPU_PHASE(t) {
        CopyRows<Tile, kKeys>(values, v, key0, columns, t);
        GPU_UNROLL_REGISTERS for (int j = 0; j < kKeys / 8; ++j) {
          GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) GPU_OWN(scores, t)[0][j][r] = 0;
        }
      }
      GPU_UNROLL_REGISTERS for (int step = 0; step < Tile::kHeadSteps; ++step) {
        GPU_PHASE(t) {
          GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) GPU_OWN(a, t)[0][r] = GPU_OWN(queries, t)[step][r];
          LoadKeys<T>(GPU_OWN(keys_b, t), keys, step, t % 32);
        }
        GPU_WARP_PHASE(first) {
          GPU_UNROLL_REGISTERS for (int j = 0; j < kKeys / 8; ++j) {
            MultiplyFragments<T, 1, kKeys / 8>(GPU_LANES(scores, first), GPU_LANES(a, first), GPU_LANES(keys_b, first), 0,
                                               j);
          }
        }
      }
      GPU_PHASE(t) {
        const int64_t query = row0 + t / 32 * 16 + t % 32 / 4, key = key0 + t % 4 * 2;
        // Whether all queries use all of the tile's keys, and no mask acts on them.
        const bool all = !args.mask && key0 + kKeys <= args.keys && key0 + kKeys - 1 <= row0 + last;
        GPU_UNROLL_REGISTERS for (int r = 0; r < 2; ++r) GPU_OWN(before, t)[r] = GPU_OWN(top, t)[r];
        GPU_UNROLL_REGISTERS for (int j = 0; j < kKeys / 8; ++j) {
          GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) {
            const int64_t i = query + 8 * (r / 2), at_key = key + 8 * j + r % 2;
            float score = args.scale * GPU_OWN(scores, t)[0][j][r];
            if (!all && i < args.queries && at_key < args.keys) score = Masked<T>(args, at.mask, score, i, at_key);
            if (at_key >= args.keys) score = -INFINITY;
            GPU_OWN(scores, t)[0][j][r] = score;
            GPU_OWN(top, t)[r / 2] = JoinMax::Of(GPU_OWN(top, t)[r / 2], score);
          }
        }
      }
      GPU_WARP_PHASE(first) JoinQuads<JoinMax>(GPU_LANES(top, first));
      GPU_PHASE(t) {
        float base[2];
        GPU_UNROLL_REGISTERS for (int r = 0; r < 2; ++r) {
          const float now = GPU_OWN(top, t)[r];
          const int query = t / 32 * 16 + t % 32 / 4 + 8 * r;
          if (t % 4 == 0) needs[query] = row0 + query < args.queries && !(now > args.causal.enough);
          base[r] = now == -INFINITY ? 0 : now;  // no key so far: all weights are 0
          const float correction = exp2f((GPU_OWN(before, t)[r] - base[r]) * kLog2e);
          GPU_OWN(total, t)[r] *= correction;
          GPU_UNROLL_REGISTERS for (int j = 0; j < kColumns / 8; ++j) {
            GPU_OWN(sums, t)[0][j][2 * r] *= correction;
            GPU_OWN(sums, t)[0][j][2 * r + 1] *= correction;
          }
        }
        GPU_UNROLL_REGISTERS for (int j = 0; j < kKeys / 8; ++j) {
          GPU_UNROLL_REGISTERS for (int r = 0; r < 4; ++r) {
            const float weight = exp2f((GPU_OWN(scores, t)[0][j][r] - base[r / 2]) * kLog2e);
            GPU_OWN(scores, t)[0][j][r] = weight;
            GPU_OWN(total, t)[r / 2] += weight;
          }
        }
        AwaitCopies(t);
      }
      GPU_BARRIER();  // the values are there, and no thread reads keys of this step any more
      if (key0 + kKeys >= end && end < args.keys && AnyNeeds(needs)) end = args.keys;
      GPU_PHASE(t) {
        if (key0 + kKeys < end) CopyRows<Tile, kKeys>(keys, k, key0 + kKeys, args.head_size, t);
      }
      GPU_UNROLL_REGISTERS for (int step = 0; step < Tile::kKeySteps; ++step) {
        GPU_PHASE(t) {
          WeightsOf<T>(GPU_OWN(a, t)[0], GPU_OWN(scores, t)[0], step);
          LoadValues<T>(GPU_OWN(values_b, t), values, step, t % 32);
        }
        GPU_WARP_PHASE(first) {
          GPU_UNROLL_REGISTERS for (int j = 0; j < kColumns / 8; ++j) {
            MultiplyFragments<T, 1, kColumns / 8>(GPU_LANES(sums, first), GPU_LANES(a, first), GPU_LANES(values_b, first), 0,
                                                  j);
          }
        }
      }
    }
    GPU_WARP_PHASE(first) JoinQuads<JoinSum>(GPU_LANES(total, first));
    GPU_PHASE(t) {
      T* y = static_cast<T*>(args.y) + at.y + column0 * args.y_column;
      GPU_UNROLL_REGISTERS for (int r = 0; r < 2; ++r) {
        const int64_t query = row0 + t / 32 * 16 + t % 32 / 4 + 8 * r;
        const float inverse = 1 / GPU_OWN(total, t)[r];
        GPU_UNROLL_REGISTERS for (int j = 0; j < kColumns / 8; ++j) {
          const int column = 8 * j + t % 4 * 2;
          const float* pair = &GPU_OWN(sums, t)[0][j][2 * r];
          if (query < args.queries && column < columns) {
            StorePair(y + query * args.y_row + column * args.y_column, args.y_column, column + 1 < columns,
                      inverse * pair[0], inverse * pair[1]);
          }
        }
      }
    }
    GPU_BARRIER();  // no thread reads values any more
  }
}

// The kernels NAME64_TYPE and NAME128_TYPE: for heads of up to that size. NAME256_TYPE is for 16-bit floats only: the queries
// of floats would need more registers than a thread has.
#define GPU_ATTENTION_KERNELS(type, T)                                                 \
  GPU_PHASED_KERNEL(attention_mma64_##type, 128, AttentionArgs, (AttentionMma<T, 64>)) \
  GPU_PHASED_KERNEL(attention_mma128_##type, 128, AttentionArgs, (AttentionMma<T, 128>))

GPU_ATTENTION_KERNELS(f16, f16)
GPU_PHASED_KERNEL(attention_mma256_f16, 128, AttentionArgs, (AttentionMma<f16, 256>))
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GPU_ATTENTION_KERNELS(bf16, bf16)
GPU_PHASED_KERNEL(attention_mma256_bf16, 128, AttentionArgs, (AttentionMma<bf16, 256>))
GPU_ATTENTION_KERNELS(f32, float)
#endif

#endif

}  // namespace mge::gpu
