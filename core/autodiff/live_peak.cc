// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/live_peak.h"

#include <algorithm>
#include <vector>

#include "core/base/dtype.h"
#include "core/ops/op.h"

namespace mge {

int64_t EstimatedBytes(const Value& value) {
  if (value.kind != ValueKind::kTensor || !value.type.has_rank) return 0;
  int64_t elements = 1;
  for (int64_t size : value.type.dims) elements *= size < 0 ? kUnknownSize : size;
  return elements * ElementBytes(value.type.dtype);
}

absl::StatusOr<int64_t> LivePeak(const Graph& graph) {
  MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  const auto count = static_cast<size_t>(graph.value_count());
  std::vector<ValueId> memory(count);  // the value whose memory a value has
  std::vector<int64_t> readers(count, 0), bytes(count, 0);
  const auto at = [](ValueId v) { return static_cast<size_t>(v); };
  const auto for_inputs = [&](const Node& node, auto f) {
    for (const auto* list : {&node.inputs, &node.captures}) {
      for (ValueId v : *list) {
        if (v != kNone) f(memory[at(v)]);
      }
    }
  };
  for (ValueId v = 0; v < graph.value_count(); ++v) memory[at(v)] = v;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.def && node.def->KeepsBytes() && node.outputs[0] != kNone)
      memory[at(node.outputs[0])] = memory[at(node.inputs[0])];
    for_inputs(node, [&](ValueId v) { ++readers[at(v)]; });
  }
  for (ValueId v : graph.outputs()) ++readers[at(memory[at(v)])];

  int64_t live = 0, peak = 0;
  for (NodeId id : order) {
    const Node& node = graph.node(id);
    int64_t reusable = 0;  // bytes of the largest input in whose place the node may compute
    if (node.def && node.def->Is(kElementwise)) {
      for_inputs(node, [&](ValueId v) {
        if (readers[at(v)] == 1) reusable = std::max(reusable, bytes[at(v)]);
      });
    }
    int64_t made = 0;
    for (ValueId v : node.outputs) {
      if (v == kNone || memory[at(v)] != v) continue;
      bytes[at(v)] = EstimatedBytes(graph.value(v));
      made += bytes[at(v)];
    }
    live += made;
    peak = std::max(peak, live - std::min(reusable, made));
    for (ValueId v : node.outputs) {
      if (v != kNone && memory[at(v)] == v && readers[at(v)] == 0) live -= bytes[at(v)];
    }
    for_inputs(node, [&](ValueId v) {
      if (--readers[at(v)] == 0) live -= bytes[at(v)];
    });
  }
  return peak;
}

}  // namespace mge
