// SPDX-License-Identifier: Apache-2.0
// The list of kernels. An operator has one file in this folder, one declaration and one entry here.
#pragma once

#include "mge/plugin.hpp"

namespace backend {

extern const mge::KernelRow kRelu;

using Kernels = mge::Kernels<kRelu>;

}  // namespace backend
