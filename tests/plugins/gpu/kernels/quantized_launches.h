// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels of quantized models, for the list of launches.cc.
#pragma once

#include "tests/plugins/gpu/kernels/launches.h"

namespace mge::gpu {

void IntegerConvolutions(Memory& m, const Check& check);
void IntegerProducts(Memory& m, const Check& check);
void MatrixUnitsOfIntegers(Memory& m, const Check& check);
void MatrixUnitsOfIntegerConvolutions(Memory& m, const Check& check);
void Quantizations(Memory& m, const Check& check);

}  // namespace mge::gpu
