// SPDX-License-Identifier: Apache-2.0
// Claims: the groups of nodes that a backend offers to compute together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plan/abi_graph.h"
#include "core/plugin/device.h"

namespace mge {

struct Claim {
  std::string name;                 // with the backend's in front: "cpu.elementwise_chain"
  std::vector<int32_t> nodes = {};  // indices of the AbiGraph, as the backend gave them
  double benefit_us = 0;
  std::string fault = {};           // why it is no claim, and has no nodes; else empty
  bool operator==(const Claim&) const = default;
};

// As a backend offers it, of a graph of that many nodes; no byte is read beyond struct_size.
Claim ReadClaim(const mge_claim* claim, uint64_t node_count);

// What the device's backend offers for the graph, the greatest benefit first; nothing if it claims no groups. What breaks
// the contract is there too, with its fault.
absl::StatusOr<std::vector<Claim>> OfferedClaims(Device& device, const AbiGraph& graph);

}  // namespace mge
