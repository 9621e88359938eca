// SPDX-License-Identifier: Apache-2.0
// How far two results of one problem may lie apart when different kernels have computed them.
#pragma once

#include <span>
#include <string>

#include "core/base/tensor.h"
#include "core/ops/op.h"

namespace mge {

// The share of a value, and of the typical size of its tensor's values, by which it may differ. It depends on the type, on
// the operators (those that compute element by element add up no rounding), and on what the candidate says of itself.
double ToleranceOf(std::span<const OpDef* const> ops, DType dtype, uint64_t attributes);

// "" if the tensors agree, else the first element that does not. Integers, bools and not-a-numbers must be equal.
std::string WhyDifferent(const Tensor& got, const Tensor& expected, double tolerance);

// Whether a tensor that is the first element of `got` throughout would agree. `got` has one, and the type of `expected`.
bool AgreesWithFirst(const Tensor& got, const Tensor& expected, double tolerance);

}  // namespace mge
