// SPDX-License-Identifier: Apache-2.0
// Conversion of whole tensors between element types.
#pragma once

#include "core/ops/op.h"

namespace mge {

// Every element of `x` as `to`: numbers as core/ops/convert.h says, text as decimal numbers.
// kInvalidNode if a text is no number, kUnsupportedType for complex types.
absl::StatusOr<Tensor> CastTensor(const Tensor& x, DType to, HostAllocator& allocator);

}  // namespace mge
