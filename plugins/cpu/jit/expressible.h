// SPDX-License-Identifier: Apache-2.0
// The steps that machine code can compute: those of our generator and of the compilers are the same.
#pragma once

#include "jit/chain.h"

namespace mge::cpu {

// Returns whether the function of one or two operands of float32 has code.
bool IsFloatUnary(TileOp op);
bool IsFloatBinary(TileOp op);
bool IsComparison(TileOp op);

// Returns whether code can be generated for a step.
bool HasCode(const Chain& chain, const ChainStep& step);
// Returns about how many instructions a step takes.
int WeightOf(TileOp op);

}  // namespace mge::cpu
