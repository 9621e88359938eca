// SPDX-License-Identifier: Apache-2.0
// Attention of few queries over many keys, as a language model decodes: a warp computes one query over a part of the keys, and
// another kernel joins the parts (as "Flash-Decoding" does, T. Dao et al., 2023). Keys and values are read once for each query.
#include <math.h>

#include "plugins/gpu/kernels/attention_operands.h"
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Returns the floats of a part in memory: its largest score, the sum of its weights, and the weighted sums of the columns.
GPU_DEVICE int64_t PartFloats(const AttentionArgs& args) { return 2 + args.value_size; }

// A thread has the columns lane, lane + warp and so on, of up to kHead ones.
template <typename T, int kHead>
GPU_DEVICE void AttentionParts(const AttentionArgs& args) {
  constexpr int kColumns = kHead / 32;  // enough for warps of 32 threads
  constexpr int kKeys = 4;              // whose loads are in flight together
  const int lane = static_cast<int>(threadIdx.x) % GPU_WARP;
  for (int64_t u = GridThread() / GPU_WARP; u < args.batch * args.queries * args.parts; u += GridThreads() / GPU_WARP) {
    const int64_t row = u / args.parts, part = u - row * args.parts, batch = row / args.queries,
                  query = row - batch * args.queries;
    const AttentionPlaces at = PlacesOf(args, batch);
    const T* q = static_cast<const T*>(args.q) + at.q + query * args.q_row;
    const T* k = static_cast<const T*>(args.k) + at.k;
    const T* v = static_cast<const T*>(args.v) + at.v;
    float own[kColumns], sums[kColumns] = {};
    GPU_UNROLL for (int c = 0; c < kColumns; ++c) {
      const int column = lane + c * GPU_WARP;
      own[c] = column < args.head_size ? args.scale * Widen(q[column * args.q_column]) : 0;
    }
    float top = -INFINITY, total = 0;
    const int64_t begin = part * kPartKeys, end = begin + kPartKeys < args.keys ? begin + kPartKeys : args.keys;
    for (int64_t key0 = begin; key0 < end; key0 += kKeys) {
      float scores[kKeys] = {};
      GPU_UNROLL for (int j = 0; j < kKeys; ++j) {
        GPU_UNROLL for (int c = 0; c < kColumns; ++c) {
          const int column = lane + c * GPU_WARP;
          if (key0 + j < end && column < args.head_size)
            scores[j] += own[c] * Widen(k[(key0 + j) * args.k_row + column * args.k_column]);
        }
      }
      float now = top;
      GPU_UNROLL for (int j = 0; j < kKeys; ++j) {
        scores[j] = WarpReduce<JoinSum>(scores[j]);
        scores[j] = key0 + j < end ? Masked<T>(args, at.mask, scores[j], query, key0 + j) : -INFINITY;
        now = JoinMax::Of(now, scores[j]);
      }
      const float base = now == -INFINITY ? 0 : now;  // no key so far: all weights are 0
      const float correction = expf(top - base);
      total *= correction;
      GPU_UNROLL for (int c = 0; c < kColumns; ++c) sums[c] *= correction;
      GPU_UNROLL for (int j = 0; j < kKeys; ++j) {
        const float weight = expf(scores[j] - base);
        total += weight;
        GPU_UNROLL for (int c = 0; c < kColumns; ++c) {
          const int column = lane + c * GPU_WARP;
          if (key0 + j < end && column < args.value_size)
            sums[c] += weight * Widen(v[(key0 + j) * args.v_row + column * args.v_column]);
        }
      }
      top = now;
    }
    float* to = args.work + u * PartFloats(args);
    if (lane == 0) {
      to[0] = top;
      to[1] = total;
    }
    GPU_UNROLL for (int c = 0; c < kColumns; ++c) {
      const int column = lane + c * GPU_WARP;
      if (column < args.value_size) to[2 + column] = sums[c];
    }
  }
}

// A thread joins one column of a query.
template <typename T>
GPU_DEVICE void JoinAttention(const AttentionArgs& args) {
  for (int64_t i = GridThread(); i < args.batch * args.queries * args.value_size; i += GridThreads()) {
    const int64_t row = i / args.value_size, column = i - row * args.value_size, batch = row / args.queries;
    const float* parts = args.work + row * args.parts * PartFloats(args);
    float top = -INFINITY, total = 0, sum = 0;
    for (int64_t p = 0; p < args.parts; ++p) top = JoinMax::Of(top, parts[p * PartFloats(args)]);
    const float base = top == -INFINITY ? 0 : top;
    for (int64_t p = 0; p < args.parts; ++p) {
      const float* part = parts + p * PartFloats(args);
      const float weight = expf(part[0] - base);
      total += weight * part[1];
      sum += weight * part[2 + column];
    }
    T* y = static_cast<T*>(args.y) + PlacesOf(args, batch).y + (row - batch * args.queries) * args.y_row;
    y[column * args.y_column] = Narrow<T>::Of(sum / total);
  }
}

#define GPU_ATTENTION_PARTS(type, T)                                                           \
  GPU_KERNEL(attention_parts64_##type, kPartThreads, AttentionArgs, (AttentionParts<T, 64>))   \
  GPU_KERNEL(attention_parts128_##type, kPartThreads, AttentionArgs, (AttentionParts<T, 128>)) \
  GPU_KERNEL(attention_parts256_##type, kPartThreads, AttentionArgs, (AttentionParts<T, 256>)) \
  GPU_KERNEL(attention_join_##type, 256, AttentionArgs, JoinAttention<T>)

GPU_ATTENTION_PARTS(f32, float)
GPU_ATTENTION_PARTS(f16, f16)
GPU_ATTENTION_PARTS(bf16, bf16)

}  // namespace mge::gpu
