// SPDX-License-Identifier: Apache-2.0
// Reductions over the threads of a block. Included by kernels only.
#pragma once

#include <math.h>

#include "plugins/gpu/port.h"

namespace mge::gpu {

// Sums values; the reduction starts with Start(). The tree of additions is always the same, whatever the order of the
// threads.
struct JoinSum {
  template <typename C>
  static GPU_DEVICE C Start() {
    return C(0);
  }
  template <typename C>
  static GPU_DEVICE C Of(C a, C b) {
    return a + b;
  }
};
// Maximum; NaN if any value is NaN.
struct JoinMax {
  template <typename C>
  static GPU_DEVICE C Start() {
    return -C(INFINITY);
  }
  template <typename C>
  static GPU_DEVICE C Of(C a, C b) {
    return a > b || a != a ? a : b;
  }
};

template <typename Join, typename C>
GPU_DEVICE C WarpReduce(C v) {
  GPU_UNROLL for (int mask = GPU_WARP / 2; mask > 0; mask >>= 1) v = Join::Of(v, ShuffleXor(v, mask));
  return v;
}

#ifdef GPU_EMULATED
// Computes the same tree with a single wait: the last thread to arrive combines the values of all threads.
template <typename Join, typename C>
C WholeBlockReduce(C v, const char* file, int line) {
  static_assert(sizeof(C) <= 8);
  constexpr int kMaxThreads = 1024, kMaxWarp = 64;
  uint64_t* slots = emulation::ReductionSlots();
  memcpy(&slots[emulation::state.linear], &v, sizeof(C));
  if (emulation::LastOfReduction()) {
    const int warp = GPU_WARP, warps = static_cast<int>(blockDim.x * blockDim.y * blockDim.z) / warp;
    C lanes[kMaxWarp], next[kMaxWarp], results[kMaxWarp];
    auto tree = [&] {
      for (int mask = warp / 2; mask > 0; mask >>= 1) {
        for (int i = 0; i < warp; ++i) next[i] = Join::Of(lanes[i], lanes[i ^ mask]);
        memcpy(lanes, next, sizeof(lanes));
      }
      return lanes[0];
    };
    for (int w = 0; w < warps; ++w) {
      for (int i = 0; i < warp; ++i) memcpy(&lanes[i], &slots[w * warp + i], sizeof(C));
      results[w] = tree();
    }
    if (warps > 1) {
      for (int i = 0; i < warp; ++i) lanes[i] = i < warps ? results[i] : Join::template Start<C>();
      results[0] = tree();
    }
    memcpy(&slots[kMaxThreads], &results[0], sizeof(C));
    emulation::FlipReduction();
  }
  emulation::Barrier(file, line);
  memcpy(&v, &slots[kMaxThreads], sizeof(C));
  return v;
}
#endif

// Reduces v over the block. All threads get the result. `part` is shared memory for 32 values; it can be reused after the
// next barrier.
template <typename Join, typename C>
GPU_DEVICE C BlockReduce(C v, C* part) {
#ifdef GPU_EMULATED
  if (emulation::state.whole_reductions) return WholeBlockReduce<Join>(v, __FILE__, __LINE__);
#endif
  const int lane = static_cast<int>(threadIdx.x) % GPU_WARP, warp = static_cast<int>(threadIdx.x) / GPU_WARP;
  const int warps = static_cast<int>(blockDim.x) / GPU_WARP;
  v = WarpReduce<Join>(v);
  if (warps == 1) return v;
  GPU_BARRIER();  // threads may still read the previous result
  if (lane == 0) part[warp] = v;
  GPU_BARRIER();
  v = lane < warps ? part[lane] : Join::template Start<C>();
  return WarpReduce<Join>(v);
}

}  // namespace mge::gpu
