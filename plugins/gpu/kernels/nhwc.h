// SPDX-License-Identifier: Apache-2.0
// Convolutions of tensors with the channels last: what they read, and how they store results. Tensors have fewer than 2^31
// elements, so that indices have 32 bits. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/activate.h"
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/pack.h"

namespace mge::gpu {

// An axis of a window in 32 bits.
struct Axis32 {
  int32_t in, out, kernel, stride, dilation, pad;
};
GPU_DEVICE Axis32 Narrowed(const WindowAxis& a) {
  return {static_cast<int32_t>(a.in),     static_cast<int32_t>(a.out),      static_cast<int32_t>(a.kernel),
          static_cast<int32_t>(a.stride), static_cast<int32_t>(a.dilation), static_cast<int32_t>(a.pad_begin)};
}

// The window of one output pixel: the first pixel of its image, and the position of its first tap, which may be padding.
struct WindowPlace {
  int32_t image, d, h, w;
};

// The windows of all images.
struct Windows32 {
  Axis32 d, h, w;
  int32_t pixels;  // of all outputs

  GPU_DEVICE explicit Windows32(const WindowAxis* axis, int64_t images)
      : d(Narrowed(axis[0])),
        h(Narrowed(axis[1])),
        w(Narrowed(axis[2])),
        pixels(static_cast<int32_t>(images * axis[0].out * axis[1].out * axis[2].out)) {}

  // Returns the window of an output pixel. That of a pixel behind the last one is padding.
  GPU_DEVICE WindowPlace At(int32_t pixel) const {
    constexpr int32_t kNowhere = -(1 << 30);
    if (pixel >= pixels) return {0, kNowhere, 0, 0};
    const auto at = static_cast<uint32_t>(pixel), columns = static_cast<uint32_t>(w.out),
               rows = static_cast<uint32_t>(h.out);
    const uint32_t row = at / columns, slice = row / rows, image = slice / static_cast<uint32_t>(d.out);
    const auto od = static_cast<int32_t>(slice - image * static_cast<uint32_t>(d.out)),
               oh = static_cast<int32_t>(row - slice * rows), ow = static_cast<int32_t>(at - row * columns);
    return {static_cast<int32_t>(image) * d.in * h.in * w.in, od * d.stride - d.pad, oh * h.stride - h.pad,
            ow * w.stride - w.pad};
  }
  GPU_DEVICE int32_t taps() const { return d.kernel * h.kernel * w.kernel; }
  // Returns the input pixel under tap (kd, kh, kw), or -1 for padding.
  GPU_DEVICE int32_t PixelUnder(const WindowPlace& p, int32_t kd, int32_t kh, int32_t kw) const {
    const int32_t id = p.d + kd * d.dilation, ih = p.h + kh * h.dilation, iw = p.w + kw * w.dilation;
    const bool inside = static_cast<uint32_t>(id) < static_cast<uint32_t>(d.in) &&
                        static_cast<uint32_t>(ih) < static_cast<uint32_t>(h.in) &&
                        static_cast<uint32_t>(iw) < static_cast<uint32_t>(w.in);
    return inside ? p.image + (id * h.in + ih) * w.in + iw : -1;
  }
  GPU_DEVICE int32_t PixelUnder(const WindowPlace& p, int32_t tap) const {
    if (tap == 0) return PixelUnder(p, 0, 0, 0);
    const auto at = static_cast<uint32_t>(tap), columns = static_cast<uint32_t>(w.kernel), row = at / columns;
    if (d.kernel == 1) return PixelUnder(p, 0, static_cast<int32_t>(row), static_cast<int32_t>(at - row * columns));
    const uint32_t rows = static_cast<uint32_t>(h.kernel), slice = row / rows;
    return PixelUnder(p, static_cast<int32_t>(slice), static_cast<int32_t>(row - slice * rows),
                      static_cast<int32_t>(at - row * columns));
  }
};

// Reads N elements, with one access if the address is `aligned`.
template <int N, typename T>
GPU_DEVICE Pack<T, N> ReadNeighbours(const T* from, bool aligned) {
  if (aligned) return ReadPack<N>(from);
  Pack<T, N> v;
  GPU_UNROLL for (int i = 0; i < N; ++i) v.at[i] = from[i];
  return v;
}

// The windows as lines of a matrix for one group: a line per output pixel, k runs over the taps and, for each, the channels.
// If kWhole, the channels of a group are a multiple of the elements that Load() returns.
template <typename T, bool kWhole = false>
struct WindowLines {
  using Line = WindowPlace;
  static constexpr bool along_lines = false;
  const T* x;  // the group's first channel of the first pixel
  Windows32 windows;
  int32_t channels, stride;  // channels of the group and of a pixel
  bool aligned;

  GPU_DEVICE WindowLines(const ConvArgs& args, int64_t group)
      : x(static_cast<const T*>(args.x) + group * (args.channels / args.groups)),
        windows(args.axis, args.images),
        channels(static_cast<int32_t>(args.channels / args.groups)),
        stride(static_cast<int32_t>(args.channels)),
        aligned(IsAligned(args.x)) {}

  GPU_DEVICE Line LineAt(int64_t pixel) const { return windows.At(static_cast<int32_t>(pixel)); }

  // Returns N elements of a line from k on, which is a multiple of N; zeros for padding and from `depth` on.
  template <int N>
  GPU_DEVICE Pack<T, N> Load(const Line& line, int64_t k_wide, int64_t depth_wide) const {
    const auto k = static_cast<int32_t>(k_wide), depth = static_cast<int32_t>(depth_wide);
    Pack<T, N> v = {};
    if (k >= depth) return v;
    const int32_t tap =
        depth == channels ? 0 : static_cast<int32_t>(static_cast<uint32_t>(k) / static_cast<uint32_t>(channels));
    if (kWhole || channels % N == 0) {
      const int32_t pixel = windows.PixelUnder(line, tap);
      return pixel < 0 ? v : ReadNeighbours<N>(x + (int64_t{pixel} * stride + k - tap * channels), aligned);
    }
    Pack<T, N> each = {};
    if constexpr (!kWhole) LoadEach(line, k, depth, tap, each.at, N);
    return each;
  }

 private:
  // Loads n elements, which may belong to several taps.
  GPU_DEVICE void LoadEach(const Line& line, int32_t k, int32_t depth, int32_t tap, T* to, int n) const {
    int32_t channel = k - tap * channels, pixel = windows.PixelUnder(line, tap);
    for (int i = 0; i < n && k + i < depth; ++i) {
      if (pixel >= 0) to[i] = x[int64_t{pixel} * stride + channel];
      if (++channel < channels || k + i + 1 == depth) continue;
      channel = 0;
      pixel = windows.PixelUnder(line, ++tap);
    }
  }
};

// The filter as lines of a matrix for one group: a line per output, k and kWhole as for WindowLines.
template <typename T, bool kWhole = false>
struct FilterLines {
  using Line = int32_t;
  static constexpr bool along_lines = false;
  const T* w;
  int32_t lines, channels, taps;
  bool packed, aligned;

  GPU_DEVICE FilterLines(const ConvArgs& args, int64_t group, int32_t window_taps)
      : lines(static_cast<int32_t>(args.outputs / args.groups)),
        channels(static_cast<int32_t>(args.channels / args.groups)),
        taps(window_taps),
        packed(args.packed),
        aligned(IsAligned(args.w)) {
    w = static_cast<const T*>(args.w) + group * lines * channels * taps;
  }

  GPU_DEVICE Line LineAt(int64_t line) const { return static_cast<int32_t>(line); }
  template <int N>
  GPU_DEVICE Pack<T, N> Load(const Line& line, int64_t k_wide, int64_t depth_wide) const {
    const auto k = static_cast<int32_t>(k_wide), depth = static_cast<int32_t>(depth_wide);
    Pack<T, N> v = {};
    if (line >= lines || k >= depth) return v;
    const T* from = w + int64_t{line} * depth;
    if (packed && (kWhole || depth % N == 0)) return ReadNeighbours<N>(from + k, aligned);
    Pack<T, N> each = {};
    for (int i = 0; i < N && k + i < depth; ++i) {
      const int32_t tap = (k + i) / channels, channel = k + i - tap * channels;
      each.at[i] = from[packed ? k + i : channel * taps + tap];
    }
    return each;
  }
};

// Stores the first `count` of N neighbouring results from place `place` on, those of the outputs from `output` on: the sums
// after bias, residual and activation. If `in_packs`, N > 1 results are read and written at once.
template <int N, typename T, typename C>
GPU_DEVICE void StorePack(const ConvArgs& args, C (&sum)[N], int64_t output, int64_t place, bool in_packs = true,
                          int64_t count = N) {
  const T* bias = static_cast<const T*>(args.bias);
  const T* residual = static_cast<const T*>(args.residual);
  T* y = static_cast<T*>(args.y) + place;
  const bool whole = in_packs && count >= N;
  Pack<T, N> pack = {};
  if (residual && whole) pack = ReadPack<N>(residual + place);
  GPU_UNROLL for (int i = 0; i < N; ++i) {
    if (i >= count) break;
    if (bias) sum[i] += Widen(bias[output + i]);
    if (residual) sum[i] += Widen(whole ? pack.at[i] : residual[place + i]);
    sum[i] = Activate(args.activation, sum[i]);
    if (!whole) y[i] = Narrow<T>::Of(sum[i]);
    pack.at[i] = Narrow<T>::Of(sum[i]);
  }
  if (whole) WritePack(y, pack);
}
// Returns whether StorePack() may read and write N results at once.
template <int N>
GPU_DEVICE bool StoresPacks(const ConvArgs& args) {
  return args.outputs / args.groups % N == 0 && IsAligned(args.y) && IsAligned(args.residual);
}

}  // namespace mge::gpu
