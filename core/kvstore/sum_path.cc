// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/sum_path.h"

#include <algorithm>

namespace mge {
namespace {

// Returns the time of a round in which each process exchanges so many bytes with each of its peers.
double TimeOfRound(double local_peers, double remote_peers, double bytes, const GroupShape& group, const TransportCosts& c) {
  const double waits = std::max(local_peers > 0 ? c.local.round : 0, remote_peers > 0 ? c.network.round : 0);
  const double own = 2 * local_peers * (c.local.message + bytes * c.local.byte) + 2 * remote_peers * c.network.message;
  const double adapter = group.ranks_per_host * remote_peers * bytes * c.network.byte;
  return waits + std::max(own, adapter);
}

}  // namespace

std::string_view Name(SumPath path) {
  switch (path) {
    case SumPath::kWhole: return "whole";
    case SumPath::kParts: return "parts";
    case SumPath::kHosts: return "hosts";
  }
  return "";
}

double TimeOfSum(SumPath path, const GroupShape& group, double bytes, const TransportCosts& costs) {
  const double local = group.ranks_per_host - 1.0, hosts = group.hosts(), remote = group.ranks - local - 1;
  auto round = [&](double local_peers, double remote_peers, double sent) {
    return TimeOfRound(local_peers, remote_peers, sent, group, costs);
  };
  auto adds = [&](double arrays, double each) { return (arrays - 1) * each * costs.summed_byte; };
  const double part = bytes / group.ranks, of_host = bytes / group.ranks_per_host;
  switch (path) {
    case SumPath::kWhole: return round(local, remote, bytes) + adds(group.ranks, bytes);
    case SumPath::kParts: return 2 * round(local, remote, part) + adds(group.ranks, part);
    case SumPath::kHosts:
      return 2 * (round(local, 0, of_host) + round(0, hosts - 1, part)) + adds(group.ranks_per_host, of_host) +
             adds(hosts, part);
  }
  return 0;
}

SumPath FastestSumPath(const GroupShape& group, double bytes, const TransportCosts& costs) {
  auto time = [&](SumPath path) { return TimeOfSum(path, group, bytes, costs); };
  SumPath best = time(SumPath::kWhole) <= time(SumPath::kParts) ? SumPath::kWhole : SumPath::kParts;
  if (group.hosts() > 1 && group.ranks_per_host > 1 && time(SumPath::kHosts) < time(best)) best = SumPath::kHosts;
  return best;
}

}  // namespace mge
