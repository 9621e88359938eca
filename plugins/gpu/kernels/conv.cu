// SPDX-License-Identifier: Apache-2.0
// Convolutions in three forms, of plain tensors (conv_nhwc.cu has others). Implicit GEMM (phased, two spatial axes): a product of the filter and the windows of the
// image, which are never stored. Direct: any number of axes, and depthwise. Transposed, also with the channels last.
#include "plugins/gpu/kernels/conv.h"
#include "plugins/gpu/kernels/conv_store.h"
#include "plugins/gpu/kernels/tile.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

// Computes tiles of the product. Rows are outputs of a group, columns are pixels of an image, k runs over the taps of all
// channels of the group.
template <typename T>
GPU_DEVICE void ConvProduct(const ConvArgs& args) {
  using C = Compute<T>;
  GPU_SHARED(C, a, [kTileK][kTileRows + kTilePad]);
  GPU_SHARED(C, b, [kTileK][kTileColumns]);
  GPU_STATE(C, sums, kTileThreads, [4][4]);
  const WindowAxis &h = args.axis[1], &w = args.axis[2];
  const int64_t channels = args.channels / args.groups, outputs = args.outputs / args.groups;
  const int64_t taps = h.kernel * w.kernel, depth = channels * taps, pixels = h.out * w.out;
  const int64_t across = (pixels + kTileColumns - 1) / kTileColumns, down = (outputs + kTileRows - 1) / kTileRows;
  const int64_t units = across * down * args.images * args.groups;
  for (int64_t u = blockIdx.x; u < units; u += gridDim.x) {
    const int64_t pixel0 = u % across * kTileColumns, row0 = u / across % down * kTileRows;
    const int64_t group = u / across / down % args.groups, image = u / across / down / args.groups;
    const T* __restrict__ x = static_cast<const T*>(args.x) + (image * args.channels + group * channels) * h.in * w.in;
    const T* __restrict__ filter = static_cast<const T*>(args.w) + group * outputs * depth;
    GPU_PHASE(t) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) GPU_OWN(sums, t)[i][j] = C(0);
      }
    }
    for (int64_t k0 = 0; k0 < depth; k0 += kTileK) {
      GPU_PHASE(t) {
        GPU_UNROLL for (int i = 0; i < kTileRows * kTileK / kTileThreads; ++i) {
          const int e = t + i * kTileThreads;
          const int row = args.packed ? e % kTileRows : e / kTileK, k = args.packed ? e / kTileRows : e % kTileK;
          const int64_t at = args.packed ? (k0 + k) * outputs + row0 + row : (row0 + row) * depth + k0 + k;
          a[k][row] = row0 + row < outputs && k0 + k < depth ? Widen(filter[at]) : C(0);
        }
        // Each thread loads one pixel.
        const int column = t % kTileColumns;
        const int64_t pixel = pixel0 + column, y0 = pixel / w.out * h.stride - h.pad_begin,
                      x0 = pixel % w.out * w.stride - w.pad_begin;
        GPU_UNROLL for (int i = 0; i < kTileColumns * kTileK / kTileThreads; ++i) {
          const int k = t / kTileColumns + i * (kTileThreads / kTileColumns);
          const int64_t at = k0 + k;
          C v = C(0);
          if (pixel < pixels && at < depth) {
            const int64_t channel = at / taps, tap = at - channel * taps, ky = tap / w.kernel;
            const int64_t iy = y0 + ky * h.dilation, ix = x0 + (tap - ky * w.kernel) * w.dilation;
            if (iy >= 0 && iy < h.in && ix >= 0 && ix < w.in) v = Widen(x[(channel * h.in + iy) * w.in + ix]);
          }
          b[k][column] = v;
        }
      }
      GPU_BARRIER();
      GPU_PHASE(t) MultiplyTile<C>(GPU_OWN(sums, t), a, b, t);
      GPU_BARRIER();
    }
    GPU_PHASE(t) {
      const int64_t row1 = row0 + t / 16 * 4, pixel1 = pixel0 + t % 16 * 4;
      for (int64_t row = row1; row < row1 + 4 && row < outputs; ++row) {
        for (int64_t pixel = pixel1; pixel < pixel1 + 4 && pixel < pixels; ++pixel) {
          const int64_t output = group * outputs + row;
          Store<T>(args, GPU_OWN(sums, t)[row - row1][pixel - pixel1], output,
                   (image * args.outputs + output) * pixels + pixel);
        }
      }
    }
  }
}

// Computes one output per thread.
template <typename T>
GPU_DEVICE void ConvDirect(const ConvArgs& args) {
  using C = Compute<T>;
  const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
  const int64_t channels = args.channels / args.groups, outputs = args.outputs / args.groups;
  const int64_t taps = d.kernel * h.kernel * w.kernel, n = args.images * args.outputs * d.out * h.out * w.out;
  for (int64_t i = GridThread(); i < n; i += GridThreads()) {
    int64_t rest = i / w.out;
    const int64_t ow = i % w.out, oh = rest % h.out, od = rest / h.out % d.out;
    rest = rest / h.out / d.out;
    const int64_t output = rest % args.outputs, image = rest / args.outputs;
    const T* __restrict__ x =
        static_cast<const T*>(args.x) + (image * args.channels + output / outputs * channels) * d.in * h.in * w.in;
    const T* __restrict__ filter = static_cast<const T*>(args.w) + output * channels * taps;
    C sum = 0;
    for (int64_t c = 0; c < channels; ++c, x += d.in * h.in * w.in, filter += taps) {
      for (int64_t kd = 0; kd < d.kernel; ++kd) {
        const int64_t id = od * d.stride - d.pad_begin + kd * d.dilation;
        if (id < 0 || id >= d.in) continue;
        for (int64_t kh = 0; kh < h.kernel; ++kh) {
          const int64_t ih = oh * h.stride - h.pad_begin + kh * h.dilation;
          if (ih < 0 || ih >= h.in) continue;
          for (int64_t kw = 0; kw < w.kernel; ++kw) {
            const int64_t iw = ow * w.stride - w.pad_begin + kw * w.dilation;
            if (iw < 0 || iw >= w.in) continue;
            sum += Widen(x[(id * h.in + ih) * w.in + iw]) * Widen(filter[(kd * h.kernel + kh) * w.kernel + kw]);
          }
        }
      }
    }
    Store<T>(args, sum, output, i);
  }
}

// Finds the input position at tap k of output o. Returns false if there is none.
GPU_DEVICE bool Under(const WindowAxis& a, int64_t o, int64_t k, int64_t* i) {
  const int64_t at = o + a.pad_begin - k * a.dilation;
  *i = at / a.stride;
  return at >= 0 && *i * a.stride == at && *i < a.in;
}

// Computes one output of a transposed convolution per thread. w is (channels, outputs / groups, window), or, if packed,
// (channels, window, outputs / groups).
template <typename T, bool kChannelsLast>
GPU_DEVICE void ConvTransposed(const ConvArgs& args) {
  using C = Compute<T>;
  const WindowAxis &d = args.axis[0], &h = args.axis[1], &w = args.axis[2];
  const int64_t channels = args.channels / args.groups, outputs = args.outputs / args.groups;
  const int64_t taps = d.kernel * h.kernel * w.kernel, pixels = d.out * h.out * w.out, volume = d.in * h.in * w.in;
  const int64_t x_step = kChannelsLast ? 1 : volume, pixel_step = kChannelsLast ? args.channels : 1;
  const int64_t output_step = args.packed ? 1 : taps, tap_step = args.packed ? outputs : 1;
  for (int64_t i = GridThread(); i < args.images * args.outputs * pixels; i += GridThreads()) {
    const int64_t image = i / (args.outputs * pixels), rest = i - image * args.outputs * pixels;
    const int64_t output = kChannelsLast ? rest % args.outputs : rest / pixels;
    const int64_t pixel = kChannelsLast ? rest / args.outputs : rest % pixels, group = output / outputs;
    const int64_t ow = pixel % w.out, oh = pixel / w.out % h.out, od = pixel / w.out / h.out;
    const T* __restrict__ x = static_cast<const T*>(args.x) + image * args.channels * volume + group * channels * x_step;
    const T* __restrict__ filter =
        static_cast<const T*>(args.w) + group * channels * outputs * taps + output % outputs * output_step;
    C sum = 0;
    for (int64_t kd = 0; kd < d.kernel; ++kd) {
      for (int64_t kh = 0; kh < h.kernel; ++kh) {
        for (int64_t kw = 0; kw < w.kernel; ++kw) {
          int64_t id, ih, iw;
          if (!Under(d, od, kd, &id) || !Under(h, oh, kh, &ih) || !Under(w, ow, kw, &iw)) continue;
          const T* from = x + ((id * h.in + ih) * w.in + iw) * pixel_step;
          const T* weights = filter + ((kd * h.kernel + kh) * w.kernel + kw) * tap_step;
          for (int64_t c = 0; c < channels; ++c) sum += Widen(from[c * x_step]) * Widen(weights[c * outputs * taps]);
        }
      }
    }
    Store<T>(args, sum, output, i);
  }
}

#define GPU_CONVOLUTIONS(type, T)                                                \
  GPU_PHASED_KERNEL(conv_product_##type, kTileThreads, ConvArgs, ConvProduct<T>) \
  GPU_KERNEL(conv_direct_##type, 256, ConvArgs, ConvDirect<T>)                   \
  GPU_KERNEL(conv_transposed_##type, 256, ConvArgs, (ConvTransposed<T, false>))  \
  GPU_KERNEL(conv_nhwc_transposed_##type, 256, ConvArgs, (ConvTransposed<T, true>))

GPU_CONVOLUTIONS(f32, float)
GPU_CONVOLUTIONS(f64, double)
GPU_CONVOLUTIONS(f16, f16)
GPU_CONVOLUTIONS(bf16, bf16)

}  // namespace mge::gpu
