// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND, OneHot and Trilu, by element size.
#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/kernels/fault.h"
#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T>
GPU_DEVICE void Gather(const GatherArgs& args) {
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const auto [u, in_piece] = Divide(i, args.piece);
    int64_t from;
    if (args.tuple < 0) {
      const auto [outer, index] = Divide(u, args.m);
      const int64_t at = CheckedIndex(args.fault, IndexAt(args.indices, args.wide, index), args.bound);
      from = (outer * args.bound + at) * args.piece.value;
    } else {
      from = Divide(u, args.per_batch).quotient * args.batch_stride;
      for (int k = 0; k < args.tuple; ++k) {
        from +=
            CheckedIndex(args.fault, IndexAt(args.indices, args.wide, u * args.tuple + k), args.dims[k]) * args.strides[k];
      }
    }
    y[i] = x[from + in_piece];
  }
}

template <typename T>
GPU_DEVICE void GatherElements(const GatherElementsArgs& args) {
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    int64_t rest = i,
            from = CheckedIndex(args.fault, IndexAt(args.indices, args.wide, i), args.bound) * args.strides[args.axis];
    for (int d = args.rank - 1; d >= 0; --d) {
      const Division at = Divide(rest, args.dims[d]);
      if (d != args.axis) from += at.rest * args.strides[d];
      rest = at.quotient;
    }
    y[i] = x[from];
  }
}

template <typename T>
GPU_DEVICE void OneHot(const OneHotArgs& args) {
  const T* __restrict__ values = static_cast<const T*>(args.values);
  T* __restrict__ y = static_cast<T*>(args.y);
  GPU_ROLLED for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const Division inner = Divide(i, args.inner), outer = Divide(inner.quotient, args.depth);
    const int64_t depth = outer.rest;
    int64_t at = IndexAt(args.indices, args.wide, outer.quotient * args.inner.value + inner.rest);
    if (at < 0) at += args.depth.value;  // out of range: ONNX defines the "off" value everywhere
    y[i] = values[at == depth ? 1 : 0];
  }
}

template <typename T>
GPU_DEVICE void Trilu(const TriluArgs& args) {
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);  // may be x
  const int64_t k = args.k ? *args.k : 0;
  GPU_ROLLED for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    const Division column_of = Divide(i, args.columns);
    const int64_t column = column_of.rest, row = Divide(column_of.quotient, args.rows).rest;
    const bool keep = args.upper ? column - row >= k : column - row <= k;
    y[i] = keep ? x[i] : T(0);
  }
}

#define GPU_SIZES(name, Args, Function)               \
  GPU_KERNEL(name##_1, 256, Args, Function<uint8_t>)  \
  GPU_KERNEL(name##_2, 256, Args, Function<uint16_t>) \
  GPU_KERNEL(name##_4, 256, Args, Function<uint32_t>) \
  GPU_KERNEL(name##_8, 256, Args, Function<uint64_t>)

GPU_SIZES(gather, GatherArgs, Gather)
GPU_SIZES(gather_elements, GatherElementsArgs, GatherElements)
GPU_SIZES(one_hot, OneHotArgs, OneHot)
GPU_SIZES(trilu, TriluArgs, Trilu)

}  // namespace mge::gpu
