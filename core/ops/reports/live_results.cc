// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reports/live_results.h"

#include <algorithm>

#include "core/base/dtype.h"
#include "core/ops/op.h"

namespace mge {
namespace {

size_t At(ValueId v) { return static_cast<size_t>(v); }

// Calls f(v) for each value that a node reads.
template <typename F>
void ForEachRead(const Node& node, F f) {
  for (const auto* list : {&node.inputs, &node.captures}) {
    for (ValueId v : *list) {
      if (v != kNone) f(v);
    }
  }
}

// Finds whose memory each value has, and where its life begins and ends.
void FindLives(const Graph& graph, LiveResults& out) {
  const auto count = At(graph.value_count());
  out.memory.resize(count);
  out.first.assign(count, LiveResults::kNowhere);
  out.last.assign(count, 0);
  for (ValueId v = 0; v < graph.value_count(); ++v) out.memory[At(v)] = v;
  for (size_t i = 0; i < out.order.size(); ++i) {
    const Node& node = graph.node(out.order[i]);
    if (node.def && node.def->KeepsBytes() && node.outputs[0] != kNone) {
      out.memory[At(node.outputs[0])] = out.memory[At(node.inputs[0])];
    }
    for (ValueId v : node.outputs) {
      if (v == kNone) continue;
      out.first[At(v)] = i;
      if (out.memory[At(v)] == v) out.last[At(v)] = i;  // until somebody reads it
    }
    ForEachRead(node, [&](ValueId v) { out.last[At(out.memory[At(v)])] = i; });
  }
  for (ValueId v : graph.outputs()) out.last[At(out.memory[At(v)])] = out.order.size();
}

}  // namespace

int64_t EstimatedBytes(const Value& value) {
  if (value.kind != ValueKind::kTensor || !value.type.has_rank) return 0;
  int64_t elements = 1;
  for (int64_t size : value.type.dims) elements *= size < 0 ? kUnknownSize : size;
  return elements * ElementBytes(value.type.dtype);
}

absl::StatusOr<LiveResults> FindLiveResults(const Graph& graph) {
  LiveResults out;
  MGE_ASSIGN_OR_RETURN(out.order, graph.TopologicalOrder());
  FindLives(graph, out);
  out.bytes.reserve(out.order.size());
  std::vector<std::vector<ValueId>> ends(out.order.size() + 1);  // by place: the results that end there
  int64_t live = 0;
  for (size_t i = 0; i < out.order.size(); ++i) {
    const Node& node = graph.node(out.order[i]);
    int64_t made = 0, reusable = 0;  // bytes of the results, and of the largest input in whose place the node may compute
    for (ValueId v : node.outputs) {
      if (v == kNone || out.memory[At(v)] != v) continue;
      made += EstimatedBytes(graph.value(v));
      ends[out.last[At(v)]].push_back(v);
    }
    if (node.def && node.def->Is(kElementwise)) {
      ForEachRead(node, [&](ValueId v) {
        const ValueId source = out.memory[At(v)];
        if (out.first[At(source)] != LiveResults::kNowhere && out.last[At(source)] == i) {
          reusable = std::max(reusable, EstimatedBytes(graph.value(source)));
        }
      });
    }
    live += made;
    out.bytes.push_back(live - std::min(reusable, made));
    if (out.bytes[i] > out.peak) out.peak = out.bytes[i], out.at = i;
    for (ValueId v : ends[i]) live -= EstimatedBytes(graph.value(v));
  }
  return out;
}

}  // namespace mge
