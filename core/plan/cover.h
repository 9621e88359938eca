// SPDX-License-Identifier: Apache-2.0
// Cover: groups of nodes that one kernel computes, the device of each group, and its candidates.
//
// A backend may compute several nodes in one kernel (a claim), and no backend may be able to compute a node. This stage
// decides both, such that every node belongs to exactly one group and the groups form no cycle. Algorithm, greedy:
//   1. Defers the nodes that need a tensor of unknown shape, and all nodes that depend on those (the continuation).
//   2. Assigns devices to the other nodes that backends can see (partition.h). Collectives go to the first device that has
//      them. Updates go to the first device, each together with the node that computes its value if a kernel of that node
//      can write to the target (updates.h).
//   3. Gives small nodes on values in host memory to the core, if the settings want that (host_compute.h).
//   4. For each device in order of preference: tries its claims, the greatest benefit first. A claim becomes a group if its
//      nodes are free, no path leaves it and enters it again, and the backend has a kernel. Then each node of the device
//      that is still free becomes a group of its own if the device has a kernel.
//   5. Offers the nodes that their own device cannot compute to the other devices, in order of preference.
//   6. Nodes that only change the shape become aliases. The core computes the rest with the reference evaluators.
//   7. Sorts the groups topologically (Kahn's algorithm, 1962).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/kernel/abi_graph.h"
#include "core/kernel/candidate.h"
#include "core/plan/plan.h"
#include "core/plan/plan_context.h"

namespace mge {

// The attributes of a reference evaluator: plain loops in one thread, one output at a time.
inline constexpr uint64_t kEvaluatorAttributes =
    MGE_KERNEL_REFERENCE | MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

// Nodes that are computed together.
struct Group {
  Unit::Kind kind = Unit::Kind::kKernel;  // kKernel, kReference, kHost, kAlias, kCollective, or kCopy (an update)
  std::vector<NodeId> nodes;              // in topological order
  Device* device = nullptr;
  std::string placement;        // reason for the device; empty if there was no choice
  std::string claim;            // name of the claim; empty for a single node
  std::vector<ValueId> inputs;  // operands without absent ones; captures of a host node last
  std::vector<ValueId> outputs;
  std::unique_ptr<AbiGraph> abi;  // kKernel: the nodes as the backend sees them
  // An update: the last output is written to the memory of inputs[target]. -1: no update. The problem may not have that
  // input.
  int target = -1;
  std::vector<int32_t> write_modes;   // mge_problem::write_modes; empty: all MGE_WRITE
  std::vector<mge_in_place> aliases;  // mge_problem::aliases
  CandidateList candidates;           // kKernel: `offered` is never empty
  std::vector<Refusal> refused;       // kReference: reasons of the backends
};

// The result of CoverGraph().
struct Cover {
  std::vector<Group> groups;          // in topological order
  std::vector<NodeId> deferred;       // nodes of the continuation, in topological order
  std::vector<bool> deferred_values;  // by ValueId: true if a node of the continuation writes the value
  std::vector<Alternative> dropped_claims;
  // The groups whose fastest kernel compiles code for each size and was therefore not chosen (CoverGraph with `varies`), and the
  // estimated time that their other kernels take longer in a run.
  int avoided_compiling = 0;
  double avoided_us = 0;

  // Returns true if the continuation computes the value.
  bool IsDeferred(ValueId v) const { return deferred_values[v]; }
};

inline bool IsConstantValue(const Graph& graph, ValueId v) { return graph.value(v).role == Role::kConstant; }

// Returns the number of uses of each value: as an input or capture of a node, and as an output of the graph.
std::vector<int32_t> CountUses(const Graph& graph);

// Returns the problem of a group for enumerate() and prepare(). It points into group.abi.
mge_problem ProblemOf(const Group& group, uint32_t threads);

// Returns the cover of the graph. Fails with kOverBudget if a value fits into no memory and is not inside of a claimed
// group. Fails with kUnsupportedOp or kUnsupportedFeature if neither a backend nor the core may compute a node. Fails if `stop`
// (nullable) is set.
// The graph must outlive the cover. `places` are those of the graph's inputs and outputs. `varies`, by value, is nullptr unless
// plans for other sizes are derived from the cover. A group that uses such a value then gets no kernel that compiles code for each
// size, unless other kernels are much slower or would pack large constants a second time.
absl::StatusOr<Cover> CoverGraph(const Graph& graph, const IoPlaces& places, const PlanContext& context,
                                 const StopControl* stop, const std::vector<bool>* varies = nullptr);

}  // namespace mge
