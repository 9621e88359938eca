// SPDX-License-Identifier: Apache-2.0
// Access to the core's classes from a source file that includes mge.hpp, whose classes have the same names.
#pragma once

#include <array>
#include <typeinfo>

namespace mge {

// Returns the types of Tensor, Runtime, Session, RuntimeOptions, SessionOptions and RunState.
std::array<const std::type_info*, 6> CoreClasses();
// Returns the sum of 1, 2, ... n, computed from a tensor of the core.
float SumOfCoreTensor(int n);

}  // namespace mge
