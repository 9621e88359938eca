// SPDX-License-Identifier: Apache-2.0
// Claims a matrix product with the nodes that follow it: scale, bias, addition of a tensor, activation.
#include "kernel_table.h"
#include "support/epilogue.h"

namespace mge::cpu {
namespace {

void FindGroups(const Pattern& pattern, ClaimList& claims) {
  constexpr std::string_view kOps[] = {"MatMul", "Gemm"};
  OfferEpilogues(pattern, claims, "gemm_epilogue", kOps, ChannelAxis::kLast);
}

}  // namespace

MGE_CPU_CLAIM(gemm_epilogue) = FindGroups;

}  // namespace mge::cpu
