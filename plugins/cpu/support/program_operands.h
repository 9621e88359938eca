// SPDX-License-Identifier: Apache-2.0
// The operands of elementwise programs: their dimensions, scales per axis, and constants.
#pragma once

#include <vector>

#include "mge/plugin.hpp"

namespace mge::cpu {

// Finds the inputs of a problem that have one element per index of one dimension: scales and zero points per axis. `out` gets
// the axis of each input, or -1. Fails with the reason if a program cannot read such an input.
Result FindScaleAxes(const Problem& p, std::vector<int>* out);

// Removes dimensions of one element and merges neighbours that are contiguous in every operand.
void Collapse(std::vector<int64_t>& dims, std::vector<std::vector<int64_t>>& strides);

// Returns whether v is a constant of one element, which is false.
bool IsFalse(const Value& v);
// Returns whether v is an integer constant whose elements are all >= `least`.
bool HoldsNoneBelow(const Value& v, int64_t least);
// Returns whether v is an integer constant without an element 0.
bool HoldsNoZero(const Value& v);
// Returns the first number of a constant, or 0 for other types than floats and integers of 32 and 64 bits.
double NumberOf(const Value& v);

}  // namespace mge::cpu
