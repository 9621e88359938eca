// SPDX-License-Identifier: Apache-2.0
// Convolutions over two spatial axes by matrix units, of 16-bit floats and of floats rounded to TF32: the product of the
// filter and the windows of the image, which are never stored (phased).
#include "plugins/gpu/kernels/conv_store.h"
#include "plugins/gpu/kernels/mma_tile.h"

namespace mge::gpu {

#if !defined(__HIP__)  // AMD's matrix units have other instructions

// The windows of an image as a factor: lines are pixels of the output, k runs over the taps of all channels of the group.
template <typename T>
struct Windows {
  using Line = int64_t;
  static constexpr bool along_lines = true;
  const T* data;  // the image's first channel of the group
  WindowAxis h, w;

  GPU_DEVICE Line LineAt(int64_t pixel) const { return pixel; }
  template <int N>
  GPU_DEVICE Pack<T, N> Load(Line pixel, int64_t k, int64_t k_end) const {
    Pack<T, N> v = {};
    if (k >= k_end) return v;
    const int64_t taps = h.kernel * w.kernel, channel = k / taps, tap = k - channel * taps, ky = tap / w.kernel;
    const T* from = data + channel * h.in * w.in;
    const int64_t down = ky * h.dilation - h.pad_begin, across = (tap - ky * w.kernel) * w.dilation - w.pad_begin;
    int64_t oy = pixel / w.out, ox = pixel - oy * w.out;
    GPU_UNROLL for (int i = 0; i < N; ++i) {
      const int64_t iy = oy * h.stride + down, ix = ox * w.stride + across;
      if (oy < h.out && iy >= 0 && iy < h.in && ix >= 0 && ix < w.in) v.at[i] = from[iy * w.in + ix];
      const bool next = ++ox == w.out;
      oy += next;
      ox = next ? 0 : ox;
    }
    return v;
  }
};

template <typename T, typename Tile>
GPU_DEVICE void ConvMma(const ConvArgs& args) {
  GPU_MMA_TILE(T, Tile, Lines<T>, Windows<T>);
  const WindowAxis &h = args.axis[1], &w = args.axis[2];
  const int64_t channels = args.channels / args.groups, outputs = args.outputs / args.groups;
  const int64_t depth = channels * h.kernel * w.kernel, pixels = h.out * w.out;
  const int64_t across = (pixels + Tile::kColumns - 1) / Tile::kColumns, down = (outputs + Tile::kRows - 1) / Tile::kRows;
  const int64_t units = across * down * args.images * args.groups;
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    const int64_t pixel0 = u % across * Tile::kColumns, row0 = u / across % down * Tile::kRows;
    const int64_t group = u / across / down % args.groups, image = u / across / down / args.groups;
    const Lines<T> filter = {static_cast<const T*>(args.w) + group * outputs * depth, outputs, depth, 1, false};
    const Windows<T> windows = {static_cast<const T*>(args.x) + (image * args.channels + group * channels) * h.in * w.in, h,
                                w};
    ComputeMmaTile<T, Tile>(GPU_MMA_STATES, filter, windows, row0, pixel0, depth,
                            [&](const float(&sums_of)[2], int64_t row, int64_t pixel) {
                              GPU_UNROLL for (int i = 0; i < 2; ++i, ++pixel) {
                                if (row >= outputs || pixel >= pixels) return;
                                const int64_t output = group * outputs + row;
                                Store<T>(args, sums_of[i], output, (image * args.outputs + output) * pixels + pixel);
                              }
                            });
  }
}

GPU_MMA_KERNELS(conv_mma, f16, f16, ConvArgs, ConvMma, 1)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
GPU_MMA_KERNELS(conv_mma, bf16, bf16, ConvArgs, ConvMma, 1)
GPU_MMA_KERNELS(conv_mma, f32, float, ConvArgs, ConvMma, 1)
#endif

#endif

}  // namespace mge::gpu
