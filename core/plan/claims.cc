// SPDX-License-Identifier: Apache-2.0
#include "core/plan/claims.h"

#include <algorithm>
#include <cstddef>

#include "core/plugin/guard.h"
#include "core/plugin/host_services.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr uint64_t kMaxClaim = 1 << 20;  // nodes

struct Collector {
  std::vector<Claim> claims;
  Deferred deferred;

  void Add(const mge_claim* c) {
    if (!c || c->struct_size < offsetof(mge_claim, benefit_us)) return;
    mge_claim known = Widen(*c);
    bool sound = known.nodes && known.node_count <= kMaxClaim;  // else it is dropped for having none
    claims.push_back({CopyText(known.name, 256),
                      std::vector<int32_t>(known.nodes, known.nodes + (sound ? known.node_count : 0)), known.benefit_us});
  }
};

}  // namespace

absl::StatusOr<std::vector<Claim>> OfferedClaims(Device& device, const AbiGraph& graph) {
  const mge_graph_api* api = device.graph_api();
  if (!api) return std::vector<Claim>();
  Collector collector;
  mge_claim_sink sink = {sizeof(mge_claim_sink), 0, &collector, [](void* self, const mge_claim* c) {
                           auto& to = *static_cast<Collector*>(self);
                           to.deferred.Run([&] { to.Add(c); });
                         }};
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return api->claim(device.handle(), graph.graph(), &sink, e); });
  collector.deferred.Rethrow();
  if (code != MGE_OK) return StatusOfBackend(code, error, fmt::format("device {}: claiming groups", device.name()));
  std::vector<Claim> claims = std::move(collector.claims);
  for (Claim& claim : claims) claim.name = device.backend().name() + "." + claim.name;
  std::stable_sort(claims.begin(), claims.end(),
                   [](const Claim& a, const Claim& b) { return a.benefit_us > b.benefit_us; });
  return claims;
}

}  // namespace mge
