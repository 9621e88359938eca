// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. A thread reads and writes neighbouring elements at once.
#include "plugins/gpu/kernels/block_reduce.h"
#include "plugins/gpu/kernels/pack.h"
#include "plugins/gpu/kernels/quantization.h"
#include "plugins/gpu/kernels/quantize.h"
#include "plugins/gpu/kernels/scales.h"

namespace mge::gpu {

// The scale and the zero point of one element after the other. Q is the quantized type.
template <typename Q>
struct Scales {
  const QuantizeArgs& args;
  const bool one;                              // for all elements
  int64_t outer = 0, index = 0, position = 0;  // of the element: along outer, dim and inner
  float scale = 0;
  Q zero = 0;

  GPU_DEVICE explicit Scales(const QuantizeArgs& a) : args(a), one(a.dim == 1 && a.block == 0) {
    if (one && a.n > 0) Read(0);
  }
  GPU_DEVICE void MoveTo(int64_t i) {
    if (one) return;
    if (args.n >> 32 == 0) {
      const auto at = static_cast<uint32_t>(i), inner = static_cast<uint32_t>(args.inner),
                 dim = static_cast<uint32_t>(args.dim), line = at / inner;
      position = at - line * inner;
      outer = line / dim;
      index = line % dim;
    } else {
      const int64_t line = i / args.inner;
      position = i - line * args.inner;
      outer = line / args.dim;
      index = line - outer * args.dim;
    }
    ReadHere();
  }
  GPU_DEVICE void Next() {
    if (one || (++position < args.inner && args.block == 0)) return;
    if (position == args.inner) {
      position = 0;
      if (++index == args.dim) {
        index = 0;
        ++outer;
      }
    }
    ReadHere();
  }

 private:
  GPU_DEVICE void ReadHere() {
    if (args.block == 0) return Read(index);
    const int64_t blocks = (args.dim + args.block - 1) / args.block;
    Read((outer * blocks + index / args.block) * args.inner + position);
  }
  GPU_DEVICE void Read(int64_t i) {
    scale = ScaleAt(args.scale, args.scale_type, i);
    zero = args.zero ? static_cast<const Q*>(args.zero)[i] : Q(0);
  }
};

// Maps elements from `begin` on, in packs of N.
template <int N, typename From, typename To, typename Q, typename Map>
GPU_DEVICE void MapPacks(const QuantizeArgs& args, Scales<Q>& scales, int64_t begin, const Map& map) {
  const From* x = static_cast<const From*>(args.x);
  To* y = static_cast<To*>(args.y);  // may be x or the scales
  for (int64_t i = begin + GridThread() * N; i + N <= args.n; i += GridThreads() * N) {
    const Pack<From, N> in = ReadPack<N>(x + i);
    Pack<To, N> out;
    scales.MoveTo(i);
    GPU_UNROLL for (int j = 0; j < N; ++j) {
      if (j > 0) scales.Next();
      out.at[j] = map(in.at[j], scales.scale, scales.zero);
    }
    WritePack(y + i, out);
  }
}
template <typename From, typename To, typename Q, typename Map>
GPU_DEVICE void MapAll(const QuantizeArgs& args, const Map& map) {
  constexpr int kEach = kWidestAccess / static_cast<int>(sizeof(From) < sizeof(To) ? sizeof(To) : sizeof(From));
  Scales<Q> scales(args);
  int64_t begin = 0;
  if (IsAligned(args.x) && IsAligned(args.y)) {
    MapPacks<kEach, From, To>(args, scales, 0, map);
    begin = args.n / kEach * kEach;
  }
  MapPacks<1, From, To>(args, scales, begin, map);
}

template <typename From, typename Q>
GPU_DEVICE void QuantizeFrom(const QuantizeArgs& args) {
  const int32_t division = args.division;
  MapAll<From, Q, Q>(args, [division](From x, float scale, Q zero) {
    const float wide = static_cast<float>(Widen(x));
    switch (division) {
      case MGE_DTYPE_F16: return Quantized<Q, f16>(wide, scale, zero);
      case MGE_DTYPE_BF16: return Quantized<Q, bf16>(wide, scale, zero);
      default: return Quantized<Q, float>(wide, scale, zero);
    }
  });
}
template <typename Q>
GPU_DEVICE void Quantize(const QuantizeArgs& args) {
  switch (args.type) {
    case MGE_DTYPE_F32: return QuantizeFrom<float, Q>(args);
    case MGE_DTYPE_F16: return QuantizeFrom<f16, Q>(args);
    case MGE_DTYPE_BF16: return QuantizeFrom<bf16, Q>(args);
    case MGE_DTYPE_I32: return QuantizeFrom<int32_t, Q>(args);
  }
}

template <typename Q, typename To>
GPU_DEVICE void DequantizeFrom(const QuantizeArgs& args) {
  MapAll<Q, To, Q>(args, [](Q x, float scale, Q zero) { return Narrow<To>::Of(Dequantized<Q>(x, scale, zero)); });
}
template <typename To>
GPU_DEVICE void Dequantize(const QuantizeArgs& args) {
  switch (args.type) {
    case MGE_DTYPE_U8: return DequantizeFrom<uint8_t, To>(args);
    case MGE_DTYPE_I8: return DequantizeFrom<int8_t, To>(args);
    case MGE_DTYPE_U16: return DequantizeFrom<uint16_t, To>(args);
    case MGE_DTYPE_I16: return DequantizeFrom<int16_t, To>(args);
    case MGE_DTYPE_I32: return DequantizeFrom<int32_t, To>(args);
  }
}

GPU_KERNEL(quantize_to_u8, 256, QuantizeArgs, Quantize<uint8_t>)
GPU_KERNEL(quantize_to_i8, 256, QuantizeArgs, Quantize<int8_t>)
GPU_KERNEL(quantize_to_u16, 256, QuantizeArgs, Quantize<uint16_t>)
GPU_KERNEL(quantize_to_i16, 256, QuantizeArgs, Quantize<int16_t>)
GPU_KERNEL(dequantize_to_f32, 256, QuantizeArgs, Dequantize<float>)
GPU_KERNEL(dequantize_to_f16, 256, QuantizeArgs, Dequantize<f16>)
GPU_KERNEL(dequantize_to_bf16, 256, QuantizeArgs, Dequantize<bf16>)

// The lowest and the highest of 0 and some numbers; NaN is ignored.
struct Range {
  float low = 0, high = 0;

  GPU_DEVICE void Cover(float v) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  // Joins the ranges of the block's threads. All of them get the result.
  GPU_DEVICE void Join(float* part) {
    low = -BlockReduce<JoinMax>(-low, part);
    high = BlockReduce<JoinMax>(high, part);
  }
};

// Writes the range of the elements of each block.
GPU_DEVICE void FindRanges(const DynamicQuantizeArgs& args) {
  constexpr int kEach = kWidest<float>;
  GPU_SHARED(float, part, [32]);
  Range range;
  const int64_t packs = IsAligned(args.x) ? args.n / kEach : 0;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    const auto x = ReadPack<kEach>(args.x + i * kEach);
    GPU_UNROLL for (int j = 0; j < kEach; ++j) range.Cover(x.at[j]);
  }
  for (int64_t i = packs * kEach + GridThread(); i < args.n; i += GridThreads()) range.Cover(args.x[i]);
  range.Join(part);
  if (threadIdx.x == 0) {
    args.ranges[2 * blockIdx.x] = range.low;
    args.ranges[2 * blockIdx.x + 1] = range.high;
  }
}

// Every block joins all ranges, and quantizes some elements.
GPU_DEVICE void QuantizeInRange(const DynamicQuantizeArgs& args) {
  constexpr int kEach = kWidest<float>;
  GPU_SHARED(float, part, [32]);
  Range range;
  for (int64_t i = threadIdx.x; i < args.blocks; i += blockDim.x) {
    range.Cover(args.ranges[2 * i]);
    range.Cover(args.ranges[2 * i + 1]);
  }
  range.Join(part);
  const float scale = range.high == range.low ? 1.0f : (range.high - range.low) / 255.0f;
  const int32_t zero = Saturated<uint8_t>(0.0f - range.low / scale, 0);
  if (GridThread() == 0) {
    if (args.y_scale) *args.y_scale = scale;
    if (args.y_zero) *args.y_zero = static_cast<uint8_t>(zero);
  }
  const int64_t packs = IsAligned(args.x) && IsAligned(args.y) ? args.n / kEach : 0;
  for (int64_t i = GridThread(); i < packs; i += GridThreads()) {
    const auto x = ReadPack<kEach>(args.x + i * kEach);
    Pack<uint8_t, kEach> y;
    GPU_UNROLL for (int j = 0; j < kEach; ++j) y.at[j] = Saturated<uint8_t>(x.at[j] / scale, zero);
    WritePack(args.y + i * kEach, y);
  }
  for (int64_t i = packs * kEach + GridThread(); i < args.n; i += GridThreads()) {
    args.y[i] = Saturated<uint8_t>(args.x[i] / scale, zero);
  }
}

GPU_KERNEL(quantize_ranges, 256, DynamicQuantizeArgs, FindRanges)
GPU_KERNEL(quantize_in_range, 256, DynamicQuantizeArgs, QuantizeInRange)

}  // namespace mge::gpu
