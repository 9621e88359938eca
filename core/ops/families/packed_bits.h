// SPDX-License-Identifier: Apache-2.0
// Weights of 2, 4 or 8 bits with a scale for each block, as ONNX Runtime stores them: the first number of a byte has the lowest
// bits.
#pragma once

#include "core/ops/function_body.h"

namespace mge {

// Returns the numbers of bytes, whose last dimension is `bytes`, as uint8. Their last dimension is bytes * 8 / bits. `dims` is
// the shape of the bytes; kUnknownDim is not allowed.
ValueId UnpackedBits(FunctionBody& f, ValueId bytes, Shape dims, int64_t bits);

// Returns (q - zero) * scale of `type`, where each `block` of the last dimension has one scale and one zero point. `dims` is
// the shape of q, a multiple of the block. `zero` is uint8, or kNone for 2^(bits - 1).
ValueId DequantizedBlocks(FunctionBody& f, ValueId q, ValueId scale, ValueId zero, const Shape& scales, int64_t block,
                          int64_t bits);

}  // namespace mge
