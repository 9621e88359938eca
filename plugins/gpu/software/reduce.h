// SPDX-License-Identifier: Apache-2.0
// The reductions of collectives: combines the data of several ranks in the order of the ranks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "mge/float16.hpp"
#include "mge/plugin.hpp"

namespace mge::software {

// Returns whether Reduce() supports the type.
inline bool CanReduce(mge_dtype dtype) {
  return dtype == MGE_DTYPE_F32 || dtype == MGE_DTYPE_F64 || dtype == MGE_DTYPE_F16 || dtype == MGE_DTYPE_BF16 ||
         (dtype >= MGE_DTYPE_U8 && dtype <= MGE_DTYPE_I64) || dtype == MGE_DTYPE_U32 || dtype == MGE_DTYPE_U64;
}

namespace internal {

// Combines elements of type T. 16-bit floats are combined in float and rounded once. Integers wrap around.
template <typename T, typename SourceOf>
void ReduceAs(int32_t reduction, uint32_t ranks, uint64_t count, void* destination, SourceOf& source_of) {
  constexpr bool kHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;
  using Sum = std::conditional_t<kHalf, float, T>;
  auto combine = [&](Sum a, Sum b) -> Sum {
    switch (reduction) {
      case MGE_REDUCE_PRODUCT:
        if constexpr (std::is_integral_v<Sum>) return static_cast<Sum>(uint64_t(a) * uint64_t(b));
        return static_cast<Sum>(a * b);
      case MGE_REDUCE_MIN: return std::min(a, b);
      case MGE_REDUCE_MAX: return std::max(a, b);
      default:
        if constexpr (std::is_integral_v<Sum>) return static_cast<Sum>(uint64_t(a) + uint64_t(b));
        return static_cast<Sum>(a + b);
    }
  };
  for (uint64_t i = 0; i < count; ++i) {
    Sum sum = static_cast<Sum>(static_cast<const T*>(source_of(0))[i]);
    for (uint32_t r = 1; r < ranks; ++r) sum = combine(sum, static_cast<Sum>(static_cast<const T*>(source_of(r))[i]));
    static_cast<T*>(destination)[i] = static_cast<T>(sum);
  }
}

}  // namespace internal

// Combines `count` elements of every rank (MGE_REDUCE_...). source_of(rank) returns the data of a rank. CanReduce(dtype)
// must be true.
template <typename SourceOf>
void Reduce(mge_dtype dtype, int32_t reduction, uint32_t ranks, uint64_t count, void* destination, SourceOf&& source_of) {
  using internal::ReduceAs;
  switch (dtype) {
    case MGE_DTYPE_F32: return ReduceAs<float>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_F64: return ReduceAs<double>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_F16: return ReduceAs<F16>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_BF16: return ReduceAs<BF16>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_U8: return ReduceAs<uint8_t>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_I8: return ReduceAs<int8_t>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_U16: return ReduceAs<uint16_t>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_I16: return ReduceAs<int16_t>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_I32: return ReduceAs<int32_t>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_I64: return ReduceAs<int64_t>(reduction, ranks, count, destination, source_of);
    case MGE_DTYPE_U32: return ReduceAs<uint32_t>(reduction, ranks, count, destination, source_of);
    default: return ReduceAs<uint64_t>(reduction, ranks, count, destination, source_of);
  }
}

}  // namespace mge::software
