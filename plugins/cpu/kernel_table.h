// SPDX-License-Identifier: Apache-2.0
// The lists of kernels and claims. They are generated from the files of kernels/ and claims/.
//
//   // kernels/relu.cc
//   constexpr KernelRow kRows[] = {Row<Relu>("Relu")};
//   MGE_KERNELS(relu) = kRows;
//
//   // claims/bias_relu.cc
//   MGE_CPU_CLAIM(bias_relu) = FindGroups;
#pragma once

#include "mge/plugin.hpp"

namespace mge::cpu {

// Offers every group of one fusion in the graph. Each group must be supported by a kernel row.
using ClaimFunction = void (*)(const Pattern& graph, ClaimList& claims);

// Declares the fusion of file claims/ID.cc. ID must be the file's name.
#define MGE_CPU_CLAIM(id) extern constexpr ClaimFunction mge_claim_##id

// All rows of all families.
struct Kernels {
  static const KernelRow* const* Rows(uint64_t* count);
};

// Offers the groups of all fusions.
void FindClaims(const Pattern& graph, ClaimList& claims);

}  // namespace mge::cpu
