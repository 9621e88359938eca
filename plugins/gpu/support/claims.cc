// SPDX-License-Identifier: Apache-2.0
// Offers the groups of nodes that one kernel of plugins/gpu computes.
#include "plugins/gpu/launch.h"
#include "plugins/gpu/support/chain.h"
#include "plugins/gpu/support/epilogue.h"

namespace mge::gpu {

mge_code OfferClaims(mge_device*, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error) noexcept {
  return Guard(error, [&] {
    Pattern pattern(graph);
    OfferEpilogues(pattern, sink, "Conv", ChannelAxis::kSecond);
    OfferEpilogues(pattern, sink, "MatMul", ChannelAxis::kLast);
    OfferEpilogues(pattern, sink, "Gemm", ChannelAxis::kLast);
    OfferChains(pattern, sink);
    return MGE_OK;
  });
}

}  // namespace mge::gpu
