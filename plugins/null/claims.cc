// SPDX-License-Identifier: Apache-2.0
#include "backend.h"

namespace backend {

// Offers groups of nodes that one kernel computes, found by a pattern:
//   for (const mge::Match& m : graph.FindAll(mge::Op("Relu", {mge::Op("Conv")}))) claims.Offer("conv_relu", m.nodes, 3.0);
// An accepted group is passed to the kernels' rows as a problem with several nodes. This template offers no group.
void FindClaims(const mge::Pattern&, mge::ClaimList&) {}

}  // namespace backend
