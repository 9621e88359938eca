// SPDX-License-Identifier: Apache-2.0
// The operands of a product's batch, and its epilogue. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/activate.h"
#include "plugins/gpu/kernels/matmul.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

struct BatchOffsets {
  int64_t a, b, residual;
};
GPU_DEVICE BatchOffsets OffsetsOf(const MatMulArgs& args, int64_t batch) {
  BatchOffsets o = {0, 0, 0};
  for (int d = args.batch_rank - 1; d >= 0; --d) {
    const int64_t q = batch / args.batch_dims[d], at = batch - q * args.batch_dims[d];
    o.a += at * args.a_batch[d];
    o.b += at * args.b_batch[d];
    o.residual += at * args.residual_batch[d];
    batch = q;
  }
  return o;
}

// The operands of one product of MatMulArgs.
struct ProductPointers {
  const void* a;
  const void* b;
  const void* c;
  const void* bias;
  const void* residual;
  void* y;
  void* before;
};
GPU_DEVICE ProductPointers PointersOf(const MatMulArgs& args) {
  return {args.a, args.b, args.c, args.bias, args.residual, args.y, args.before};
}

// Returns an element of the result: the sum after scaling, start value, bias, residual and activation. `place` is its number in
// the result.
template <typename T, typename C>
GPU_DEVICE T Finished(const MatMulArgs& args, const ProductPointers& of, const BatchOffsets& at, C sum, int64_t row,
                      int64_t column, int64_t place) {
  C v = static_cast<C>(args.alpha) * sum;
  if (of.c) v += static_cast<C>(args.beta) * Widen(static_cast<const T*>(of.c)[row * args.c_row + column * args.c_column]);
  if (of.bias) v += Widen(static_cast<const T*>(of.bias)[column * args.bias_column]);
  if (of.residual) {
    v += Widen(static_cast<const T*>(of.residual)[at.residual + row * args.residual_row + column * args.residual_column]);
  }
  if (of.before) static_cast<T*>(of.before)[place] = Narrow<T>::Of(v);
  return Narrow<T>::Of(Activate(args.activation, v));
}

}  // namespace mge::gpu
