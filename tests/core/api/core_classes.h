// SPDX-License-Identifier: Apache-2.0
// The core's classes, for a source file that includes mge.hpp.
#pragma once

#include <array>
#include <typeinfo>

namespace mge {

// Of Tensor, Runtime, Session, RuntimeOptions, SessionOptions and RunControl.
std::array<const std::type_info*, 6> CoreClasses();
// Of 1, 2, ... n, in a tensor of the core's.
float SumOfCoreTensor(int n);

}  // namespace mge
