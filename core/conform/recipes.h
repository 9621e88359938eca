// SPDX-License-Identifier: Apache-2.0
// Operators whose operands are no free choice of shapes: what to try, in the form that cases.h explains.
#pragma once

#include <span>

namespace mge::conform {

std::span<const char* const> Recipes();  // each begins with the operator's name

}  // namespace mge::conform
