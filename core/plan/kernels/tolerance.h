// SPDX-License-Identifier: Apache-2.0
// Tolerances for comparing the results that different kernels compute for one problem.
#pragma once

#include <span>
#include <string>

#include "core/base/tensor.h"
#include "core/ops/op.h"

namespace mge {

// Returns the relative tolerance t. An element may differ from the expected value y by t * (|y| + r), where r is the root
// mean square of the finite expected values. Depends on the type, on the operators (elementwise ones do not accumulate
// rounding errors), and on the candidate's attributes. Returns 0 for types that are not floating-point.
double ToleranceOf(std::span<const OpDef* const> ops, DType dtype, uint64_t attributes);

// Returns "" if the tensors agree, else a description of the first element that differs. NaN agrees only with NaN.
std::string WhyDifferent(const Tensor& got, const Tensor& expected, double tolerance);

// Returns true if a tensor filled with the first element of `got` would agree. `got` must not be empty, and must have the
// type of `expected`.
bool AgreesWithFirst(const Tensor& got, const Tensor& expected, double tolerance);

}  // namespace mge
