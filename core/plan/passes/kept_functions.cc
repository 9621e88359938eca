// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/kept_functions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel/operator_query.h"
#include "core/ops/op.h"
#include "core/plan/cover.h"
#include "core/plan/kernels/unable.h"

namespace mge {
namespace {

class Keeper {
 public:
  explicit Keeper(const PlanContext& context) : context_(context) {}

  absl::StatusOr<bool> Keeps(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    if (!AllHave(node)) return false;
    const bool known =
        std::ranges::all_of(node.inputs, [&](ValueId v) { return v == kNone || graph.value(v).type.IsStatic(); });
    if (!known) return true;
    if (!VisibleToBackends(graph, node)) return false;
    Group group;
    group.nodes = {id};
    group.abi = std::make_unique<AbiGraph>(graph, group.nodes, std::vector<int32_t>(graph.value_count(), 1));
    const mge_problem problem = ProblemOf(group, context_.threads);
    for (Device* device : context_.devices) {
      MGE_ASSIGN_OR_RETURN(const CandidateList list,
                           CandidatesOf(context_, *device, problem, ConstraintsOn(context_, *device)));
      if (list.offered.empty()) return false;
    }
    return true;
  }

 private:
  // Returns whether every device has kernels of the node's operator.
  bool AllHave(const Node& node) {
    auto [at, added] = all_have_.try_emplace({node.domain, node.op}, false);
    if (!added) return at->second;
    const OperatorShape shape = {node.domain, node.op, node.def->since, static_cast<int>(node.inputs.size()),
                                 static_cast<int>(node.outputs.size())};
    at->second =
        std::ranges::all_of(context_.devices, [&](Device* d) { return d != context_.host && HasOperator(*d, shape); });
    return at->second;
  }

  const PlanContext& context_;
  std::map<std::pair<std::string, std::string>, bool> all_have_;  // by domain and operator
};

}  // namespace

std::function<absl::StatusOr<bool>(const Graph& graph, NodeId node)> FunctionKeeper(const PlanContext& context) {
  return [keeper = std::make_shared<Keeper>(context)](const Graph& graph, NodeId id) { return keeper->Keeps(graph, id); };
}

}  // namespace mge
