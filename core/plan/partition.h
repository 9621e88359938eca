// SPDX-License-Identifier: Apache-2.0
// Which device each node should go to: as it is annotated, as the devices are able to, else by a balanced cut.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/program.h"
#include "core/plan/value_sizes.h"

namespace mge {

inline constexpr int kAnyDevice = -1;

struct DeviceWish {
  int device = kAnyDevice;  // index into the context's devices
  std::string reason;       // for --why; empty where there was nothing to decide
};

// One wish for each node of the graph. `nodes`: those that backends may see, in topological order. Where the model is
// divided among several devices, each of these nodes gets one of them: contiguous parts of about equal cost, cut where few
// bytes cross, and not through a group that one of them offers to compute together unless there is no other place.
absl::StatusOr<std::vector<DeviceWish>> AssignDevices(const Graph& graph, const PlanContext& context,
                                                      std::span<const NodeId> nodes, std::span<const int32_t> uses,
                                                      const ValueSizes& sizes);

}  // namespace mge
