// SPDX-License-Identifier: Apache-2.0
// Partition: the device that each node should go to.
//
// If a model is divided among several devices, each should get about the same work, and few bytes should cross between them.
// Algorithm:
//   1. A node with an annotation goes to the device that the annotation names.
//   2. A node for which exactly one device has a kernel goes to that device.
//   3. The other nodes are cut, in topological order, into one contiguous part per device. Each device should get an equal
//      share of the estimated cost, nodes of steps 1 and 2 included. A cut must not divide a group that a device offers to
//      compute together. Within 15 % of a share around the ideal cut, the place where the fewest bytes cross is used. If
//      there is none, the nearest cut that divides no group is used, else the nearest cut.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/memory/value_sizes.h"
#include "core/plan/plan_context.h"

namespace mge {

inline constexpr int kAnyDevice = -1;

// The device that a node should go to. The cover uses another one if that device has no kernel.
struct DeviceWish {
  int device = kAnyDevice;  // index into PlanContext::devices
  std::string reason;       // for --why; empty if there was no choice
};

// Returns one wish for each node of the graph, by NodeId. `nodes` are the nodes that backends can see, in topological order;
// all others get kAnyDevice. If context.split is 1, only annotated nodes get a device. Fails if a backend fails,
// or if `stop` (nullable) is set.
absl::StatusOr<std::vector<DeviceWish>> AssignDevices(const Graph& graph, const PlanContext& context,
                                                      std::span<const NodeId> nodes, std::span<const int32_t> uses,
                                                      const ValueSizes& sizes, const StopControl* stop);

}  // namespace mge
