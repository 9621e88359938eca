// SPDX-License-Identifier: Apache-2.0
// Measures and checks the sums over the processes that a launcher started (mge doctor --collective).
#pragma once

#include <string>
#include <vector>

#include "core/engine/runtime.h"

namespace mge {

struct MeasuredSum {
  int64_t bytes = 0;   // of the array
  double seconds = 0;  // the shortest time of several sums; the slowest process counts
};

struct CollectiveFacts {
  Launch launch;
  std::string library;                 // that moves the messages
  std::vector<std::string> processes;  // their names, by rank
  std::vector<MeasuredSum> sums;
};

// Joins the other processes and sums arrays of several sizes with them. Fails with kUnsupportedFeature if there is one process
// or no MPI, with kRankFailed if a sum is wrong or a process fails.
absl::StatusOr<CollectiveFacts> CheckCollectives(Runtime& runtime);

}  // namespace mge
