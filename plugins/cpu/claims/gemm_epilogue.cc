// SPDX-License-Identifier: Apache-2.0
// A product of matrices with what follows it: scale, bias, the addition of a tensor, an activation.
#include "kernel_table.h"
#include "support/epilogue.h"

namespace mge::cpu {
namespace {

void Offer(const Pattern& pattern, const mge_claim_sink* sink) {
  constexpr std::string_view kOps[] = {"MatMul", "Gemm"};
  OfferEpilogues(pattern, sink, "gemm_epilogue", kOps, ChannelAxis::kLast);
}

}  // namespace

MGE_CPU_CLAIM(gemm_epilogue) = {"gemm_epilogue", Offer};

}  // namespace mge::cpu
