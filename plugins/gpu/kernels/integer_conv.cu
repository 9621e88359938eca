// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit integers over up to three spatial axes, of plain tensors and with the channels last: ConvInteger, with
// int32 results, and QLinearConv. Implicit GEMM (phased): a product of the filter and the windows of the image, which are never
// stored. Direct: one output per thread. Depthwise: neighbouring channels per thread.
#include "plugins/gpu/kernels/integer_windows.h"

namespace mge::gpu {

// The windows of one image of plain tensors as lines: a line per output pixel, k runs over the channels of the group and, for
// each, the taps.
struct PlainWindows {
  using Cells = WordsOfNeighbours;
  struct Line {
    int64_t d, h, w;  // position of the first tap
    bool exists;
  };
  const uint8_t* x;  // the group's first channel of the image
  const WindowAxis* axis;
  int64_t pixels, taps;
  uint32_t signs, padding;

  GPU_DEVICE Line LineAt(int64_t pixel) const {
    const WindowAxis &d = axis[0], &h = axis[1], &w = axis[2];
    const int64_t row = pixel / w.out, slice = row / h.out;
    return {slice * d.stride - d.pad_begin, (row - slice * h.out) * h.stride - h.pad_begin,
            (pixel - row * w.out) * w.stride - w.pad_begin, pixel < pixels};
  }
  GPU_DEVICE Words Load(const Line& line, int64_t k, int64_t depth) const {
    const WindowAxis &d = axis[0], &h = axis[1], &w = axis[2];
    Words words = {};
    if (!line.exists || k >= depth) return words;
    int64_t channel = k / taps, row = (k - channel * taps) / w.kernel;
    int64_t kw = k - channel * taps - row * w.kernel, kd = row / h.kernel, kh = row - kd * h.kernel;
    GPU_UNROLL for (int i = 0; i < 16; ++i) {
      const int64_t id = line.d + kd * d.dilation, ih = line.h + kh * h.dilation, iw = line.w + kw * w.dilation;
      const bool inside = id >= 0 && id < d.in && ih >= 0 && ih < h.in && iw >= 0 && iw < w.in;
      uint32_t byte = 0;
      if (k + i < depth) {
        byte = inside ? x[((channel * d.in + id) * h.in + ih) * w.in + iw] ^ (signs & 0x80) : padding & 0xff;
      }
      words.at[i / 4] |= byte << (8 * (i % 4));
      const bool row_ends = ++kw == w.kernel, slice_ends = row_ends && kh + 1 == h.kernel,
                 channel_ends = slice_ends && kd + 1 == d.kernel;
      kw = row_ends ? 0 : kw;
      kh = slice_ends ? 0 : kh + row_ends;
      kd = channel_ends ? 0 : kd + slice_ends;
      channel += channel_ends;
    }
    return words;
  }
};

// Computes tiles of the product of plain tensors. Rows are outputs of a group, columns are pixels of an image.
template <bool kQuantizes>
GPU_DEVICE void PlainProduct(const IntegerConvArgs& args) {
  using Result = ConvResult<kQuantizes>;
  GPU_INTEGER_TILE(ByteLines, PlainWindows);
  const ConvArgs& shape = args.shape;
  const WindowAxis &d = shape.axis[0], &h = shape.axis[1], &w = shape.axis[2];
  const int64_t channels = shape.channels / shape.groups, outputs = shape.outputs / shape.groups;
  const int64_t taps = d.kernel * h.kernel * w.kernel, depth = channels * taps, pixels = d.out * h.out * w.out;
  const int64_t across = (pixels + kTileColumns - 1) / kTileColumns, down = (outputs + kTileRows - 1) / kTileRows;
  const uint32_t x_signs = SignsOf(args.x_signed), w_signs = SignsOf(args.w_signed);
  for (int64_t u = blockIdx.x; u < across * down * shape.images * shape.groups; u += gridDim.x) {
    const int64_t pixel0 = u % across * kTileColumns, row0 = u / across % down * kTileRows;
    const int64_t group = u / across / down % shape.groups, image = u / across / down / shape.groups;
    const ByteLines filter = {args.w + group * outputs * depth, outputs, depth, w_signs};
    const uint8_t* x = args.x + (image * shape.channels + group * channels) * d.in * h.in * w.in;
    const PlainWindows windows = {x, shape.axis, pixels, taps, x_signs, PaddingOf(args)};
    ComputeIntegerTile(
        GPU_INTEGER_STATES, filter, windows, row0, pixel0, depth, [&](const IntegerSums& sums, int64_t row1, int64_t pixel) {
          for (int i = 0; i < 4 && row1 + i < outputs; ++i) {
            const int64_t output = group * outputs + row1 + i;
            const int32_t zero = WeightZero(args, output);
            Pack<typename Result::type, 4> y;
            GPU_UNROLL for (int j = 0; j < 4; ++j) {
              const int32_t sum = Centred(sums.products[i][j], sums.rows[i], sums.columns[j], zero, PixelZero(args), depth);
              y.at[j] = Result::Of(args, sum, output);
            }
            auto* to = static_cast<typename Result::type*>(args.y);
            StoreNeighbours(to + (image * shape.outputs + output) * pixels + pixel, y, pixels - pixel);
          }
        });
  }
}

// Computes tiles of the product with the channels last. Rows are pixels of all images, columns are outputs of a group. w is
// (outputs, window, channels / groups).
template <bool kQuantizes>
GPU_DEVICE void NhwcProduct(const IntegerConvArgs& args) {
  GPU_INTEGER_TILE(ByteWindows, ByteLines);
  const ConvArgs& shape = args.shape;
  const Windows32 all(shape.axis, shape.images);
  const int64_t outputs = shape.outputs / shape.groups, depth = shape.channels / shape.groups * all.taps();
  const int64_t across = (outputs + kTileColumns - 1) / kTileColumns, down = (all.pixels + kTileRows - 1) / kTileRows;
  for (int64_t u = blockIdx.x; u < across * down * shape.groups; u += gridDim.x) {
    const int64_t column0 = u % across * kTileColumns, row0 = u / across % down * kTileRows, group = u / across / down;
    const ByteWindows windows(args, group);
    const ByteLines filter = {args.w + group * outputs * depth, outputs, depth, SignsOf(args.w_signed)};
    ComputeIntegerTile(GPU_INTEGER_STATES, windows, filter, row0, column0, depth,
                       [&](const IntegerSums& sums, int64_t row1, int64_t column) {
                         for (int i = 0; i < 4 && row1 + i < all.pixels; ++i) {
                           StoreOutputs<kQuantizes>(args, sums.products[i], sums.rows[i], sums.columns, row1 + i,
                                                    group * outputs + column, outputs - column, depth);
                         }
                       });
  }
}

// Returns (x - x_zero) (w - w_zero) of raw bytes, made signed.
GPU_DEVICE uint32_t ProductOf(uint32_t x, uint32_t w, uint32_t x_signs, uint32_t w_signs, int32_t x_zero, int32_t w_zero) {
  const int32_t left = static_cast<int8_t>(x ^ (x_signs & 0x80)), right = static_cast<int8_t>(w ^ (w_signs & 0x80));
  return static_cast<uint32_t>((left - x_zero) * (right - w_zero));
}

// Computes one output per thread. If w is packed, neighbouring outputs are neighbours in it.
template <bool kQuantizes, bool kChannelsLast>
GPU_DEVICE void Direct(const IntegerConvArgs& args) {
  using Result = ConvResult<kQuantizes>;
  const ConvArgs& shape = args.shape;
  const WindowAxis &d = shape.axis[0], &h = shape.axis[1], &w = shape.axis[2];
  const int64_t channels = shape.channels / shape.groups, outputs = shape.outputs / shape.groups;
  const int64_t taps = d.kernel * h.kernel * w.kernel, pixels = d.out * h.out * w.out, volume = d.in * h.in * w.in;
  const int64_t x_step = kChannelsLast ? 1 : volume, pixel_step = kChannelsLast ? shape.channels : 1;
  const int64_t line_step = shape.packed ? 1 : channels * taps, k_step = shape.packed ? shape.outputs : 1;
  const uint32_t x_signs = SignsOf(args.x_signed), w_signs = SignsOf(args.w_signed);
  const int32_t x_zero = PixelZero(args);
  for (int64_t i = GridThread(); i < shape.images * shape.outputs * pixels; i += GridThreads()) {
    const int64_t image = i / (shape.outputs * pixels), rest = i - image * shape.outputs * pixels;
    const int64_t output = kChannelsLast ? rest % shape.outputs : rest / pixels;
    const int64_t pixel = kChannelsLast ? rest / shape.outputs : rest % pixels;
    const int64_t ow = pixel % w.out, oh = pixel / w.out % h.out, od = pixel / w.out / h.out;
    const uint8_t* __restrict__ x = args.x + image * shape.channels * volume + output / outputs * channels * x_step;
    const uint8_t* __restrict__ filter = args.w + output * line_step;
    const int32_t w_zero = WeightZero(args, output);
    uint32_t sum = 0;
    for (int64_t kd = 0; kd < d.kernel; ++kd) {
      for (int64_t kh = 0; kh < h.kernel; ++kh) {
        for (int64_t kw = 0; kw < w.kernel; ++kw) {
          const int64_t id = od * d.stride - d.pad_begin + kd * d.dilation,
                        ih = oh * h.stride - h.pad_begin + kh * h.dilation,
                        iw = ow * w.stride - w.pad_begin + kw * w.dilation;
          if (id < 0 || id >= d.in || ih < 0 || ih >= h.in || iw < 0 || iw >= w.in) continue;
          const uint8_t* from = x + ((id * h.in + ih) * w.in + iw) * pixel_step;
          const uint8_t* weights = filter + ((kd * h.kernel + kh) * w.kernel + kw) * k_step;
          for (int64_t c = 0; c < channels; ++c) {
            sum += ProductOf(from[c * x_step], weights[c * taps * k_step], x_signs, w_signs, x_zero, w_zero);
          }
        }
      }
    }
    static_cast<typename Result::type*>(args.y)[i] = Result::Of(args, static_cast<int32_t>(sum), output);
  }
}

// Computes N neighbouring channels of a pixel per thread. Every channel is a group with one output. w is (window, channels) if
// packed.
template <bool kQuantizes, int N>
GPU_DEVICE void DepthwisePacks(const IntegerConvArgs& args, const Windows32& all) {
  using Result = ConvResult<kQuantizes>;
  const int64_t channels = args.shape.channels, packs = channels / N, taps = all.taps();
  const uint32_t x_signs = SignsOf(args.x_signed), w_signs = SignsOf(args.w_signed);
  const int32_t x_zero = PixelZero(args);
  for (int64_t i = GridThread(); i < packs * all.pixels; i += GridThreads()) {
    const int64_t pixel = i / packs, channel = (i - pixel * packs) * N;
    const WindowPlace place = all.At(static_cast<int32_t>(pixel));
    uint32_t sums[N] = {};
    int32_t zeros[N];
    GPU_UNROLL for (int j = 0; j < N; ++j) zeros[j] = WeightZero(args, channel + j);
    for (int32_t tap = 0; tap < taps; ++tap) {
      const int32_t under = all.PixelUnder(place, tap);
      if (under < 0) continue;
      const auto x = ReadPack<N>(args.x + (under * channels + channel));
      Pack<uint8_t, N> w;
      if (args.shape.packed) {
        w = ReadPack<N>(args.w + (tap * channels + channel));
      } else {
        GPU_UNROLL for (int j = 0; j < N; ++j) w.at[j] = args.w[(channel + j) * taps + tap];
      }
      GPU_UNROLL for (int j = 0; j < N; ++j) sums[j] += ProductOf(x.at[j], w.at[j], x_signs, w_signs, x_zero, zeros[j]);
    }
    Pack<typename Result::type, N> y;
    GPU_UNROLL for (int j = 0; j < N; ++j) y.at[j] = Result::Of(args, static_cast<int32_t>(sums[j]), channel + j);
    WritePack(static_cast<typename Result::type*>(args.y) + pixel * channels + channel, y);
  }
}
template <bool kQuantizes>
GPU_DEVICE void Depthwise(const IntegerConvArgs& args) {
  constexpr int kEach = 4;
  const Windows32 all(args.shape.axis, args.shape.images);
  if (args.shape.channels % kEach == 0 && IsAligned(args.x) && IsAligned(args.w) && IsAligned(args.y)) {
    DepthwisePacks<kQuantizes, kEach>(args, all);
  } else {
    DepthwisePacks<kQuantizes, 1>(args, all);
  }
}

#define GPU_CONVOLUTIONS(name, kQuantizes)                                                       \
  GPU_PHASED_KERNEL(name##_product, kTileThreads, IntegerConvArgs, PlainProduct<kQuantizes>)     \
  GPU_PHASED_KERNEL(name##_nhwc_product, kTileThreads, IntegerConvArgs, NhwcProduct<kQuantizes>) \
  GPU_KERNEL(name##_direct, 256, IntegerConvArgs, (Direct<kQuantizes, false>))                   \
  GPU_KERNEL(name##_nhwc_direct, 256, IntegerConvArgs, (Direct<kQuantizes, true>))               \
  GPU_KERNEL(name##_nhwc_depthwise, 256, IntegerConvArgs, Depthwise<kQuantizes>)

GPU_CONVOLUTIONS(integer_conv, false)
GPU_CONVOLUTIONS(qlinear_conv, true)

}  // namespace mge::gpu
