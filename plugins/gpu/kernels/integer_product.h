// SPDX-License-Identifier: Apache-2.0
// The operands of a product's batch of 8-bit integers, and its epilogue. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/integer_matmul.h"
#include "plugins/gpu/kernels/integer_tile.h"
#include "plugins/gpu/kernels/quantization.h"
#include "plugins/gpu/kernels/scales.h"

namespace mge::gpu {

// The first elements of the operands and parameters of a batch index.
struct IntegerBatch {
  int64_t index, a, b, a_zero, b_zero, a_scale, b_scale;

  GPU_DEVICE IntegerBatch(const IntegerMatMulArgs& args, int64_t batch)
      : index(batch), a(0), b(0), a_zero(0), b_zero(0), a_scale(0), b_scale(0) {
    for (int d = args.batch_rank - 1; d >= 0; --d) {
      const int64_t q = batch / args.batch_dims[d], at = batch - q * args.batch_dims[d];
      a += at * args.a_batch[d];
      b += at * args.b_batch[d];
      a_zero += at * args.a_zero_of.batch[d];
      b_zero += at * args.b_zero_of.batch[d];
      a_scale += at * args.a_scale_of.batch[d];
      b_scale += at * args.b_scale_of.batch[d];
      batch = q;
    }
  }
};

// Stores results.
template <IntegerResult kResult>
class IntegerStore {
  static constexpr bool kQuantizes = kResult == IntegerResult::kQuantized, kScales = kResult == IntegerResult::kReals;

 public:
  GPU_DEVICE IntegerStore(const IntegerMatMulArgs& args, const IntegerBatch& of) : args_(args), of_(of) {
    if (!kQuantizes) return;
    y_scale_ = ScaleAt(args.y_scale, args.scale_type, 0);
    lowest_ = args.y_signed ? -128 : 0;
    zero_ = args.y_signed ? static_cast<int8_t>(*args.y_zero) : *args.y_zero;
  }

  // Stores the first `count` of N neighbours of a row from (row, column) on: the sums of products of bytes, from which the zero
  // points are subtracted with the totals of the lines.
  template <int N>
  GPU_DEVICE void Row(int64_t row, int64_t column, const int32_t (&products)[N], int32_t row_total,
                      const int32_t (&column_totals)[N], int64_t count) const {
    const int32_t row_zero = ZeroAt(args_.a_zero, of_.a_zero + row * args_.a_zero_of.line, SignsOf(args_.a_signed));
    const int64_t place = (of_.index * args_.m + row) * args_.n + column;
    const float row_scale =
        kQuantizes ? ScaleAt(args_.a_scale, args_.scale_type, of_.a_scale + row * args_.a_scale_of.line) : 0;
    Pack<int32_t, N> y = {};
    Pack<uint8_t, N> bytes = {};
    Pack<float, N> reals = {};
    GPU_UNROLL for (int j = 0; j < N; ++j) {
      if (j < count) {
        const int64_t at = column + j;
        const int32_t zero = ZeroAt(args_.b_zero, of_.b_zero + at * args_.b_zero_of.line, SignsOf(args_.b_signed));
        y.at[j] = Centred(products[j], row_total, column_totals[j], row_zero, zero, args_.k);
        if (!kQuantizes && !kScales) continue;
        const float scale = ScaleAt(args_.b_scale, args_.scale_type, of_.b_scale + at * args_.b_scale_of.line);
        const auto sum = static_cast<float>(y.at[j]);
        if (kQuantizes) {
          const float real = sum * (row_scale * scale / y_scale_);
          bytes.at[j] = static_cast<uint8_t>(SaturatedTo(lowest_, lowest_ + 255, real, zero_));
        } else {
          reals.at[j] = sum * scale;
          if (args_.bias) reals.at[j] += args_.bias[at * args_.bias_step];
        }
      }
    }
    if (kQuantizes)
      StoreNeighbours(static_cast<uint8_t*>(args_.y) + place, bytes, count);
    else if (kScales)
      StoreNeighbours(static_cast<float*>(args_.y) + place, reals, count);
    else
      StoreNeighbours(static_cast<int32_t*>(args_.y) + place, y, count);
  }

 private:
  const IntegerMatMulArgs& args_;
  const IntegerBatch of_;
  float y_scale_ = 0;
  int32_t lowest_ = 0, zero_ = 0;
};

}  // namespace mge::gpu
