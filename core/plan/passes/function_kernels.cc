// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/function_kernels.h"

#include <algorithm>
#include <vector>

#include "core/kernel/abi_graph.h"
#include "core/kernel/candidate.h"
#include "core/kernel/operator_query.h"
#include "core/ops/op.h"

namespace mge {

bool FunctionKernels::HasName(const OpDef& def) {
  auto [known, is_new] = named_.try_emplace(&def, false);
  if (!is_new) return known->second;
  const OperatorShape shape = {def.domain, def.name, 1, static_cast<int>(def.inputs.size()),
                               static_cast<int>(def.outputs.size())};
  return known->second = std::ranges::all_of(context_.devices, [&](Device* device) {
           return device != context_.services->host && HasOperator(*device, shape);
         });
}

bool FunctionKernels::Has(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!HasName(*node.def)) return false;
  const auto is_known = [&](ValueId v) { return v == kNone || graph.value(v).type.IsStatic(); };
  if (!std::ranges::all_of(node.inputs, is_known) || !std::ranges::all_of(node.outputs, is_known)) return true;
  const std::vector<int32_t> uses(static_cast<size_t>(graph.value_count()), 1);
  const AbiGraph one(graph, std::vector<NodeId>{id}, uses);
  const mge_problem problem = {sizeof(mge_problem), context_.threads, one.graph(), nullptr, nullptr, 0};
  return std::ranges::all_of(context_.devices, [&](Device* device) {
    absl::StatusOr<CandidateList> list = EnumerateCandidates(*device, problem, context_.kernels.ConstraintsOn(*device));
    return list.ok() && !list->offered.empty();
  });
}

}  // namespace mge
