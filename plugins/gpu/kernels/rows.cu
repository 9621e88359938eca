// SPDX-License-Identifier: Apache-2.0
// Softmax and normalisations of dense rows that fit into the registers of a warp or of a block: each element is read once, by
// the widest access, and written once. norm.cu has rows of any length and place.
#include <math.h>

#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/norm.h"
#include "plugins/gpu/kernels/pack.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// The threads that have one row: a warp, whose values need no shared memory, or a block.
template <bool kIsWarp>
struct RowThreads {
  // Number of this thread among those of the row, their count, the first row, and the distance of rows.
  GPU_DEVICE static int thread() {
    return kIsWarp ? static_cast<int>(threadIdx.x) % GPU_WARP : static_cast<int>(threadIdx.x);
  }
  GPU_DEVICE static int threads() { return kIsWarp ? GPU_WARP : static_cast<int>(blockDim.x); }
  GPU_DEVICE static int64_t first() { return kIsWarp ? GridThread() / GPU_WARP : static_cast<int64_t>(blockIdx.x); }
  GPU_DEVICE static int64_t step() { return kIsWarp ? GridThreads() / GPU_WARP : static_cast<int64_t>(gridDim.x); }
  template <typename Join, typename C>
  GPU_DEVICE static C Reduce(C v, C* part) {
    if constexpr (kIsWarp)
      return WarpReduce<Join>(v);
    else
      return BlockReduce<Join>(v, part);
  }
};

// The elements of a row that one thread has: kRowPacks packs, each `threads` packs behind the one before.
template <typename T>
struct RowPart {
  static constexpr int kEach = kWidest<T>;
  using C = Compute<T>;
  C at[kRowPacks][kEach];

  GPU_DEVICE static bool IsWhole(const T* row, int64_t n) { return n % kEach == 0 && IsAligned(row); }
  // Calls f(value, whether the row has it) for each element.
  template <typename F>
  GPU_DEVICE void ForEach(int64_t n, int thread, int threads, F&& f) {
    GPU_UNROLL for (int p = 0; p < kRowPacks; ++p) {
      const int64_t i = (static_cast<int64_t>(p) * threads + thread) * kEach;
      GPU_UNROLL for (int e = 0; e < kEach; ++e) f(at[p][e], i + e < n);
    }
  }
  // Reads the thread's elements of a row. Elements behind its end are `outside`.
  GPU_DEVICE void Load(const T* row, int64_t n, int thread, int threads, C outside) {
    const bool whole = IsWhole(row, n);
    GPU_UNROLL for (int p = 0; p < kRowPacks; ++p) {
      const int64_t i = (static_cast<int64_t>(p) * threads + thread) * kEach;
      if (whole) {
        if (i < n) {
          const Pack<T, kEach> pack = ReadPack<kEach>(row + i);
          GPU_UNROLL for (int e = 0; e < kEach; ++e) at[p][e] = Widen(pack.at[e]);
        } else {
          GPU_UNROLL for (int e = 0; e < kEach; ++e) at[p][e] = outside;
        }
      } else {
        GPU_UNROLL for (int e = 0; e < kEach; ++e) at[p][e] = i + e < n ? Widen(row[i + e]) : outside;
      }
    }
  }
  GPU_DEVICE void Store(T* row, int64_t n, int thread, int threads) const {
    const bool whole = IsWhole(row, n);
    GPU_UNROLL for (int p = 0; p < kRowPacks; ++p) {
      const int64_t i = (static_cast<int64_t>(p) * threads + thread) * kEach;
      Pack<T, kEach> pack;
      GPU_UNROLL for (int e = 0; e < kEach; ++e) pack.at[e] = Narrow<T>::Of(at[p][e]);
      if (whole) {
        if (i < n) WritePack(row + i, pack);
      } else {
        GPU_UNROLL for (int e = 0; e < kEach; ++e) {
          if (i + e < n) row[i + e] = pack.at[e];
        }
      }
    }
  }
};

template <typename T, bool kIsWarp>
GPU_DEVICE void SoftmaxRows(const SoftmaxArgs& args) {
  using C = Compute<T>;
  using Threads = RowThreads<kIsWarp>;
  GPU_SHARED(C, part, [32]);
  const int thread = Threads::thread(), threads = Threads::threads();
  for (int64_t row = Threads::first(); row < args.rows; row += Threads::step()) {
    RowPart<T> x;
    x.Load(static_cast<const T*>(args.x) + row * args.n, args.n, thread, threads, -C(INFINITY));
    C top = -C(INFINITY), sum = 0;
    x.ForEach(args.n, thread, threads, [&](C v, bool) { top = JoinMax::Of(top, v); });
    top = Threads::template Reduce<JoinMax>(top, part);
    x.ForEach(args.n, thread, threads, [&](C& v, bool inside) {
      const C power = exp(v - top);
      sum += inside ? power : C(0);
      v = args.log ? v - top : power;
    });
    sum = Threads::template Reduce<JoinSum>(sum, part);
    const C log_sum = log(sum), inverse = C(1) / sum;
    x.ForEach(args.n, thread, threads, [&](C& v, bool) { v = args.log ? v - log_sum : v * inverse; });
    x.Store(static_cast<T*>(args.y) + row * args.n, args.n, thread, threads);  // y may be x
  }
}

template <typename T, bool kIsWarp>
GPU_DEVICE void NormRows(const NormArgs& args) {
  using C = Compute<T>;
  using Threads = RowThreads<kIsWarp>;
  GPU_SHARED(C, part, [32]);
  const int thread = Threads::thread(), threads = Threads::threads();
  const T* scale = static_cast<const T*>(args.scale);
  const T* bias = static_cast<const T*>(args.bias);
  const C n = static_cast<C>(args.n);
  for (int64_t row = Threads::first(); row < args.rows; row += Threads::step()) {
    RowPart<T> x, factor;
    x.Load(static_cast<const T*>(args.x) + row * args.n, args.n, thread, threads, C(0));
    C mean = 0, squares = 0;
    if (args.centred) {
      C sum = 0;
      x.ForEach(args.n, thread, threads, [&](C v, bool) { sum += v; });
      mean = Threads::template Reduce<JoinSum>(sum, part) / n;
    }
    x.ForEach(args.n, thread, threads, [&](C& v, bool inside) {
      v -= mean;
      squares += inside ? v * v : C(0);
    });
    const C inv_std = C(1) / sqrt(Threads::template Reduce<JoinSum>(squares, part) / n + static_cast<C>(args.epsilon));
    x.ForEach(args.n, thread, threads, [&](C& v, bool) { v *= inv_std; });
    if (scale) {
      factor.Load(scale, args.n, thread, threads, C(0));
      GPU_UNROLL for (int p = 0; p < kRowPacks; ++p) {
        GPU_UNROLL for (int e = 0; e < RowPart<T>::kEach; ++e) x.at[p][e] *= factor.at[p][e];
      }
    }
    if (bias) {
      factor.Load(bias, args.n, thread, threads, C(0));
      GPU_UNROLL for (int p = 0; p < kRowPacks; ++p) {
        GPU_UNROLL for (int e = 0; e < RowPart<T>::kEach; ++e) x.at[p][e] += factor.at[p][e];
      }
    }
    x.Store(static_cast<T*>(args.y) + row * args.n, args.n, thread, threads);  // y may be x
    if (thread == 0 && args.mean) static_cast<C*>(args.mean)[row] = mean;
    if (thread == 0 && args.inv_std) static_cast<C*>(args.inv_std)[row] = inv_std;
  }
}

#define GPU_ROWS(type, T)                                                           \
  GPU_KERNEL(softmax_warp_##type, kRowThreads, SoftmaxArgs, (SoftmaxRows<T, true>)) \
  GPU_KERNEL(softmax_row_##type, kRowThreads, SoftmaxArgs, (SoftmaxRows<T, false>)) \
  GPU_KERNEL(norm_warp_##type, kRowThreads, NormArgs, (NormRows<T, true>))          \
  GPU_KERNEL(norm_row_##type, kRowThreads, NormArgs, (NormRows<T, false>))

GPU_ROWS(f32, float)
GPU_ROWS(f64, double)
GPU_ROWS(f16, f16)
GPU_ROWS(bf16, bf16)

}  // namespace mge::gpu
