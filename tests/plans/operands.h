// SPDX-License-Identifier: Apache-2.0
// The operands of a plan's units, with the places to which the steps have been bound.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace mge {

// An operand of a unit, or its workspace.
struct UnitOperand {
  std::string name;               // value, with its layout if it is not plain: "x", "x perm(0,2,3,1)"; empty: workspace
  bool written = false;           // true: an output or the workspace
  std::optional<Location> place;  // nullopt: the unit is a view, which has no step
};

// Returns the inputs of a unit, its outputs, and its workspace if it has one. Kernels must belong to fake backends.
std::vector<UnitOperand> OperandsOf(const Plan& plan, size_t unit);

}  // namespace mge
