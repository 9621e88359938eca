// SPDX-License-Identifier: Apache-2.0
// Elementwise nodes of one shape, computed by a kernel that is generated for them and compiled at run time. The interpreter
// of chains (support/chain.h) computes them if there is no compiler.
#pragma once

#include "mge/plugin.hpp"

namespace mge::gpu {

// Rows for backends that link this folder.
extern const KernelFamily mge_kernels_compiled_chains;

// Offers the largest groups that such a kernel computes, if the device has a compiler.
void OfferCompiledChains(const Pattern& pattern, ClaimList& claims);

}  // namespace mge::gpu
