// SPDX-License-Identifier: Apache-2.0
#include "tests/core/kvstore/simulated/cluster.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace mge::simulated {
namespace {

// Runs rounds of messages.
class Run {
 public:
  explicit Run(const Cluster& cluster)
      : c_(cluster),
        work_(c_.group.ranks, 0),
        received_(c_.group.ranks, 0),
        out_(c_.group.hosts(), 0),
        in_(c_.group.hosts(), 0) {}

  void Send(uint32_t from, uint32_t to, double bytes) {
    const uint32_t a = c_.host(from), b = c_.host(to);
    const MessageCosts& costs = a == b ? c_.costs.local : c_.costs.network;
    const double work = costs.message + (a == b ? bytes * costs.byte : 0);
    work_[from] += work;
    work_[to] += work;
    received_[to] += bytes;
    if (a != b) out_[a] += bytes * costs.byte, in_[b] += bytes * costs.byte;
    waits_ = std::max(waits_, costs.round);
  }
  // Ends a round. `sums`: the receivers add the bytes that they have received.
  void EndRound(bool sums) {
    double moves = 0;
    for (uint32_t host = 0; host < c_.group.hosts(); ++host) moves = std::max({moves, out_[host], in_[host]});
    end_ += waits_ + std::max(moves, TimeOfCores(work_));
    if (sums) {
      for (double& bytes : received_) bytes *= c_.costs.summed_byte;
      end_ += TimeOfCores(received_);
    }
    waits_ = 0;
    for (auto* all : {&work_, &received_, &out_, &in_}) std::ranges::fill(*all, 0);
  }
  double end() const { return end_; }

 private:
  // Returns the time that the cores need for the work of the ranks. A rank uses one core at a time.
  double TimeOfCores(std::span<const double> work) const {
    double time = 0;
    for (uint32_t first = 0; first < work.size(); first += c_.group.ranks_per_host) {
      const auto own = work.subspan(first, c_.group.ranks_per_host);
      const double all = std::accumulate(own.begin(), own.end(), 0.0);
      time = std::max({time, *std::ranges::max_element(own), all / c_.cores_per_host});
    }
    return time;
  }

  const Cluster& c_;
  double end_ = 0, waits_ = 0;
  std::vector<double> work_;      // by rank: seconds of a core in this round
  std::vector<double> received_;  // by rank: bytes
  std::vector<double> out_, in_;  // by host: seconds of its adapter
};

// Sends `bytes` from each rank of a group to each other one.
void SendToAll(Run& run, std::span<const uint32_t> group, double bytes) {
  const size_t n = group.size();
  for (size_t distance = 1; distance < n; ++distance) {
    for (size_t i = 0; i < n; ++i) run.Send(group[i], group[(i + distance) % n], bytes);
  }
}

void SumByTree(Run& run, uint32_t ranks, double bytes) {
  uint32_t step = 1;
  for (; step < ranks; step *= 2) {
    for (uint32_t r = 0; r + step < ranks; r += 2 * step) run.Send(r + step, r, bytes);
    run.EndRound(true);
  }
  for (step /= 2; step > 0; step /= 2) {
    for (uint32_t r = 0; r + step < ranks; r += 2 * step) run.Send(r, r + step, bytes);
    run.EndRound(false);
  }
}

void SumByRing(Run& run, uint32_t ranks, double bytes) {
  for (uint32_t round = 0; round < 2 * (ranks - 1); ++round) {
    for (uint32_t r = 0; r < ranks; ++r) run.Send(r, (r + 1) % ranks, bytes / ranks);
    run.EndRound(round < ranks - 1);
  }
}

void SumByHosts(Run& run, const GroupShape& c, double bytes) {
  const double part = bytes / c.ranks_per_host;
  auto within_hosts = [&] {
    for (uint32_t host = 0; host < c.hosts(); ++host) {
      std::vector<uint32_t> group(c.ranks_per_host);
      std::iota(group.begin(), group.end(), host * c.ranks_per_host);
      SendToAll(run, group, part);
    }
  };
  auto between_hosts = [&] {
    for (uint32_t local = 0; local < c.ranks_per_host; ++local) {
      std::vector<uint32_t> group;
      for (uint32_t r = local; r < c.ranks; r += c.ranks_per_host) group.push_back(r);
      SendToAll(run, group, part / c.hosts());
    }
  };
  const std::pair<std::function<void()>, bool> rounds[] = {
      {within_hosts, true}, {between_hosts, true}, {between_hosts, false}, {within_hosts, false}};
  for (const auto& [send, sums] : rounds) {
    send();
    run.EndRound(sums);
  }
}

}  // namespace

std::string_view Name(Way way) {
  switch (way) {
    case Way::kWhole: return "whole";
    case Way::kParts: return "parts";
    case Way::kRing: return "ring";
    case Way::kTree: return "tree";
    case Way::kHosts: return "hosts";
  }
  return "";
}

double TimeOfSum(const Cluster& cluster, Way way, double bytes) {
  const uint32_t ranks = cluster.group.ranks;
  Run run(cluster);
  std::vector<uint32_t> all(ranks);
  std::iota(all.begin(), all.end(), 0u);
  if (way == Way::kTree) SumByTree(run, ranks, bytes);
  if (way == Way::kRing) SumByRing(run, ranks, bytes);
  if (way == Way::kHosts) SumByHosts(run, cluster.group, bytes);
  if (way == Way::kWhole) {
    SendToAll(run, all, bytes);
    run.EndRound(true);
  }
  if (way == Way::kParts) {
    for (const bool sums : {true, false}) {
      SendToAll(run, all, bytes / ranks);
      run.EndRound(sums);
    }
  }
  return run.end();
}

Way WayOf(SumPath path) {
  switch (path) {
    case SumPath::kWhole: return Way::kWhole;
    case SumPath::kParts: return Way::kParts;
    case SumPath::kHosts: return Way::kHosts;
  }
  return Way::kWhole;
}

double Efficiency(double forward_s, std::span<const double> bucket_s, std::span<const double> sum_s) {
  double computed = forward_s, summed = 0;
  for (size_t i = 0; i < bucket_s.size(); ++i) {
    computed += bucket_s[i];
    summed = std::max(computed, summed) + sum_s[i];
  }
  return computed / std::max(computed, summed);
}

}  // namespace mge::simulated
