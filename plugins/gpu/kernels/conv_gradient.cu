// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution by its filter (phased): a product of y and the windows of x, which are never stored.
#include "plugins/gpu/kernels/conv_gradient.h"
#include "plugins/gpu/kernels/nhwc.h"
#include "plugins/gpu/kernels/tile.h"

namespace mge::gpu {

// A column of the product: a tap of a channel. The offsets are those of its elements in a window.
struct Tap {
  int32_t channel;  // of all groups; -1: behind the last column
  int32_t d, h, w;
};

// Computes tiles. Rows are outputs of a group, columns are taps of the group's channels, k runs over the pixels of all images.
// kParts: also cuts k. Indices fit in 32 bits.
template <typename T, bool kParts>
GPU_DEVICE void WeightGradient(const ConvGradientArgs& args) {
  using C = Compute<T>;
  constexpr int kEach = 4, kLines = kTileThreads / kTileK;  // a thread loads every kLines-th of kEach lines at one k
  GPU_SHARED(C, a, [kTileK][kTileRows + kTilePad]);
  GPU_SHARED(C, b, [kTileK][kTileColumns + kTilePad]);
  GPU_STATE(C, sums, kTileThreads, [4][4]);
  GPU_STATE(Tap, taps, kTileThreads, [kEach]);
  const Windows32 all(args.axis, args.images);
  const int32_t volume = all.d.in * all.h.in * all.w.in, pixels = all.pixels / static_cast<int32_t>(args.images);
  const auto channels = static_cast<int32_t>(args.channels / args.groups),
             outputs = static_cast<int32_t>(args.outputs / args.groups);
  const int32_t columns = channels * all.taps(), splits = kParts ? static_cast<int32_t>(args.splits) : 1;
  const int32_t each = ((all.pixels + splits - 1) / splits + kTileK - 1) / kTileK * kTileK;
  const int64_t across = (columns + kTileColumns - 1) / kTileColumns, down = (outputs + kTileRows - 1) / kTileRows;
  const T* __restrict__ x = static_cast<const T*>(args.x);
  const T* __restrict__ y = static_cast<const T*>(args.y);
  for (int64_t u = blockIdx.x; u < across * down * args.groups * splits; u += gridDim.x) {
    const auto column0 = static_cast<int32_t>(u % across * kTileColumns),
               row0 = static_cast<int32_t>(u / across % down * kTileRows);
    const auto group = static_cast<int32_t>(u / across / down % args.groups),
               split = static_cast<int32_t>(u / across / down / args.groups);
    const int32_t begin = split * each, end = begin + each < all.pixels ? begin + each : all.pixels;
    GPU_PHASE(t) {
      GPU_UNROLL for (int i = 0; i < 4; ++i) { GPU_UNROLL for (int j = 0; j < 4; ++j) GPU_OWN(sums, t)[i][j] = C(0); }
      GPU_UNROLL for (int i = 0; i < kEach; ++i) {
        const int32_t column = column0 + t / kTileK + i * kLines, channel = column / all.taps(),
                      tap = column - channel * all.taps(), line = tap / all.w.kernel;
        GPU_OWN(taps, t)
        [i] = {column < columns ? group * channels + channel : -1, line / all.h.kernel * all.d.dilation,
               line % all.h.kernel * all.h.dilation, tap % all.w.kernel * all.w.dilation};
      }
    }
    for (int32_t k0 = begin; k0 < end; k0 += kTileK) {
      GPU_PHASE(t) {
        const int32_t k = t % kTileK, line = t / kTileK, at = k0 + k, image = at / pixels;
        const WindowPlace place = all.At(at);
        const int64_t y_at = image * args.outputs * pixels + at - image * pixels, x_at = image * args.channels * volume;
        GPU_UNROLL for (int i = 0; i < kEach; ++i) {
          const int32_t row = row0 + line + i * kLines;
          a[k][line + i * kLines] =
              at < end && row < outputs ? Widen(y[y_at + (group * outputs + row) * static_cast<int64_t>(pixels)]) : C(0);
          const Tap& tap = GPU_OWN(taps, t)[i];
          const int32_t id = place.d + tap.d, ih = place.h + tap.h, iw = place.w + tap.w;
          const bool inside = at < end && tap.channel >= 0 && static_cast<uint32_t>(id) < static_cast<uint32_t>(all.d.in) &&
                              static_cast<uint32_t>(ih) < static_cast<uint32_t>(all.h.in) &&
                              static_cast<uint32_t>(iw) < static_cast<uint32_t>(all.w.in);
          const int32_t in_image = tap.channel * volume + (id * all.h.in + ih) * all.w.in + iw;
          b[k][line + i * kLines] = inside ? Widen(x[x_at + in_image]) : C(0);
        }
      }
      GPU_BARRIER();
      GPU_PHASE(t) MultiplyTile<C>(GPU_OWN(sums, t), a, b, t);
      GPU_BARRIER();
    }
    GPU_PHASE(t) {
      const int32_t row1 = row0 + t / 16 * 4, column1 = column0 + t % 16 * 4;
      for (int32_t row = row1; row < row1 + 4 && row < outputs; ++row) {
        for (int32_t column = column1; column < column1 + 4 && column < columns; ++column) {
          const int64_t place = (split * args.outputs + group * outputs + row) * columns + column;
          const C sum = GPU_OWN(sums, t)[row - row1][column - column1];
          if constexpr (kParts) {
            static_cast<C*>(args.w)[place] = sum;
          } else {
            static_cast<T*>(args.w)[place] = Narrow<T>::Of(sum);
          }
        }
      }
    }
  }
}

#define GPU_WEIGHT_GRADIENTS(type, T)                                                                        \
  GPU_PHASED_KERNEL(conv_weight_gradient_##type, kTileThreads, ConvGradientArgs, (WeightGradient<T, false>)) \
  GPU_PHASED_KERNEL(conv_weight_gradient_part_##type, kTileThreads, ConvGradientArgs, (WeightGradient<T, true>))

GPU_WEIGHT_GRADIENTS(f32, float)
GPU_WEIGHT_GRADIENTS(f64, double)
GPU_WEIGHT_GRADIENTS(f16, f16)
GPU_WEIGHT_GRADIENTS(bf16, bf16)

}  // namespace mge::gpu
