// SPDX-License-Identifier: Apache-2.0
// Passes: what the planner does to a graph before it looks at devices. Rows in one table, run by one runner.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/plugin/stop.h"

namespace mge {

struct PassContext {
  HostAllocator* allocator = nullptr;      // for folded constants
  // Gets the bytes of constants that could be computed now, had the allocator's budget room for them; nullable.
  int64_t* denied_bytes = nullptr;
  std::span<const std::string> skip = {};  // names of passes and rewrites to leave out
  // Called after every pass that changed something; for --dump and tests. May be empty.
  void (*trace)(void* self, std::string_view pass, int changes, const Graph& graph) = nullptr;
  void* trace_self = nullptr;
  const StopControl* stop = nullptr;       // of the run that the graph is simplified for; nullable
  std::vector<int>* rewrite_counts = nullptr;  // gets the changes of each row of AllRewrites()

  bool Skips(std::string_view name) const;
  absl::Status CheckStop() const { return stop ? stop->CheckStop() : absl::OkStatus(); }
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  // The number of changes made.
  absl::StatusOr<int> (*run)(Graph& graph, const PassContext& context);
};

// In the order in which they run.
std::span<const Pass> AllPasses();

// Runs all passes until nothing changes (at most eight rounds), verifying the graph after each one that changed it.
// Appends "name: n changes" to `log` (nullable), rewrites one by one. Ends with Compact().
absl::Status RunPasses(Graph& graph, const PassContext& context, std::vector<std::string>* log);

// kBadSetting unless every name is that of a pass, of a rewrite or, with a dot, of a backend's fusion
// ("cpu.elementwise_chain"), which only that backend knows.
absl::Status CheckSkippedNames(std::span<const std::string> names);

// The passes, one file each.
absl::StatusOr<int> RunInferTypes(Graph& graph, const PassContext& context);
absl::StatusOr<int> RunRewrites(Graph& graph, const PassContext& context);
absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context);
absl::StatusOr<int> RemoveIdentities(Graph& graph, const PassContext& context);
absl::StatusOr<int> MergeTransposes(Graph& graph, const PassContext& context);
absl::StatusOr<int> MergeEqualNodes(Graph& graph, const PassContext& context);
absl::StatusOr<int> RemoveDeadNodes(Graph& graph, const PassContext& context);

}  // namespace mge
