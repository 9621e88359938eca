// SPDX-License-Identifier: Apache-2.0
// Declares kernels and claims. The tables are generated from the files of kernels/ and claims/.
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

// A fusion.
struct ClaimRow {
  const char* name;
  // Offers every group of this fusion in the graph. Each group must be supported by a kernel row.
  void (*offer)(const Pattern& graph, const mge_claim_sink* sink);
};

// Declares the rows of file kernels/ID.cc. ID must be the file's name.
#define MGE_CPU_KERNELS(id)                       \
  extern const KernelFamily mge_cpu_kernels_##id; \
  constexpr KernelFamily mge_cpu_kernels_##id

// Declares the fusion of file claims/ID.cc. ID must be the file's name.
#define MGE_CPU_CLAIM(id)                   \
  extern const ClaimRow mge_cpu_claim_##id; \
  constexpr ClaimRow mge_cpu_claim_##id

// Returns all rows of all families.
const KernelRow* const* KernelRows(uint64_t* count);

mge_code OfferClaims(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error) noexcept;

}  // namespace mge::cpu
