// SPDX-License-Identifier: Apache-2.0
// How kernels and claims are declared. The tables are derived from the files of kernels/ and claims/.
//
//   // kernels/relu.cc
//   constexpr KernelRow kRows[] = {{"Relu", Offer, Make}};
//   MGE_CPU_KERNELS(relu) = kRows;
//
//   // claims/bias_relu.cc
//   MGE_CPU_CLAIM(bias_relu) = {"bias_relu", Offer};
#pragma once

#include <span>

#include "mge/plugin.hpp"

namespace mge::cpu {

using KernelFamily = std::span<const KernelRow>;

struct ClaimRow {
  const char* name;
  // Offers every group of this fusion in the graph. A group must be what a kernel row then really offers.
  void (*offer)(const Pattern& graph, const mge_claim_sink* sink);
};

// The rows of file kernels/ID.cc; the name is the file's.
#define MGE_CPU_KERNELS(id)                        \
  extern const KernelFamily mge_cpu_kernels_##id;  \
  constexpr KernelFamily mge_cpu_kernels_##id

// The fusion of file claims/ID.cc; the name is the file's.
#define MGE_CPU_CLAIM(id)                     \
  extern const ClaimRow mge_cpu_claim_##id;   \
  constexpr ClaimRow mge_cpu_claim_##id

// All rows of all families.
const KernelRow* const* KernelRows(uint64_t* count);

mge_code OfferClaims(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error) noexcept;

}  // namespace mge::cpu
