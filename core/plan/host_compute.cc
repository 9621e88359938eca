// SPDX-License-Identifier: Apache-2.0
#include "core/plan/host_compute.h"

#include <algorithm>

#include "core/kernel/abi_graph.h"
#include "core/ops/effects.h"
#include "core/ops/op.h"

namespace mge {

bool FitsHostCompute(ValueKind kind, const TensorType& type) {
  return kind == ValueKind::kTensor && type.IsStatic() && Elements(type.dims) <= kHostComputeElements;
}

std::vector<bool> HostComputable(const Graph& graph, const IoPlaces& places, std::span<const NodeId> order) {
  std::vector<bool> known(graph.value_count(), false), result(graph.node_count(), false);
  for (ValueId v = 0; v < graph.value_count(); ++v) known[v] = graph.value(v).role == Role::kConstant;
  for (size_t i = 0; i < graph.inputs().size(); ++i) known[graph.inputs()[i]] = !places.input(i).on_device();
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    auto all_of = [](std::span<const ValueId> values, auto test) {
      return std::all_of(values.begin(), values.end(), [&](ValueId v) { return v == kNone || test(v); });
    };
    auto is_known = [&](ValueId v) { return known[v]; };
    auto is_small = [&](ValueId v) { return FitsHostCompute(graph.value(v).kind, graph.value(v).type); };
    const bool visible = VisibleToBackends(graph, node);
    const bool view = visible && node.def->KeepsBytes() && all_of(node.inputs, is_known);
    result[id] = visible && node.def->Is(kElementwise) && IsPure(*node.def) && node.def->eval &&
                 all_of(node.inputs, is_known) && all_of(node.inputs, is_small) && all_of(node.outputs, is_small);
    for (ValueId v : node.outputs) {
      if (v != kNone) known[v] = result[id] || view || node.def->Is(kHostOnly);
    }
  }
  return result;
}

}  // namespace mge
