// SPDX-License-Identifier: Apache-2.0
// Cover: which nodes are computed together, on which device, and the candidates of each group.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/plan/abi_graph.h"
#include "core/plan/candidate.h"
#include "core/plan/plan.h"
#include "core/plan/program.h"
#include "core/plan/value_sizes.h"

namespace mge {

// The attributes of steps by reference: plain loops in one thread, one output at a time.
inline constexpr uint64_t kEvaluatorAttributes =
    MGE_KERNEL_REFERENCE | MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_BATCH_INVARIANT;

struct Group {
  Unit::Kind kind = Unit::Kind::kKernel;  // kKernel, kReference, kHost or kAlias
  std::vector<NodeId> nodes;              // in topological order
  Device* device = nullptr;
  std::string placement;                  // why there, if there was a choice
  std::string claim;
  std::vector<ValueId> inputs;            // operands, present ones only; captures of a host node last
  std::vector<ValueId> outputs;
  std::unique_ptr<AbiGraph> abi;          // kKernel
  CandidateList candidates;               // kKernel: never empty
  std::vector<Refusal> refused;           // kReference: why no backend does it
  std::string reason;                     // why its kernel, if that is not by cost
};

struct Cover {
  std::vector<Group> groups;              // in an order in which producers come first
  std::vector<NodeId> deferred;           // the continuation's nodes
  std::vector<Alternative> dropped_claims;
};

// uses[v]: consumers of v in the graph, uses as a graph output included.
std::vector<int32_t> CountUses(const Graph& graph);

// The problem of a group, for enumerate and prepare.
mge_problem ProblemOf(const Group& group, uint32_t threads);

// kOverBudget for a value that no memory holds, unless a claimed group spares it.
absl::StatusOr<Cover> CoverGraph(const Graph& graph, const PlanContext& context, std::span<const int32_t> uses,
                                 const ValueSizes& sizes);

}  // namespace mge
