// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool: one output per thread, or, with the channels last, neighbouring channels of a pixel.
#include <math.h>

#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/pack.h"

namespace mge::gpu {

// Calls run(index), whose type indices have: 32 bits where they suffice, since divisions and products of 64 bits take several
// times as long.
template <typename Run>
GPU_DEVICE void WithIndices(const PoolArgs& args, Run run) {
  if (args.narrow) {
    run(int32_t());
  } else {
    run(int64_t());
  }
}

// An axis, and all of them.
template <typename I>
struct PoolAxis {
  I in, out, kernel, stride, dilation, pad;
  GPU_DEVICE explicit PoolAxis(const WindowAxis& a)
      : in(static_cast<I>(a.in)),
        out(static_cast<I>(a.out)),
        kernel(static_cast<I>(a.kernel)),
        stride(static_cast<I>(a.stride)),
        dilation(static_cast<I>(a.dilation)),
        pad(static_cast<I>(a.pad_begin)) {}
};
template <typename I>
struct PoolAxes {
  PoolAxis<I> d, h, w;
  GPU_DEVICE explicit PoolAxes(const PoolArgs& args) : d(args.axis[0]), h(args.axis[1]), w(args.axis[2]) {}
  GPU_DEVICE I volume() const { return d.in * h.in * w.in; }
};

// An output's plane and place.
template <typename I>
struct Output {
  I plane, d, h, w;
};
template <typename I>
GPU_DEVICE Output<I> OutputOf(const PoolAxes<I>& axes, I i) {
  const I row = i / axes.w.out, slice = row / axes.h.out, plane = slice / axes.d.out;
  return {plane, slice - plane * axes.d.out, row - slice * axes.h.out, i - row * axes.w.out};
}

// Calls visit(position in the plane) for every tap inside the input.
template <typename I, typename Visit>
GPU_DEVICE void ForTaps(const PoolAxes<I>& axes, const Output<I>& o, Visit visit) {
  const PoolAxis<I>&d = axes.d, &h = axes.h, &w = axes.w;
  for (I kd = 0; kd < d.kernel; ++kd) {
    const I id = o.d * d.stride - d.pad + kd * d.dilation;
    if (id < 0 || id >= d.in) continue;
    for (I kh = 0; kh < h.kernel; ++kh) {
      const I ih = o.h * h.stride - h.pad + kh * h.dilation;
      if (ih < 0 || ih >= h.in) continue;
      for (I kw = 0; kw < w.kernel; ++kw) {
        const I iw = o.w * w.stride - w.pad + kw * w.dilation;
        if (iw >= 0 && iw < w.in) visit(id, ih, iw);
      }
    }
  }
}

template <typename T>
GPU_DEVICE auto LowestOf() {
  using C = Compute<T>;
  if constexpr (static_cast<C>(0.5) != C(0))
    return -C(INFINITY);
  else
    return static_cast<C>(-1) < C(0) ? static_cast<C>(uint64_t{1} << (8 * sizeof(C) - 1)) : C(0);
}

// Calls run(axes, number of the output, output, its plane of the input) for every output of this thread.
template <typename T, typename Run>
GPU_DEVICE void ForOutputs(const PoolArgs& args, Run run) {
  WithIndices(args, [&](auto zero) {
    using I = decltype(zero);
    const PoolAxes<I> axes(args);
    for (I i = static_cast<I>(GridThread()); i < static_cast<I>(args.n); i += static_cast<I>(GridThreads())) {
      const Output<I> o = OutputOf(axes, i);
      run(axes, i, o, static_cast<const T*>(args.x) + o.plane * axes.volume());
    }
  });
}

template <typename T>
GPU_DEVICE void MaxPool(const PoolArgs& args) {
  ForOutputs<T>(args, [&](const auto& axes, auto i, const auto& o, const T* __restrict__ x) {
    using I = decltype(i);
    auto best = LowestOf<T>();
    I at = -1;
    ForTaps(axes, o, [&](I id, I ih, I iw) {
      const I place = (id * axes.h.in + ih) * axes.w.in + iw;
      const auto v = Widen(x[place]);
      if (at < 0 || v > best || (v != v && best == best)) {
        best = v;
        at = args.column_major ? (iw * axes.h.in + ih) * axes.d.in + id : place;
      }
    });
    static_cast<T*>(args.y)[i] = Narrow<T>::Of(best);
    if (args.indices) args.indices[i] = o.plane * axes.volume() + at;
  });
}

// Returns the number of taps that an average with padding counts. In ceil_mode the last window may extend beyond the
// padding.
GPU_DEVICE int64_t Counted(const WindowAxis& a, int64_t output) {
  const int64_t taps = (a.in + a.pad_end - 1 - (output * a.stride - a.pad_begin)) / a.dilation + 1;
  return taps < a.kernel ? taps : a.kernel;
}

template <typename I>
GPU_DEVICE int64_t CountedIn(const PoolArgs& args, const Output<I>& o) {
  return Counted(args.axis[0], o.d) * Counted(args.axis[1], o.h) * Counted(args.axis[2], o.w);
}

template <typename T>
GPU_DEVICE void AveragePool(const PoolArgs& args) {
  using C = Compute<T>;
  ForOutputs<T>(args, [&](const auto& axes, auto i, const auto& o, const T* __restrict__ x) {
    using I = decltype(i);
    C sum = 0;
    I count = 0;
    ForTaps(axes, o, [&](I id, I ih, I iw) {
      sum += Widen(x[(id * axes.h.in + ih) * axes.w.in + iw]);
      ++count;
    });
    if (args.count_pads) count = static_cast<I>(CountedIn(args, o));
    static_cast<T*>(args.y)[i] = Narrow<T>::Of(count ? sum / static_cast<C>(count) : C(0));
  });
}

template <int N>
struct Width {
  static constexpr int value = N;
};
// Calls run(width, index) with the number of neighbouring channels that a thread computes, and the type of indices.
template <typename T, typename Run>
GPU_DEVICE void InPacks(const PoolArgs& args, Run run) {
  WithIndices(args, [&](auto zero) {
    if (args.channels % kWidest<T> == 0 && IsAligned(args.x) && IsAligned(args.y)) {
      run(Width<kWidest<T>>(), zero);
    } else {
      run(Width<1>(), zero);
    }
  });
}

// The pack of output number i: a pixel, and its first channel.
template <typename I>
struct PackedOutput {
  Output<I> at;  // its plane is the image
  I channel;
};
template <int N, typename I>
GPU_DEVICE PackedOutput<I> PackOf(const PoolArgs& args, const PoolAxes<I>& axes, I i) {
  const I packs = static_cast<I>(args.channels) / N, pixel = i / packs;
  return {OutputOf(axes, pixel), (i - pixel * packs) * N};
}

template <typename T>
GPU_DEVICE void MaxPoolNhwc(const PoolArgs& args) {
  InPacks<T>(args, [&](auto width, auto zero) {
    constexpr int N = decltype(width)::value;
    using I = decltype(zero);
    const PoolAxes<I> axes(args);
    const I channels = static_cast<I>(args.channels);
    for (I i = static_cast<I>(GridThread()); i < static_cast<I>(args.n / N); i += static_cast<I>(GridThreads())) {
      const auto [o, channel] = PackOf<N>(args, axes, i);
      const T* __restrict__ x = static_cast<const T*>(args.x) + o.plane * axes.volume() * channels + channel;
      Compute<T> best[N];
      for (int j = 0; j < N; ++j) best[j] = LowestOf<T>();
      bool first = true;
      ForTaps(axes, o, [&](I id, I ih, I iw) {
        const auto pack = ReadPack<N>(x + ((id * axes.h.in + ih) * axes.w.in + iw) * channels);
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
  InPacks<T>(args, [&](auto width, auto zero) {
    constexpr int N = decltype(width)::value;
    using I = decltype(zero);
    using C = Compute<T>;
    const PoolAxes<I> axes(args);
    const I channels = static_cast<I>(args.channels);
    for (I i = static_cast<I>(GridThread()); i < static_cast<I>(args.n / N); i += static_cast<I>(GridThreads())) {
      const auto [o, channel] = PackOf<N>(args, axes, i);
      const T* __restrict__ x = static_cast<const T*>(args.x) + o.plane * axes.volume() * channels + channel;
      C sum[N] = {};
      I count = 0;
      ForTaps(axes, o, [&](I id, I ih, I iw) {
        const auto pack = ReadPack<N>(x + ((id * axes.h.in + ih) * axes.w.in + iw) * channels);
        GPU_UNROLL for (int j = 0; j < N; ++j) sum[j] += Widen(pack.at[j]);
        ++count;
      });
      if (args.count_pads) count = static_cast<I>(CountedIn(args, o));
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
