// SPDX-License-Identifier: Apache-2.0
// Functions that generated chains call (chain_source.h). Included by generated kernels only.
#pragma once

#include "plugins/gpu/kernels/binary_functions.h"
#include "plugins/gpu/kernels/cast.h"
#include "plugins/gpu/kernels/pack.h"
#include "plugins/gpu/kernels/quantization.h"
#include "plugins/gpu/kernels/unary_functions.h"
#include "plugins/gpu/port.h"

// The build of a test may define these, to count the bytes that a kernel moves.
#ifndef GPU_COUNT_READ
#define GPU_COUNT_READ(address, bytes) (void)0
#define GPU_COUNT_REPEATED_READ(address, bytes) (void)0
#define GPU_COUNT_WRITE(address, bytes) (void)0
#endif

namespace mge::gpu {

template <typename C>
GPU_DEVICE C AtLeast(C x, C low) {
  return x < low ? low : x;
}
template <typename C>
GPU_DEVICE C AtMost(C x, C high) {
  return x > high ? high : x;
}
template <typename C>
GPU_DEVICE uint8_t ToBool(C x) {
  return static_cast<uint8_t>(x != C(0));
}

// Returns elements i to i + N of an operand that is read once. i is a multiple of N.
template <int N, typename T>
GPU_DEVICE Pack<T, N> Load(const T* from, int64_t i) {
  GPU_COUNT_READ(from + i, sizeof(T) * N);
  return ReadPack<N>(from + i);
}
// The same for an operand that is read again for other elements of the result.
template <int N, typename T>
GPU_DEVICE Pack<T, N> LoadAgain(const T* from, int64_t i) {
  GPU_COUNT_REPEATED_READ(from + i, sizeof(T) * N);
  return ReadPack<N>(from + i);
}
// Returns N times element i.
template <int N, typename T>
GPU_DEVICE Pack<T, N> Repeat(const T* from, int64_t i) {
  GPU_COUNT_REPEATED_READ(from + i, sizeof(T));
  Pack<T, N> pack;
  const T value = from[i];
  GPU_UNROLL
  for (int j = 0; j < N; ++j) pack.at[j] = value;
  return pack;
}
template <int N, typename T>
GPU_DEVICE void Store(T* to, int64_t i, const Pack<T, N>& pack) {
  GPU_COUNT_WRITE(to + i, sizeof(T) * N);
  WritePack(to + i, pack);
}

// Writes the indices of element i in an array of R dimensions.
template <int R, typename Index>
GPU_DEVICE void Split(const int64_t* dims, Index i, Index* at) {
  GPU_UNROLL
  for (int d = R - 1; d > 0; --d) {
    const Index n = static_cast<Index>(dims[d]), q = i / n;
    at[d] = i - q * n;
    i = q;
  }
  at[0] = i;
}
// Returns the offset of an operand with these strides.
template <int R, typename Index>
GPU_DEVICE int64_t OffsetAt(const Index* at, const int64_t* strides) {
  int64_t offset = 0;
  GPU_UNROLL
  for (int d = 0; d < R; ++d) offset += static_cast<int64_t>(at[d]) * strides[d];
  return offset;
}

}  // namespace mge::gpu
