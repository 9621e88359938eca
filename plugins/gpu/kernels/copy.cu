// SPDX-License-Identifier: Apache-2.0
// Moves elements: strided copies, transposes through a tile, pads that repeat the input.
#include "plugins/gpu/kernels/copy.h"
#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T>
GPU_DEVICE void Copy(const CopyArgs& args) {
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  GPU_ROLLED for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    int64_t rest = i, from = 0, to = 0;
    for (int d = args.rank - 1; d >= 0; --d) {
      const Division at = Divide(rest, args.dims[d]);
      from += at.rest * args.x_strides[d];
      to += at.rest * args.y_strides[d];
      rest = at.quotient;
    }
    y[to] = x[from];
  }
}

template <typename T>
GPU_DEVICE void Fill(const FillArgs& args) {
  T* __restrict__ y = static_cast<T*>(args.y);
  GPU_ROLLED for (int64_t i = GridThread(); i < args.n; i += GridThreads()) y[i] = static_cast<T>(args.bits);
}

// Transposes tiles of 32 x 32 with blocks of 256 threads, so that both sides are accessed by whole lines.
template <typename T>
GPU_DEVICE void Transpose(const TransposeArgs& args) {
  GPU_SHARED(T, tile, [32][33]);
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  const int64_t tiles = args.batch * args.down.value * args.across.value;
  for (int64_t u = blockIdx.x; u < tiles; u += gridDim.x) {
    const Division across = Divide(u, args.across), down = Divide(across.quotient, args.down);
    const int64_t column0 = across.rest * 32, row0 = down.rest * 32, base = down.quotient * args.rows * args.columns;
    GPU_PHASE(t) {
      const int64_t column = column0 + t % 32;
      for (int j = t / 32; j < 32; j += 8) {
        if (column < args.columns && row0 + j < args.rows) tile[j][t % 32] = x[base + (row0 + j) * args.columns + column];
      }
    }
    GPU_BARRIER();
    GPU_PHASE(t) {
      const int64_t row = row0 + t % 32;
      for (int j = t / 32; j < 32; j += 8) {
        if (row < args.rows && column0 + j < args.columns) y[base + (column0 + j) * args.rows + row] = tile[t % 32][j];
      }
    }
    GPU_BARRIER();
  }
}

// Returns the place of x that place `at` of y repeats in dimension d.
GPU_DEVICE int64_t PlaceOf(const PlacesArgs& args, int d, int64_t at) {
  const int64_t i = at - args.before[d], size = args.in[d];
  if (args.mode == 0 || size == 1) return i < 0 ? 0 : i >= size ? size - 1 : i;
  const int64_t r = Divide(i + args.turns[d], args.period[d]).rest;
  return r < size ? r : args.period[d].value - r;
}

template <typename T>
GPU_DEVICE void Pad(const PlacesArgs& args) {
  const T* __restrict__ x = static_cast<const T*>(args.x);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.n; i += GridThreads()) {
    int64_t rest = i, from = 0;
    for (int d = args.rank - 1; d >= 0; --d) {
      const Division at = Divide(rest, args.dims[d]);
      from += PlaceOf(args, d, at.rest) * args.strides[d];
      rest = at.quotient;
    }
    y[i] = x[from];
  }
}

#define GPU_SIZES(name, Args, Function)               \
  GPU_KERNEL(name##_1, 256, Args, Function<uint8_t>)  \
  GPU_KERNEL(name##_2, 256, Args, Function<uint16_t>) \
  GPU_KERNEL(name##_4, 256, Args, Function<uint32_t>) \
  GPU_KERNEL(name##_8, 256, Args, Function<uint64_t>)

GPU_SIZES(copy, CopyArgs, Copy)
GPU_SIZES(fill, FillArgs, Fill)
GPU_SIZES(pad, PlacesArgs, Pad)
GPU_PHASED_KERNEL(transpose_1, 256, TransposeArgs, Transpose<uint8_t>)
GPU_PHASED_KERNEL(transpose_2, 256, TransposeArgs, Transpose<uint16_t>)
GPU_PHASED_KERNEL(transpose_4, 256, TransposeArgs, Transpose<uint32_t>)
GPU_PHASED_KERNEL(transpose_8, 256, TransposeArgs, Transpose<uint64_t>)

}  // namespace mge::gpu
