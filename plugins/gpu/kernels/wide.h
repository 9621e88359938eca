// SPDX-License-Identifier: Apache-2.0
// The types in which kernels compute with integers, so that no signed sum or product overflows.
#pragma once

#include "plugins/gpu/port.h"

namespace mge::gpu {

// The type for integer arithmetic: unsigned, at least 32 bits.
template <typename T>
struct WideOf {
  using type = T;
};
template <>
struct WideOf<int8_t> {
  using type = uint32_t;
};
template <>
struct WideOf<int16_t> {
  using type = uint32_t;
};
template <>
struct WideOf<int32_t> {
  using type = uint32_t;
};
template <>
struct WideOf<int64_t> {
  using type = uint64_t;
};
template <>
struct WideOf<uint8_t> {
  using type = uint32_t;
};
template <>
struct WideOf<uint16_t> {
  using type = uint32_t;
};

}  // namespace mge::gpu
