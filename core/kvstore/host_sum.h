// SPDX-License-Identifier: Apache-2.0
// Sums of arrays in host memory. Small arrays are summed by one thread, big ones in chunks by several. The order of the
// additions, and so the rounding, does not depend on the number of threads. Source: MXNet's CommCPU.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/dtype.h"

namespace mge {

struct HostSum {
  int64_t big_array = 1'000'000;  // an array with at least so many elements is big
  uint32_t threads = 4;           // for big arrays
  // Calls body(i) for each i < chunks, on at most `threads` threads.
  std::function<void(uint64_t chunks, uint32_t threads, const std::function<void(uint64_t)>& body)> parallel_for;

  // Sums of 16-bit types are computed in float and rounded once. Those of integers wrap around.
  static bool Adds(DType dtype) { return kFloating.Contains(dtype) || dtype == DType::kI32 || dtype == DType::kI64; }
  // Returns the number of threads for an array.
  uint32_t ThreadsFor(int64_t elements) const { return elements >= big_array ? threads : 1; }
  // Writes the sum of the arrays, at least one, to `sum`, which overlaps none of them. All have `elements` elements of a type
  // for which Adds() is true.
  void Add(DType dtype, std::span<const void* const> arrays, void* sum, int64_t elements) const;
};

}  // namespace mge
