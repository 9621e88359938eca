// SPDX-License-Identifier: Apache-2.0
// The shapes of a session's inputs under plan.static_input_shape: those of its first plan hold for all later runs.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/plan/plan_cache.h"

namespace mge {

// Thread-safe.
class FirstShapes {
 public:
  // Returns kBadInput if a plan for other shapes exists. `inputs` are in the order of the graph's inputs.
  absl::Status Check(const Graph& graph, std::span<const InputType> inputs) const;

  // Keeps the shapes of a new plan, if there was none before. Otherwise checks them.
  absl::Status Keep(const Graph& graph, std::span<const InputType> inputs);

 private:
  absl::Status CheckLocked(const Graph& graph, std::span<const InputType> inputs) const;

  mutable std::mutex mutex_;
  std::optional<std::vector<Shape>> shapes_;
};

}  // namespace mge
