// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/claims.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/plugin/abi_call.h"
#include "core/plugin/host_services.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr uint64_t kMaxClaimsPerNode = 64;   // limit of claims per node that the device sees
constexpr uint64_t kMaxNamedPerNode = 1024;  // limit of nodes in claims, per node that the device sees

struct ClaimCollector {
  uint64_t node_count;  // nodes of the graph
  std::vector<Claim> claims = {};
  uint64_t named = 0;   // number of nodes in `claims`
  uint64_t excess = 0;  // number of claims beyond the limits
  Deferred deferred = {};

  void Add(const mge_claim* c) {
    if (claims.size() >= kMaxClaimsPerNode * node_count || named >= kMaxNamedPerNode * node_count) {
      ++excess;
      return;
    }
    claims.push_back(ReadClaim(c, node_count));
    named += claims.back().nodes.size();
  }
};

}  // namespace

Claim ReadClaim(const mge_claim* c, uint64_t node_count) {
  if (!c || c->struct_size < offsetof(mge_claim, benefit_us)) {
    return {.name = "?", .fault = "a claim is described by a struct that is NULL or too short"};
  }
  mge_claim known = Widen(*c);
  Claim claim = {.name = EscapeControl(CopyText(known.name, 256))};
  if (!known.nodes || known.node_count == 0) {
    claim.fault = "names no nodes";
  } else if (!std::isfinite(known.benefit_us) || known.benefit_us < 0) {
    claim.fault = fmt::format("states a benefit of {} us; it must be finite and not negative", known.benefit_us);
  } else if (known.node_count > node_count) {
    claim.fault = fmt::format("names {} nodes; the graph has {}", known.node_count, node_count);
  } else if (known.extra_output_count > known.node_count || (known.extra_output_count && !known.extra_outputs)) {
    claim.fault = fmt::format("names {} extra outputs; it has {} nodes", known.extra_output_count, known.node_count);
  } else {
    claim.benefit_us = known.benefit_us;
    claim.nodes.assign(known.nodes, known.nodes + known.node_count);
    claim.extra_outputs.assign(known.extra_outputs, known.extra_outputs + known.extra_output_count);
    std::vector<int32_t> sorted = claim.nodes;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0 || sorted.back() >= static_cast<int64_t>(node_count))
      claim.fault = "names a node that does not exist";
    else if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      claim.fault = "names a node twice";
    if (!claim.fault.empty()) claim.nodes.clear();
  }
  return claim;
}

absl::StatusOr<std::vector<Claim>> OfferedClaims(Device& device, const AbiGraph& graph) {
  const mge_graph_api* api = device.graph_api();
  if (!api) return std::vector<Claim>();
  ClaimCollector collector = {.node_count = graph.graph()->node_count};
  mge_claim_sink sink = {sizeof(mge_claim_sink), 0, &collector, [](void* self, const mge_claim* c) {
                           auto& to = *static_cast<ClaimCollector*>(self);
                           to.deferred.Run([&] { to.Add(c); });
                         }};
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return api->claim(device.handle(), graph.graph(), &sink, e); });
  collector.deferred.Rethrow();
  if (code != MGE_OK) return StatusOfBackend(code, error, fmt::format("device {}: claiming groups", device.name()));
  std::vector<Claim> claims = std::move(collector.claims);
  if (collector.excess) {
    claims.push_back({.name = "?",
                      .fault = fmt::format("{} more claims than a device may offer; the limits per node are {} claims and "
                                           "{} nodes",
                                           collector.excess, kMaxClaimsPerNode, kMaxNamedPerNode)});
  }
  for (Claim& claim : claims) claim.name = device.backend().name() + "." + claim.name;
  std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) { return a.benefit_us > b.benefit_us; });
  return claims;
}

}  // namespace mge
