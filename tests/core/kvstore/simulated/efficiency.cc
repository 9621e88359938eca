// SPDX-License-Identifier: Apache-2.0
// simulate_training [STEP_SECONDS...]: prints the simulated efficiency of data-parallel training at several numbers of ranks, for
// steps of so many seconds (default: 0.2 and 1) and networks of 25 and 100 Gbit/s. A host has 8 ranks with a core each.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/core/kvstore/simulated/cluster.h"
#include "tests/core/kvstore/simulated/models.h"

namespace mge::simulated {
namespace {

constexpr uint32_t kRanksPerHost = 8;

void Print(const ModelShape& model, double step_s, double gbit_s) {
  const std::vector<Layer> buckets = Buckets(model.layers, 1'000'000);
  std::printf("%s, %zu buckets, a step of %g s, adapters of %g Gbit/s\n  ranks", std::string(model.name).c_str(),
              buckets.size(), step_s, gbit_s);
  for (const Way way : kWays) std::printf("%14s", std::string(Name(way)).c_str());
  std::printf("%14s\n", "chosen");
  for (const uint32_t ranks : {8u, 64u, 512u, 4096u}) {
    Cluster cluster = {{ranks, kRanksPerHost}, kRanksPerHost};
    cluster.costs.network.byte = 8e-9 / gbit_s;
    std::vector<double> work, chosen;
    for (const Layer& bucket : buckets) work.push_back(bucket.work * step_s * (1 - model.forward));
    std::printf("%7u", ranks);
    for (const Way way : kWays) {
      std::map<int64_t, double> known;
      std::vector<double> sums;
      for (const Layer& bucket : buckets) {
        const auto [at, is_new] = known.try_emplace(bucket.parameters, 0);
        if (is_new) at->second = TimeOfSum(cluster, way, 4.0 * static_cast<double>(bucket.parameters));
        sums.push_back(at->second);
      }
      std::printf("%13.1f%%", 100 * Efficiency(step_s * model.forward, work, sums));
    }
    for (const Layer& bucket : buckets) {
      const double bytes = 4.0 * static_cast<double>(bucket.parameters);
      chosen.push_back(TimeOfSum(cluster, WayOf(FastestSumPath(cluster.group, bytes)), bytes));
    }
    std::printf("%13.1f%%\n", 100 * Efficiency(step_s * model.forward, work, chosen));
  }
}

}  // namespace
}  // namespace mge::simulated

int main(int argc, char** argv) {
  std::vector<double> steps;
  for (int i = 1; i < argc; ++i) steps.push_back(std::atof(argv[i]));
  if (steps.empty()) steps = {.2, 1};
  for (const double step_s : steps) {
    for (const double gbit_s : {25, 100}) {
      mge::simulated::Print(mge::simulated::ResNet50(), step_s, gbit_s);
      mge::simulated::Print(mge::simulated::BertBase(), step_s, gbit_s);
    }
  }
}
