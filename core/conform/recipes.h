// SPDX-License-Identifier: Apache-2.0
// Recipes of the operators whose operands cannot have arbitrary shapes, in the form that cases.h explains.
#pragma once

#include <span>

namespace mge::conform {

std::span<const char* const> Recipes();  // all recipes; each begins with the operator's name

}  // namespace mge::conform
