// SPDX-License-Identifier: Apache-2.0
// Convolutions with the channels last, over up to three spatial axes. Implicit GEMM (phased): a product of the windows of all
// images, which are never stored, and the filter. Direct: one output per thread. Depthwise: neighbouring channels per thread.
#include "plugins/gpu/kernels/nhwc.h"
#include "plugins/gpu/kernels/tile.h"

namespace mge::gpu {

// Computes tiles of the product. Rows are pixels of all images, columns are outputs of a group. kParts: also cuts the sums.
// The loads of a step are in flight while the step before is computed.
template <typename T, bool kParts>
GPU_DEVICE void Product(const ConvArgs& args) {
  using C = Compute<T>;
  constexpr int kEach = 4;  // elements along k that a thread loads at once
  struct Loaded {
    Pack<T, kEach> left, right;
  };
  GPU_SHARED(C, a, [kTileK][kTileRows + kTilePad]);
  GPU_SHARED(C, b, [kTileK][kTileColumns + kTilePad]);
  GPU_STATE(C, sums, kTileThreads, [4][4]);
  GPU_STATE(WindowPlace, places, kTileThreads, [1]);
  GPU_STATE(Loaded, loaded, kTileThreads, [1]);
  const Windows32 all(args.axis, args.images);
  const auto outputs = static_cast<int32_t>(args.outputs / args.groups);
  const auto depth = static_cast<int32_t>(args.channels / args.groups) * all.taps();
  const int64_t across = (outputs + kTileColumns - 1) / kTileColumns, down = (all.pixels + kTileRows - 1) / kTileRows;
  const int32_t splits = kParts ? args.splits : 1, each = ((depth + splits - 1) / splits + kTileK - 1) / kTileK * kTileK;
  const bool in_packs = StoresPacks<kEach>(args);
  for (int64_t u = blockIdx.x; u < across * down * args.groups * splits; u += gridDim.x) {
    const int64_t column0 = u % across * kTileColumns, row0 = u / across % down * kTileRows,
                  group = u / across / down % args.groups, split = u / across / down / args.groups;
    const auto begin = static_cast<int32_t>(split) * each, end = begin + each < depth ? begin + each : depth;
    const WindowLines<T> windows(args, group);
    const FilterLines<T> filter(args, group, all.taps());
    const auto load = [&](const WindowPlace& place, int32_t k0, int t) {
      const int line = t / (kTileK / kEach), k = t % (kTileK / kEach) * kEach;
      return Loaded{windows.template Load<kEach>(place, k0 + k, depth),
                    filter.template Load<kEach>(filter.LineAt(column0 + line), k0 + k, depth)};
    };
    GPU_PHASE(t) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) GPU_OWN(sums, t)[i][j] = C(0);
      }
      GPU_OWN(places, t)[0] = windows.LineAt(row0 + t / (kTileK / kEach));
      GPU_OWN(loaded, t)[0] = load(GPU_OWN(places, t)[0], begin, t);
    }
    for (int32_t k0 = begin; k0 < end; k0 += kTileK) {
      GPU_PHASE(t) {
        const int line = t / (kTileK / kEach), k = t % (kTileK / kEach) * kEach;
        const Loaded& now = GPU_OWN(loaded, t)[0];
        GPU_UNROLL for (int i = 0; i < kEach; ++i) a[k + i][line] = Widen(now.left.at[i]);
        GPU_UNROLL for (int i = 0; i < kEach; ++i) b[k + i][line] = Widen(now.right.at[i]);
      }
      GPU_BARRIER();
      GPU_PHASE(t) {
        if (k0 + kTileK < end) GPU_OWN(loaded, t)[0] = load(GPU_OWN(places, t)[0], k0 + kTileK, t);
        MultiplyTile<C>(GPU_OWN(sums, t), a, b, t);
      }
      GPU_BARRIER();
    }
    GPU_PHASE(t) {
      const int64_t row1 = row0 + t / 16 * 4, column = column0 + t % 16 * 4;
      for (int64_t row = row1; row < row1 + 4 && row < all.pixels; ++row) {
        const int64_t output = group * outputs + column;
        if constexpr (kParts) {
          C* const part = static_cast<C*>(args.y) + (split * all.pixels + row) * args.outputs + output;
          for (int j = 0; j < 4 && column + j < outputs; ++j) part[j] = GPU_OWN(sums, t)[row - row1][j];
        } else {
          StorePack<4, T>(args, GPU_OWN(sums, t)[row - row1], output, row * args.outputs + output, in_packs,
                          outputs - column);
        }
      }
    }
  }
}

// Computes one output per thread. If w is packed, neighbouring outputs are neighbours in it.
template <typename T>
GPU_DEVICE void Direct(const ConvArgs& args) {
  using C = Compute<T>;
  const Windows32 all(args.axis, args.images);
  const int64_t outputs = args.outputs / args.groups, channels = args.channels / args.groups, taps = all.taps();
  const int64_t line_step = args.packed ? 1 : channels * taps, k_step = args.packed ? args.outputs : 1;
  for (int64_t i = GridThread(); i < all.pixels * args.outputs; i += GridThreads()) {
    const int64_t pixel = i / args.outputs, output = i - pixel * args.outputs;
    const T* __restrict__ filter = static_cast<const T*>(args.w) + output * line_step;
    const T* __restrict__ from = static_cast<const T*>(args.x) + output / outputs * channels;
    const WindowPlace place = all.At(static_cast<int32_t>(pixel));
    C sum[1] = {C(0)};
    for (int32_t tap = 0; tap < taps; ++tap) {
      const int32_t under = all.PixelUnder(place, tap);
      if (under < 0) continue;
      const T* x = from + under * args.channels;
      for (int64_t c = 0; c < channels; ++c) sum[0] += Widen(x[c]) * Widen(filter[(c * taps + tap) * k_step]);
    }
    StorePack<1, T>(args, sum, output, i);
  }
}

// Computes N neighbouring channels of a pixel per thread. Every channel is a group with one output. w is (window, channels) if
// packed.
template <typename T, int N>
GPU_DEVICE void DepthwisePacks(const ConvArgs& args, const Windows32& all) {
  using C = Compute<T>;
  const T* __restrict__ from = static_cast<const T*>(args.x);
  const T* __restrict__ filter = static_cast<const T*>(args.w);
  const int64_t packs = args.channels / N, taps = all.taps();
  for (int64_t i = GridThread(); i < packs * all.pixels; i += GridThreads()) {
    const int64_t pixel = i / packs, channel = (i - pixel * packs) * N;
    const WindowPlace place = all.At(static_cast<int32_t>(pixel));
    C sum[N] = {};
    int64_t tap = 0;
    for (int32_t kd = 0; kd < all.d.kernel; ++kd) {
      for (int32_t kh = 0; kh < all.h.kernel; ++kh) {
        for (int32_t kw = 0; kw < all.w.kernel; ++kw, ++tap) {
          const int32_t under = all.PixelUnder(place, kd, kh, kw);
          if (under < 0) continue;
          const auto x = ReadPack<N>(from + (under * args.channels + channel));
          Pack<T, N> w;
          if (args.packed) {
            w = ReadPack<N>(filter + (tap * args.channels + channel));
          } else {
            GPU_UNROLL for (int j = 0; j < N; ++j) w.at[j] = filter[(channel + j) * taps + tap];
          }
          GPU_UNROLL for (int j = 0; j < N; ++j) sum[j] += Widen(x.at[j]) * Widen(w.at[j]);
        }
      }
    }
    StorePack<N, T>(args, sum, channel, pixel * args.channels + channel);
  }
}
template <typename T>
GPU_DEVICE void Depthwise(const ConvArgs& args) {
  const Windows32 all(args.axis, args.images);
  const bool aligned =
      IsAligned(args.x) && IsAligned(args.w) && IsAligned(args.y) && IsAligned(args.bias) && IsAligned(args.residual);
  if (aligned && args.channels % kWidest<T> == 0) {
    DepthwisePacks<T, kWidest<T>>(args, all);
  } else {
    DepthwisePacks<T, 1>(args, all);
  }
}

#define GPU_CONVOLUTIONS(type, T)                                                              \
  GPU_PHASED_KERNEL(conv_nhwc_product_##type, kTileThreads, ConvArgs, (Product<T, false>))     \
  GPU_PHASED_KERNEL(conv_nhwc_product_part_##type, kTileThreads, ConvArgs, (Product<T, true>)) \
  GPU_KERNEL(conv_nhwc_direct_##type, 256, ConvArgs, Direct<T>)                                \
  GPU_KERNEL(conv_nhwc_depthwise_##type, 256, ConvArgs, Depthwise<T>)

GPU_CONVOLUTIONS(f32, float)
GPU_CONVOLUTIONS(f64, double)
GPU_CONVOLUTIONS(f16, f16)
GPU_CONVOLUTIONS(bf16, bf16)

}  // namespace mge::gpu
