// SPDX-License-Identifier: Apache-2.0
// Reports input data that a kernel cannot compute with. Included by kernels only.
#pragma once

#include "plugins/gpu/fault.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

GPU_DEVICE void Raise(Fault* fault, Fault::What what, int64_t value, int64_t bound) {
  if (atomicCAS(&fault->what, 0u, static_cast<uint32_t>(what)) != 0) return;
  fault->value = value;
  fault->bound = bound;
}

// Returns the index counted from 0. If it is outside of [-bound, bound), reports a fault and returns 0.
GPU_DEVICE int64_t CheckedIndex(Fault* fault, int64_t index, int64_t bound) {
  int64_t i = index < 0 ? index + bound : index;
  if (i >= 0 && i < bound) return i;
  Raise(fault, Fault::kIndex, index, bound);
  return 0;
}

// Returns element i of a list of int32 or int64 indices.
GPU_DEVICE int64_t IndexAt(const void* list, bool wide, int64_t i) {
  return wide ? static_cast<const int64_t*>(list)[i] : static_cast<const int32_t*>(list)[i];
}

}  // namespace mge::gpu
