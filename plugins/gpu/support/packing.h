// SPDX-License-Identifier: Apache-2.0
// The packed form of a constant operand: each of its matrices is transposed.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/gpu/launch.h"

namespace mge::gpu {

// `batch` matrices of rows x columns elements of 1, 2, 4 or 8 bytes. The functions are those of mge::Kernel for one input.
struct Packing {
  int64_t batch = 0, rows = 0, columns = 0;
  uint64_t element_bytes = 0;

  // Returns whether packing changes the place of an element.
  bool Moves() const { return rows > 1 && columns > 1; }
  uint64_t bytes() const { return static_cast<uint64_t>(batch * rows * columns) * element_bytes; }
  std::string Form() const;
  Result OnHost(const void* from, void* to) const;
  Result OnQueue(mge_queue* queue, const void* from, void* to) const;
};

}  // namespace mge::gpu
