// SPDX-License-Identifier: Apache-2.0
// Passes: changes of the graph before devices are considered. They are rows of one table, and RunPasses() runs them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/tensor.h"
#include "core/graph/graph.h"
#include "core/ops/op.h"
#include "core/plan/progress.h"
#include "core/plugin/stop.h"

namespace mge {

// The limits of constant folding. A node beyond them is computed at run time.
struct FoldLimits {
  int64_t bytes = 0;   // of all constants of the graph at one time, and of the memory that one evaluation takes
  double flops = 2e9;  // operations of all evaluations together, which the plain loops of the evaluators take seconds for
};

// Constants may grow to four times their bytes, as 8-bit weights do, and by this number of bytes. A body of control flow may
// fold less, since a small file can have many bodies.
inline constexpr int64_t kFoldBytes = int64_t{64} << 20, kFoldBytesOfBody = int64_t{4} << 20;

// Returns the bytes of the constants of a graph.
int64_t ConstantBytes(const Graph& graph);

struct PassContext {
  HostAllocator* allocator = nullptr;  // memory for folded constants; must not be null
  // Receives the bytes of constants that were not folded because the allocator's budget refused them; nullable.
  int64_t* denied_bytes = nullptr;
  int64_t fold_bytes = kFoldBytes;
  FoldLimits* fold_limits = nullptr;       // set by RunPasses()
  std::span<const std::string> skip = {};  // names of passes and rewrites to skip
  // Callback after every pass that changed the graph, for --dump and tests; optional.
  void (*trace)(void* self, std::string_view pass, int changes, const Graph& graph) = nullptr;
  void* trace_self = nullptr;
  Progress* progress = nullptr;                // nullable
  const StopControl* stop = nullptr;           // stop flag of the run that waits for the graph; nullable
  std::vector<int>* rewrite_counts = nullptr;  // receives the number of changes of each row of AllRewrites()
  // Returns whether every device has kernels for an ai.onnx operator. Empty: none has.
  std::function<bool(std::string_view op)> has_kernels = {};
  // Returns whether every device has a kernel for a node of a function operator. Empty: none has.
  std::function<bool(const Graph& graph, NodeId node)> keeps_function = {};
  bool first_round = false;         // set by RunPasses()
  bool* waits_for_round = nullptr;  // set to true by a pass that has left work to the second round; nullable

  bool Skips(std::string_view name) const;
  absl::Status CheckStop() const { return mge::CheckStop(stop); }
  absl::Status InferTypes(Graph& graph) const {
    return mge::InferTypes(graph, [this] { return CheckStop(); });
  }
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  // Returns the number of changes.
  absl::StatusOr<int> (*run)(Graph& graph, const PassContext& context);
};

// Returns the passes in the order in which they run.
std::span<const Pass> AllPasses();

// Runs all passes in rounds until a round changes nothing, at most eight rounds. Verifies the graph after each pass that
// changed it. Appends "name: n changes" to `log` (nullable), with one line per rewrite. Ends with graph.Compact(), so ids
// change.
absl::Status RunPasses(Graph& graph, const PassContext& context, std::vector<std::string>* log);

// Fails with kBadSetting unless every name is a pass, a rewrite, or a backend's fusion. A name with a dot
// ("cpu.elementwise_chain") is taken for a fusion without a check, since only the backend knows its fusions.
absl::Status CheckSkippedNames(std::span<const std::string> names);

// The passes, one file each. Each is documented by its row in the table (pass.cc).
absl::StatusOr<int> RunInferTypes(Graph& graph, const PassContext& context);
absl::StatusOr<int> RunRewrites(Graph& graph, const PassContext& context);
absl::StatusOr<int> ExpandFunctions(Graph& graph, const PassContext& context);
absl::StatusOr<int> FoldConstants(Graph& graph, const PassContext& context);
absl::StatusOr<int> RemoveIdentities(Graph& graph, const PassContext& context);
absl::StatusOr<int> MergeTransposes(Graph& graph, const PassContext& context);
absl::StatusOr<int> MergeEqualNodes(Graph& graph, const PassContext& context);
absl::StatusOr<int> RemoveDeadNodes(Graph& graph, const PassContext& context);

}  // namespace mge
