// SPDX-License-Identifier: Apache-2.0
// The simulated cluster, held to sums that are measured here. The costs of messages are those of two processes; the times of four and
// eight follow from them. The bounds are loose, and the test skips where other programs keep the processors busy.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tests/core/kvstore/simulated/cluster.h"
#include "tests/plugins/mpi/mpi_command.h"

namespace mge::simulated {
namespace {

constexpr double kFactor = 4;  // between a simulated and a measured time

class SimulatedCluster : public MpiCommand {
 protected:
  // Returns the measured times in seconds, by the bytes of the array.
  std::map<double, double> Measure(uint32_t ranks) {
    const Outcome o = Shell(fmt::format("mpirun -n {} $TOOL doctor --collective --json", ranks));
    EXPECT_EQ(o.code, 0) << o.err;
    std::map<double, double> out;
    const auto report = nlohmann::json::parse(o.out);
    for (const auto& row : report["sums"]) out[row["bytes"]] = row["seconds"];
    return out;
  }
};

// A measured sum begins with a round of headers.
double SimulatedTime(const Cluster& cluster, double bytes) {
  return TimeOfSum(cluster, Way::kWhole, 32) + TimeOfSum(cluster, WayOf(FastestSumPath(cluster.group, bytes)), bytes);
}

TEST_F(SimulatedCluster, PredictsTheTimesOfMoreProcesses) {
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > std::thread::hardware_concurrency()) {
    GTEST_SKIP() << "other programs keep the processors busy (load " << load << "), so that times mean nothing";
  }
  const std::map<double, double> two = Measure(2);
  ASSERT_GE(two.size(), 3u);
  const auto [small, shortest] = *two.begin();
  const auto [big, longest] = *two.rbegin();
  Cluster cluster = {{2, 2}, std::thread::hardware_concurrency()};
  MessageCosts& local = cluster.costs.local;
  local.message = shortest / 20;
  local.round = shortest / 2 - 2 * local.message;  // two rounds: of headers and of arrays
  local.byte = 0;
  const double adds = TimeOfSum(cluster, Way::kParts, big);
  local.byte = std::max(longest - adds, longest / 10) / (2 * big);  // each process sends and receives half of it twice
  std::string table;
  for (const uint32_t ranks : {2u, 4u, 8u}) {
    cluster.group = {ranks, ranks};
    for (const auto& [bytes, seconds] : Measure(ranks)) {
      const double simulated = SimulatedTime(cluster, bytes);
      table += fmt::format("{} ranks, {:>11} bytes: measured {:9.3f} ms, simulated {:9.3f} ms\n", ranks, bytes,
                           1e3 * seconds, 1e3 * simulated);
      EXPECT_LE(simulated, kFactor * seconds) << ranks << " ranks, " << bytes << " bytes";
      EXPECT_GE(simulated, seconds / kFactor) << ranks << " ranks, " << bytes << " bytes";
    }
  }
  std::printf("%.0f ns per KiB, %.1f us per round\n%s", 1024e9 * local.byte, 1e6 * local.round, table.c_str());
}

}  // namespace
}  // namespace mge::simulated
