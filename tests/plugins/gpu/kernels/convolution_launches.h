// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels of convolutions and pools, for the list of launches.cc.
#pragma once

#include "tests/plugins/gpu/kernels/launches.h"

namespace mge::gpu {

void Convolutions(Memory& m, const Check& check);
void GradientsOfConvolutions(Memory& m, const Check& check);
void DepthwiseConvolutions(Memory& m, const Check& check);
void ConvolutionsWithChannelsLast(Memory& m, const Check& check);
void MatrixUnitsOfConvolutions(Memory& m, const Check& check);
void MatrixUnitsWithChannelsLast(Memory& m, const Check& check);
void GradientsOfPools(Memory& m, const Check& check);
void Pools(Memory& m, const Check& check);

}  // namespace mge::gpu
