// SPDX-License-Identifier: Apache-2.0
// Conversion of whole tensors between element types.
#pragma once

#include "core/ops/op.h"

namespace mge {

// Returns the elements of `x` converted to `to`. Numbers follow core/ops/families/convert.h; strings are decimal numbers.
// Fails with kInvalidNode if a string is not a number, and with kUnsupportedType for complex types.
absl::StatusOr<Tensor> CastTensor(const Tensor& x, DType to, HostAllocator& allocator);

// Fails unless the attribute round_mode is one of those of ONNX. It affects casts to float8e8m0 only, a type that MGE lacks.
absl::Status CheckRoundMode(const Attributes& attrs);

}  // namespace mge
