// SPDX-License-Identifier: Apache-2.0
// Claims a convolution with the nodes that follow it: bias, addition of a tensor, activation.
#include "kernel_table.h"
#include "support/epilogue.h"

namespace mge::cpu {
namespace {

void FindGroups(const Pattern& pattern, ClaimList& claims) {
  constexpr std::string_view kOps[] = {"Conv", "ConvTranspose"};
  OfferEpilogues(pattern, claims, "conv_epilogue", kOps, ChannelAxis::kSecond, /*widened=*/true);
}

}  // namespace

MGE_CPU_CLAIM(conv_epilogue) = FindGroups;

}  // namespace mge::cpu
