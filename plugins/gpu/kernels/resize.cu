// SPDX-License-Identifier: Apache-2.0
// Resize: nearest by element size; linear and cubic over up to kMaxTaps dimensions that change.
#include <math.h>

#include "plugins/gpu/kernels/resize.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Returns the position of output i in the input, in elements. It may be slightly outside. Computes in F: the nearest element
// depends on the last bit, and is that of float32.
template <typename F>
GPU_DEVICE double PlaceOf(const ResizeAxis& a, int coordinates, int64_t i) {
  const F at = static_cast<F>(i), in = static_cast<F>(a.in), out = static_cast<F>(a.out), scale = static_cast<F>(a.scale);
  F place = (at + F(0.5)) / scale - F(0.5);
  if (coordinates == kPytorchHalfPixel && a.out <= 1) place = 0;
  if (coordinates == kAlignCorners) place = a.out <= 1 ? F(0) : at * (in - 1) / (out - 1);
  if (coordinates == kAsymmetric) place = at / scale;
  if (coordinates == kHalfPixelSymmetric) place = in / 2 * (1 - out / (scale * in)) + (at + F(0.5)) / scale - F(0.5);
  return place < -(in + 1) ? -(in + 1) : place > 2 * (in + 1) ? 2 * (in + 1) : place;
}
GPU_DEVICE int64_t Inside(int64_t i, int64_t size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

template <typename T>
GPU_DEVICE void ResizeNearest(const ResizeArgs& args) {
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    int64_t rest = i, from = 0;
    for (int d = args.rank - 1; d >= 0; --d) {
      const ResizeAxis& a = args.axis[d];
      const int64_t q = rest / a.out, at = rest - q * a.out;
      int64_t place = at;
      if (!a.identical) {
        const double exact = PlaceOf<float>(a, args.coordinates, at), base = floor(exact), fraction = exact - base;
        const bool up = args.mode == kNearestFloor         ? false
                        : args.mode == kNearestCeil        ? fraction > 0
                        : args.mode == kNearestFloorOrCeil ? a.scale < 1 && fraction > 0
                        : args.mode == kNearestPreferCeil  ? fraction >= 0.5
                                                           : fraction > 0.5;
        place = Inside(static_cast<int64_t>(base) + (up ? 1 : 0), a.in);
      }
      from += place * a.stride;
      rest = q;
    }
    y[i] = x[from];
  }
}

// Computes positions and weights of the taps for one output position. Returns their number: 2 (linear) or 4 (cubic).
template <typename C>
GPU_DEVICE int Taps(const ResizeArgs& args, const ResizeAxis& a, int64_t i, int64_t* places, C* weights) {
  const double exact = PlaceOf<double>(a, args.coordinates, i), base = floor(exact);
  const auto low = static_cast<int64_t>(base);
  const C f = static_cast<C>(exact - base);
  if (args.mode == kLinear) {
    places[0] = Inside(low, a.in);
    places[1] = Inside(low + 1, a.in);
    weights[0] = C(1) - f;
    weights[1] = f;
    return 2;
  }
  const C k = static_cast<C>(args.cubic_a);
  C sum = 0;
  for (int t = 0; t < 4; ++t) {
    const int64_t at = low - 1 + t;
    const C s = fabs(f - static_cast<C>(t - 1));
    C w = s <= C(1) ? ((k + C(2)) * s - (k + C(3))) * s * s + C(1) : ((k * s - C(5) * k) * s + C(8) * k) * s - C(4) * k;
    if (args.exclude_outside && (at < 0 || at >= a.in)) w = C(0);
    places[t] = Inside(at, a.in);
    weights[t] = w;
    sum += w;
  }
  if (args.exclude_outside) {
    for (int t = 0; t < 4; ++t) weights[t] /= sum;
  }
  return 4;
}

constexpr int kMaxTaps = 3;

template <typename T>
GPU_DEVICE void ResizeSmooth(const ResizeArgs& args) {
  using C = Compute<T>;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    int64_t rest = i, from = 0, places[kMaxTaps][4] = {};
    C weights[kMaxTaps][4] = {{C(1)}, {C(1)}, {C(1)}};
    int taps[kMaxTaps] = {1, 1, 1}, used = 0;
    for (int d = args.rank - 1; d >= 0; --d) {
      const ResizeAxis& a = args.axis[d];
      const int64_t q = rest / a.out, at = rest - q * a.out;
      if (a.identical) {
        from += at * a.stride;
      } else {
        taps[used] = Taps(args, a, at, places[used], weights[used]);
        for (int t = 0; t < taps[used]; ++t) places[used][t] *= a.stride;
        ++used;
      }
      rest = q;
    }
    C sum = 0;
    for (int r = 0; r < taps[2]; ++r) {
      for (int s = 0; s < taps[1]; ++s) {
        C line = 0;
        for (int t = 0; t < taps[0]; ++t)
          line += weights[0][t] * Widen(x[from + places[2][r] + places[1][s] + places[0][t]]);
        sum += weights[2][r] * weights[1][s] * line;
      }
    }
    y[i] = Narrow<T>::Of(sum);
  }
}

GPU_KERNEL(resize_nearest_1, 256, ResizeArgs, ResizeNearest<uint8_t>)
GPU_KERNEL(resize_nearest_2, 256, ResizeArgs, ResizeNearest<uint16_t>)
GPU_KERNEL(resize_nearest_4, 256, ResizeArgs, ResizeNearest<uint32_t>)
GPU_KERNEL(resize_nearest_8, 256, ResizeArgs, ResizeNearest<uint64_t>)
GPU_KERNEL(resize_smooth_f32, 256, ResizeArgs, ResizeSmooth<float>)
GPU_KERNEL(resize_smooth_f64, 256, ResizeArgs, ResizeSmooth<double>)
GPU_KERNEL(resize_smooth_f16, 256, ResizeArgs, ResizeSmooth<f16>)
GPU_KERNEL(resize_smooth_bf16, 256, ResizeArgs, ResizeSmooth<bf16>)

}  // namespace mge::gpu
