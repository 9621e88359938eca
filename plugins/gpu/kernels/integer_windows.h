// SPDX-License-Identifier: Apache-2.0
// The windows of convolutions of 8-bit integers with the channels last, and the epilogue. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/integer_conv.h"
#include "plugins/gpu/kernels/integer_tile.h"
#include "plugins/gpu/kernels/nhwc.h"
#include "plugins/gpu/kernels/quantization.h"

namespace mge::gpu {

// The epilogue. `sum` is the sum of products of differences from zero points.
template <bool kQuantizes>
struct ConvResult {
  using type = int32_t;
  static GPU_DEVICE int32_t Of(const IntegerConvArgs&, int32_t sum, int64_t) { return sum; }
};
template <>
struct ConvResult<true> {
  using type = uint8_t;
  static GPU_DEVICE uint8_t Of(const IntegerConvArgs& args, int32_t sum, int64_t output) {
    if (args.bias) sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(args.bias[output]));
    const float scale = *args.x_scale * args.w_scale[output * args.w_scale_step] / *args.y_scale;
    const int32_t lowest = args.y_signed ? -128 : 0;
    const int32_t zero = args.y_signed ? static_cast<int8_t>(*args.y_zero) : *args.y_zero;
    return static_cast<uint8_t>(SaturatedTo(lowest, lowest + 255, static_cast<float>(sum) * scale, zero));
  }
};

GPU_DEVICE int32_t WeightZero(const IntegerConvArgs& args, int64_t output) {
  return ZeroAt(args.w_zero, output * args.w_zero_step, SignsOf(args.w_signed));
}
GPU_DEVICE int32_t PixelZero(const IntegerConvArgs& args) { return ZeroAt(args.x_zero, 0, SignsOf(args.x_signed)); }
// Returns the word of four zero points of x, which stands for padding.
GPU_DEVICE uint32_t PaddingOf(const IntegerConvArgs& args) {
  return static_cast<uint32_t>(static_cast<uint8_t>(PixelZero(args))) * 0x01010101u;
}

// The windows of all images with the channels last as lines: a line per output pixel, k runs over the taps and, for each, the
// channels of the group.
struct ByteWindows {
  using Cells = WordsAlongK;
  using Line = WindowPlace;
  const uint8_t* x;  // the group's first channel of the first pixel
  Windows32 windows;
  int32_t channels, stride;  // channels of the group and of a pixel
  uint32_t signs, padding;

  GPU_DEVICE ByteWindows(const IntegerConvArgs& args, int64_t group)
      : x(args.x + group * (args.shape.channels / args.shape.groups)),
        windows(args.shape.axis, args.shape.images),
        channels(static_cast<int32_t>(args.shape.channels / args.shape.groups)),
        stride(static_cast<int32_t>(args.shape.channels)),
        signs(SignsOf(args.x_signed)),
        padding(PaddingOf(args)) {}

  GPU_DEVICE Line LineAt(int64_t pixel) const { return windows.At(static_cast<int32_t>(pixel)); }
  GPU_DEVICE Words Load(const Line& line, int64_t k_wide, int64_t depth_wide) const {
    const auto k = static_cast<int32_t>(k_wide), depth = static_cast<int32_t>(depth_wide);
    Words words = {};
    if (k >= depth) return words;
    if (channels % 16 == 0) return WordsAt<4>(line, k);
    GPU_UNROLL for (int i = 0; i < 4; ++i) {
      if (k + 4 * i < depth)
        words.at[i] = channels % 4 == 0 ? WordsAt<1>(line, k + 4 * i).at[0] : Word(line, k + 4 * i, depth);
    }
    return words;
  }

 private:
  GPU_DEVICE int32_t TapOf(int32_t k) const {
    return static_cast<int32_t>(static_cast<uint32_t>(k) / static_cast<uint32_t>(channels));
  }
  // Returns words of one tap.
  template <int N>
  GPU_DEVICE Pack<uint32_t, N> WordsAt(const Line& line, int32_t k) const {
    const int32_t tap = TapOf(k), pixel = windows.PixelUnder(line, tap);
    Pack<uint32_t, N> words;
    if (pixel >= 0) words = ReadWords<N>(x + (int64_t{pixel} * stride + k - tap * channels));
    GPU_UNROLL for (int i = 0; i < N; ++i) words.at[i] = pixel >= 0 ? words.at[i] ^ signs : padding;
    return words;
  }
  // Returns a word whose bytes may belong to several taps.
  GPU_DEVICE uint32_t Word(const Line& line, int32_t k, int32_t depth) const {
    int32_t tap = TapOf(k), channel = k - tap * channels, pixel = windows.PixelUnder(line, tap);
    uint32_t word = 0;
    for (int i = 0; i < 4 && k + i < depth; ++i) {
      const uint32_t byte = pixel >= 0 ? x[int64_t{pixel} * stride + channel] ^ (signs & 0x80) : padding & 0xff;
      word |= byte << (8 * i);
      if (++channel < channels || k + i + 1 == depth) continue;
      channel = 0;
      pixel = windows.PixelUnder(line, ++tap);
    }
    return word;
  }
};

// Stores the first `count` of N neighbouring outputs of a pixel from `output` on, with the channels last: sums of `depth`
// products of bytes, from which the zero points are subtracted with the totals of the lines.
template <bool kQuantizes, int N>
GPU_DEVICE void StoreOutputs(const IntegerConvArgs& args, const int32_t (&products)[N], int32_t pixel_total,
                             const int32_t (&output_totals)[N], int64_t pixel, int64_t output, int64_t count,
                             int64_t depth) {
  using Result = ConvResult<kQuantizes>;
  Pack<typename Result::type, N> y = {};
  GPU_UNROLL for (int j = 0; j < N; ++j) {
    if (j < count) {
      const int32_t zero = WeightZero(args, output + j);
      const int32_t sum = Centred(products[j], pixel_total, output_totals[j], PixelZero(args), zero, depth);
      y.at[j] = Result::Of(args, sum, output + j);
    }
  }
  StoreNeighbours(static_cast<typename Result::type*>(args.y) + pixel * args.shape.outputs + output, y, count);
}

}  // namespace mge::gpu
