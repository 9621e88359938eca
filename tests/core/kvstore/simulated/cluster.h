// SPDX-License-Identifier: Apache-2.0
// A simulated cluster that sums an array over its ranks: hosts with cores, and a network between them.
//
// Sums proceed in rounds of messages. A round ends when the most loaded resource has done its work: the cores of a host, which
// move the messages within it, a single rank, which uses one core, or the adapter of a host in one direction. Then receivers
// notice it, and add. The model knows no congestion within the network, and no rank is later than the others.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/kvstore/sum_path.h"

namespace mge::simulated {

struct Cluster {
  GroupShape group;
  uint32_t cores_per_host = 1;
  TransportCosts costs = kTransportCosts;

  uint32_t host(uint32_t rank) const { return rank / group.ranks_per_host; }
};

// How ranks sum an array. kWhole, kParts and kHosts are those of core/kvstore/sum_path.h.
enum class Way {
  kWhole,
  kParts,
  kRing,  // parts go around twice
  kTree,  // a binomial tree to rank 0 and back, whole arrays
  kHosts,
};
inline constexpr Way kWays[] = {Way::kWhole, Way::kParts, Way::kRing, Way::kTree, Way::kHosts};
std::string_view Name(Way way);
Way WayOf(SumPath path);

// Returns the time until all ranks have the sum of arrays with so many bytes, in seconds.
double TimeOfSum(const Cluster& cluster, Way way, double bytes);

// Returns the part of the ideal speed that `ranks` times as many examples per second would be. A step takes forward_s, then
// computes the gradients, one bucket after the other, in bucket_s[i] seconds each. Its sum begins when it is computed and the
// sum before has ended.
double Efficiency(double forward_s, std::span<const double> bucket_s, std::span<const double> sum_s);

}  // namespace mge::simulated
