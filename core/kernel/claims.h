// SPDX-License-Identifier: Apache-2.0
// Claims: the groups of nodes that a backend offers to compute together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/abi_graph.h"
#include "core/plugin/device.h"

namespace mge {

// A copy of a backend's claim.
struct Claim {
  std::string name;                 // "BACKEND.NAME", as in "cpu.elementwise_chain"
  std::vector<int32_t> nodes = {};  // different indices in the AbiGraph; empty if there is a fault
  double benefit_us = 0;
  std::vector<int32_t> extra_outputs = {};  // indices of values in the AbiGraph, not checked
  std::string fault = {};                   // the reason why the claim is invalid; empty if it is valid
  bool operator==(const Claim&) const = default;
};

// Copies a claim for a graph of `node_count` nodes. Reads no byte beyond claim->struct_size. `claim` may be null or too
// short; the result then has a fault. The name has no backend in front.
Claim ReadClaim(const mge_claim* claim, uint64_t node_count);

// Returns the claims of the device's backend for the graph, the greatest benefit first. Invalid claims are included, with
// their faults. Returns an empty list if the backend has no claims. Fails if the backend fails.
absl::StatusOr<std::vector<Claim>> OfferedClaims(Device& device, const AbiGraph& graph);

}  // namespace mge
