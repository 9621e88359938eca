// SPDX-License-Identifier: Apache-2.0
// The instructions of each elementwise function, for values in registers.
#pragma once

#include "jit/chain.h"
#include "jit/vector_code.h"

namespace mge::cpu {

// Emit op(x) and op(x, y) for float32; expressible.h lists the functions. Comparisons, kIsNaN and kIsInf give truth values.
Reg EmitUnary(VectorCode& v, TileOp op, Reg x, const float* params);
Reg EmitBinary(VectorCode& v, TileOp op, Reg x, const Arg& y);

// Returns x rounded to float16, or to bfloat16, as float32.
Reg EmitRound(VectorCode& v, mge_dtype half, Reg x);
// Returns the bits of x rounded to bfloat16 as integers.
Reg EmitBfloat16(VectorCode& v, const Reg& x);

// The zero point of a quantization: null, or integers. Both functions follow vec/tile_quantize.cc.
Reg EmitQuantize(VectorCode& v, Reg scaled, const Reg* zero, bool is_signed);
Reg EmitDequantize(VectorCode& v, Reg x, const Arg& scale, const Arg* zero);

}  // namespace mge::cpu
