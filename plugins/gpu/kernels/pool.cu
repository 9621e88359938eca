// SPDX-License-Identifier: Apache-2.0
// MaxPool and AveragePool: one thread per output.
#include <math.h>

#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/port.h"

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

GPU_KERNEL(max_pool_f32, 256, PoolArgs, MaxPool<float>)
GPU_KERNEL(max_pool_f64, 256, PoolArgs, MaxPool<double>)
GPU_KERNEL(max_pool_f16, 256, PoolArgs, MaxPool<f16>)
GPU_KERNEL(max_pool_bf16, 256, PoolArgs, MaxPool<bf16>)
GPU_KERNEL(max_pool_i8, 256, PoolArgs, MaxPool<int8_t>)
GPU_KERNEL(max_pool_u8, 256, PoolArgs, MaxPool<uint8_t>)
GPU_KERNEL(average_pool_f32, 256, PoolArgs, AveragePool<float>)
GPU_KERNEL(average_pool_f64, 256, PoolArgs, AveragePool<double>)
GPU_KERNEL(average_pool_f16, 256, PoolArgs, AveragePool<f16>)
GPU_KERNEL(average_pool_bf16, 256, PoolArgs, AveragePool<bf16>)

}  // namespace mge::gpu
