// SPDX-License-Identifier: Apache-2.0
// Kernels for 16-bit floating types where no row has one: the kernel of the same problem in float32, between conversions.
//
// A row of float32 gets the problem in float32. Its candidates are offered with a prefix to their names. A run widens the
// inputs into the workspace, calls the kernel's step there, and rounds its outputs once. Constants are widened when they are
// packed. Layouts are those of the inner candidate, because a conversion keeps the order of the elements.
#pragma once

#include <cstdint>

#include "mge/plugin.hpp"

namespace mge::cpu {

// The row of all such kernels. It must be behind the others.
struct WidenedKernels {
  static const KernelRow* const* Rows(uint64_t* count);
};

}  // namespace mge::cpu
