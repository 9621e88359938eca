// SPDX-License-Identifier: Apache-2.0
// Offers the groups of nodes that one kernel of plugins/gpu computes.
#include "plugins/gpu/launch.h"
#include "plugins/gpu/support/attention.h"
#include "plugins/gpu/support/chain.h"
#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/integer_product.h"
#include "plugins/gpu/support/siblings.h"

namespace mge::gpu {

void FindClaims(const Pattern& pattern, ClaimList& claims) {
  OfferEpilogues(pattern, claims, "Conv", ChannelAxis::kSecond);
  OfferEpilogues(pattern, claims, "MatMul", ChannelAxis::kLast);
  OfferEpilogues(pattern, claims, "Gemm", ChannelAxis::kLast);
  OfferIntegerProducts(pattern, claims);
  OfferSiblings(pattern, claims);
  OfferAttention(pattern, claims);
  OfferChains(pattern, claims);
}

}  // namespace mge::gpu
