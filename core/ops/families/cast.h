// SPDX-License-Identifier: Apache-2.0
// Conversion of whole tensors between element types.
#pragma once

#include "core/base/narrow.h"
#include "core/ops/op.h"

namespace mge {

// Returns the elements of `x` converted to `to`. Numbers follow core/ops/families/convert.h, types of 8 bits and less
// core/base/narrow.h; strings are decimal numbers. Fails with kInvalidNode if a string is not a number, and with
// kUnsupportedType for complex types.
absl::StatusOr<Tensor> CastTensor(const Tensor& x, DType to, HostAllocator& allocator, NarrowRule rule = {});

// Reads the attributes saturate and round_mode. Fails unless round_mode is one of those of ONNX.
absl::StatusOr<NarrowRule> ReadNarrowRule(const Attributes& attrs);

}  // namespace mge
