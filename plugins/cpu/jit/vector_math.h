// SPDX-License-Identifier: Apache-2.0
// Emits exponentials, logarithms and functions of them: the polynomials, coefficients and order of operations of vec/math.h.
#pragma once

#include "jit/vector_code.h"

namespace mge::cpu {

Reg EmitExp(VectorCode& v, Reg x);
Reg EmitLog(VectorCode& v, const Reg& x);
Reg EmitTanh(VectorCode& v, const Reg& x);
Reg EmitSigmoid(VectorCode& v, const Reg& x);
Reg EmitErf(VectorCode& v, const Reg& x);
Reg EmitSoftplus(VectorCode& v, const Reg& x);
Reg EmitExpm1(VectorCode& v, const Reg& x);

}  // namespace mge::cpu
