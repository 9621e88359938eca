// SPDX-License-Identifier: Apache-2.0
// The limits of a device that bound the time of a kernel: the roofs of the roofline model (Williams, Waterman, Patterson,
// "Roofline", CACM 52(4), 2009).
#pragma once

#include "mge/plugin.hpp"

namespace mge::gpu {

struct Roofs {
  double bytes_per_us;       // of device memory, as kernels reach it
  double operations_per_us;  // of float32 without matrix units, as kernels reach it
  double multiprocessors;
  double matrix_operations_per_us;  // of 16-bit factors by matrix units, as kernels reach it; half as many with TF32
};

// An average device, for estimates without a device.
inline constexpr Roofs kAverageRoofs = {400e3, 5e6, 128, 40e6};

// Returns the roofs of a device. Implemented by the backend.
Roofs RoofsOf(mge_device* device);

}  // namespace mge::gpu
