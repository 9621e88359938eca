// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterND. No two threads write to the same element.
#include "plugins/gpu/kernels/divide.h"
#include "plugins/gpu/kernels/fault.h"
#include "plugins/gpu/kernels/index.h"
#include "plugins/gpu/kernels/wide.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

template <typename T>
GPU_DEVICE void Update(T* y, T update, int reduction) {
  using C = Compute<T>;
  using W = typename WideOf<C>::type;
  if (reduction == kScatterNone) {
    *y = update;
    return;
  }
  const C a = Widen(*y), b = Widen(update);
  C r = a;
  if (reduction == kScatterAdd) r = static_cast<C>(static_cast<W>(a) + static_cast<W>(b));
  if (reduction == kScatterMul) r = static_cast<C>(static_cast<W>(a) * static_cast<W>(b));
  if (reduction == kScatterMax) r = a != a || a > b ? a : b;
  if (reduction == kScatterMin) r = a != a || a < b ? a : b;
  *y = Narrow<T>::Of(r);
}

template <typename T>
GPU_DEVICE void ScatterElements(const ScatterArgs& args) {
  const T* __restrict__ updates = static_cast<const T*>(args.updates);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t line = GridThread(); line < args.lines; line += GridThreads()) {
    // offsets in updates and y; stride and number of updates along the axis
    int64_t rest = line, from = 0, to = 0, step = 1, along = 1;
    for (int d = args.rank - 1; d >= 0; step *= args.dims[d--]) {
      if (d == args.axis) {
        along = step;
        continue;
      }
      const int64_t q = rest / args.dims[d], at = rest - q * args.dims[d];
      from += at * step;
      to += at * args.strides[d];
      rest = q;
    }
    for (int64_t k = 0; k < args.along; ++k) {
      const int64_t u = from + k * along, index = IndexAt(args.indices, args.wide, u);
      if (index < -args.bound || index >= args.bound) {
        Raise(args.fault, Fault::kIndex, index, args.bound);
        continue;
      }
      Update(y + to + (index < 0 ? index + args.bound : index) * args.strides[args.axis], updates[u], args.reduction);
    }
  }
}

template <typename T>
GPU_DEVICE void ScatterNd(const ScatterArgs& args) {
  const T* __restrict__ updates = static_cast<const T*>(args.updates);
  T* __restrict__ y = static_cast<T*>(args.y);
  for (int64_t i = GridThread(); i < args.lines; i += GridThreads()) {
    for (int64_t u = 0; u < args.along; ++u) {
      int64_t to = i;
      bool inside = true;
      for (int k = 0; k < args.rank; ++k) {
        const int64_t index = IndexAt(args.indices, args.wide, u * args.rank + k);
        if (index < -args.dims[k] || index >= args.dims[k]) {
          Raise(args.fault, Fault::kIndex, index, args.dims[k]);
          inside = false;
        } else {
          to += (index < 0 ? index + args.dims[k] : index) * args.strides[k];
        }
      }
      if (inside) Update(y + to, updates[u * args.lines + i], args.reduction);
    }
  }
}

GPU_DEVICE void FindPlaces(const ScatterTuplesArgs& args) {
  for (int64_t u = GridThread(); u < args.tuples; u += GridThreads()) {
    int64_t place = 0;
    for (int k = 0; k < args.rank && place >= 0; ++k) {
      const int64_t index = IndexAt(args.indices, args.wide, u * args.rank + k);
      if (index < -args.dims[k] || index >= args.dims[k]) {
        Raise(args.fault, Fault::kIndex, index, args.dims[k]);
        place = -1;
      } else {
        place += (index < 0 ? index + args.dims[k] : index) * args.strides[k];
      }
    }
    args.places[u] = place;
  }
}

// The threads of a warp read the same places, one after another.
GPU_DEVICE void LinkPlaces(const ScatterTuplesArgs& args) {
  for (int64_t u = GridThread(); u < args.tuples; u += GridThreads()) {
    const int64_t place = args.places[u];
    bool first = place >= 0;
    int64_t next = -1;
    for (int64_t v = 0; v < args.tuples; ++v) {
      const bool same = args.places[v] == place;
      if (same && v < u) first = false;
      if (same && v > u && next < 0) next = v;
    }
    args.first[u] = first;
    args.next[u] = static_cast<int32_t>(next);
  }
}

template <typename T>
GPU_DEVICE void ScatterTuples(const ScatterTuplesArgs& args) {
  const T* __restrict__ updates = static_cast<const T*>(args.updates);
  for (int64_t i = GridThread(); i < args.tuples * args.piece.value; i += GridThreads()) {
    const Division at = Divide(i, args.piece);
    if (!args.first[at.quotient]) continue;
    T* y = static_cast<T*>(args.y) + args.places[at.quotient] + at.rest;
    for (int64_t u = at.quotient; u >= 0; u = args.next[u])
      Update(y, updates[u * args.piece.value + at.rest], args.reduction);
  }
}
GPU_KERNEL(scatter_places, 256, ScatterTuplesArgs, FindPlaces)
GPU_KERNEL(scatter_links, 256, ScatterTuplesArgs, LinkPlaces)

#define GPU_SCATTERS(type, T)                                               \
  GPU_KERNEL(scatter_elements_##type, 256, ScatterArgs, ScatterElements<T>) \
  GPU_KERNEL(scatter_nd_##type, 256, ScatterArgs, ScatterNd<T>)             \
  GPU_KERNEL(scatter_tuples_##type, 256, ScatterTuplesArgs, ScatterTuples<T>)

GPU_SCATTERS(f32, float)
GPU_SCATTERS(f64, double)
GPU_SCATTERS(f16, f16)
GPU_SCATTERS(bf16, bf16)
GPU_SCATTERS(i8, int8_t)
GPU_SCATTERS(i16, int16_t)
GPU_SCATTERS(i32, int32_t)
GPU_SCATTERS(i64, int64_t)
GPU_SCATTERS(u8, uint8_t)
GPU_SCATTERS(u16, uint16_t)
GPU_SCATTERS(u32, uint32_t)
GPU_SCATTERS(u64, uint64_t)

}  // namespace mge::gpu
