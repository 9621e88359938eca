// SPDX-License-Identifier: Apache-2.0
// The rows of a backend that calls a driver.
#pragma once

#include <initializer_list>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::gpu {

// Returns the rows of kernels that are compiled at run time, those of plugins/gpu, and the backend's own.
std::vector<const KernelRow*> RowsWith(std::initializer_list<KernelFamily> own);

}  // namespace mge::gpu
