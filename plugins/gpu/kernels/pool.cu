// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool: one output per thread, or, with the channels last, neighbouring channels of a pixel.
#include <math.h>

#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/pack.h"

namespace mge::gpu {

// Calls visit(position in the plane) for every tap inside the input.
template <typename Visit>
GPU_DEVICE void ForTaps(const PoolArgs& args, int64_t od, int64_t oh, int64_t ow, Visit visit) {
  const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
  for (int64_t kd = 0; kd < d.kernel; ++kd) {
    const int64_t id = od * d.stride - d.pad_begin + kd * d.dilation;
    if (id < 0 || id >= d.in) continue;
    for (int64_t kh = 0; kh < h.kernel; ++kh) {
      const int64_t ih = oh * h.stride - h.pad_begin + kh * h.dilation;
      if (ih < 0 || ih >= h.in) continue;
      for (int64_t kw = 0; kw < w.kernel; ++kw) {
        const int64_t iw = ow * w.stride - w.pad_begin + kw * w.dilation;
        if (iw >= 0 && iw < w.in) visit(id, ih, iw);
      }
    }
  }
}

struct Output {
  int64_t plane, d, h, w;
};
GPU_DEVICE Output OutputOf(const PoolArgs& args, int64_t i) {
  const int64_t row = i / args.axis[2].out, slice = row / args.axis[1].out;
  return {slice / args.axis[0].out, slice % args.axis[0].out, row % args.axis[1].out, i % args.axis[2].out};
}

template <typename T>
GPU_DEVICE auto LowestOf() {
  using C = Compute<T>;
  if constexpr (static_cast<C>(0.5) != C(0))
    return -C(INFINITY);
  else
    return static_cast<C>(-1) < C(0) ? static_cast<C>(uint64_t{1} << (8 * sizeof(C) - 1)) : C(0);
}

template <typename T>
GPU_DEVICE void MaxPool(const PoolArgs& args) {
  const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const Output o = OutputOf(args, i);
    const int64_t volume = d.in * h.in * w.in;
    const T* __restrict__ x = static_cast<const T*>(args.x) + o.plane * volume;
    auto best = LowestOf<T>();
    int64_t at = -1;
    ForTaps(args, o.d, o.h, o.w, [&](int64_t id, int64_t ih, int64_t iw) {
      const int64_t place = (id * h.in + ih) * w.in + iw;
      const auto v = Widen(x[place]);
      if (at < 0 || v > best || (v != v && best == best)) {
        best = v;
        at = args.column_major ? (iw * h.in + ih) * d.in + id : place;
      }
    });
    static_cast<T*>(args.y)[i] = Narrow<T>::Of(best);
    if (args.indices) args.indices[i] = o.plane * volume + at;
  }
}

// Returns the number of taps that an average with padding counts. In ceil_mode the last window may extend beyond the
// padding.
GPU_DEVICE int64_t Counted(const WindowAxis& a, int64_t output) {
  const int64_t taps = (a.in + a.pad_end - 1 - (output * a.stride - a.pad_begin)) / a.dilation + 1;
  return taps < a.kernel ? taps : a.kernel;
}

template <typename T>
GPU_DEVICE void AveragePool(const PoolArgs& args) {
  using C = Compute<T>;
  const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const Output o = OutputOf(args, i);
    const T* __restrict__ x = static_cast<const T*>(args.x) + o.plane * d.in * h.in * w.in;
    C sum = 0;
    int64_t count = 0;
    ForTaps(args, o.d, o.h, o.w, [&](int64_t id, int64_t ih, int64_t iw) {
      sum += Widen(x[(id * h.in + ih) * w.in + iw]);
      ++count;
    });
    if (args.count_pads) count = Counted(d, o.d) * Counted(h, o.h) * Counted(w, o.w);
    static_cast<T*>(args.y)[i] = Narrow<T>::Of(count ? sum / static_cast<C>(count) : C(0));
  }
}

template <int N>
struct Width {
  static constexpr int value = N;
};
// Calls run(width) with the number of neighbouring channels that a thread computes.
template <typename T, typename Run>
GPU_DEVICE void InPacks(const PoolArgs& args, Run run) {
  if (args.channels % kWidest<T> == 0 && IsAligned(args.x) && IsAligned(args.y)) {
    run(Width<kWidest<T>>());
  } else {
    run(Width<1>());
  }
}

// The pack of output number i: a pixel, and its first channel.
struct PackedOutput {
  Output at;  // its plane is the image
  int64_t channel;
};
template <int N>
GPU_DEVICE PackedOutput PackOf(const PoolArgs& args, int64_t i) {
  const int64_t packs = args.channels / N, pixel = i / packs;
  return {OutputOf(args, pixel), (i - pixel * packs) * N};
}

template <typename T>
GPU_DEVICE void MaxPoolNhwc(const PoolArgs& args) {
  InPacks<T>(args, [&](auto width) {
    constexpr int N = decltype(width)::value;
    const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
    for (int64_t i = GridThread(); i < args.n / N; i += GridThreads()) {
      const auto [o, channel] = PackOf<N>(args, i);
      const T* __restrict__ x = static_cast<const T*>(args.x) + o.plane * d.in * h.in * w.in * args.channels + channel;
      Compute<T> best[N];
      for (int j = 0; j < N; ++j) best[j] = LowestOf<T>();
      bool first = true;
      ForTaps(args, o.d, o.h, o.w, [&](int64_t id, int64_t ih, int64_t iw) {
        const auto pack = ReadPack<N>(x + ((id * h.in + ih) * w.in + iw) * args.channels);
        GPU_UNROLL for (int j = 0; j < N; ++j) {
          const auto v = Widen(pack.at[j]);
          if (first || v > best[j] || (v != v && best[j] == best[j])) best[j] = v;
        }
        first = false;
      });
      Pack<T, N> y;
      GPU_UNROLL for (int j = 0; j < N; ++j) y.at[j] = Narrow<T>::Of(best[j]);
      WritePack(static_cast<T*>(args.y) + i * N, y);
    }
  });
}

template <typename T>
GPU_DEVICE void AveragePoolNhwc(const PoolArgs& args) {
  InPacks<T>(args, [&](auto width) {
    constexpr int N = decltype(width)::value;
    using C = Compute<T>;
    const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
    for (int64_t i = GridThread(); i < args.n / N; i += GridThreads()) {
      const auto [o, channel] = PackOf<N>(args, i);
      const T* __restrict__ x = static_cast<const T*>(args.x) + o.plane * d.in * h.in * w.in * args.channels + channel;
      C sum[N] = {};
      int64_t count = 0;
      ForTaps(args, o.d, o.h, o.w, [&](int64_t id, int64_t ih, int64_t iw) {
        const auto pack = ReadPack<N>(x + ((id * h.in + ih) * w.in + iw) * args.channels);
        GPU_UNROLL for (int j = 0; j < N; ++j) sum[j] += Widen(pack.at[j]);
        ++count;
      });
      if (args.count_pads) count = Counted(d, o.d) * Counted(h, o.h) * Counted(w, o.w);
      Pack<T, N> y;
      GPU_UNROLL for (int j = 0; j < N; ++j) y.at[j] = Narrow<T>::Of(count ? sum[j] / static_cast<C>(count) : C(0));
      WritePack(static_cast<T*>(args.y) + i * N, y);
    }
  });
}

#define GPU_MAX_POOLS(type, T)                           \
  GPU_KERNEL(max_pool_##type, 256, PoolArgs, MaxPool<T>) \
  GPU_KERNEL(max_pool_nhwc_##type, 256, PoolArgs, MaxPoolNhwc<T>)
#define GPU_AVERAGE_POOLS(type, T)                               \
  GPU_KERNEL(average_pool_##type, 256, PoolArgs, AveragePool<T>) \
  GPU_KERNEL(average_pool_nhwc_##type, 256, PoolArgs, AveragePoolNhwc<T>)

GPU_MAX_POOLS(f32, float)
GPU_MAX_POOLS(f64, double)
GPU_MAX_POOLS(f16, f16)
GPU_MAX_POOLS(bf16, bf16)
GPU_MAX_POOLS(i8, int8_t)
GPU_MAX_POOLS(u8, uint8_t)
GPU_AVERAGE_POOLS(f32, float)
GPU_AVERAGE_POOLS(f64, double)
GPU_AVERAGE_POOLS(f16, f16)
GPU_AVERAGE_POOLS(bf16, bf16)

}  // namespace mge::gpu
