// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/autodiff.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/effects.h"
#include "core/ops/gradient.h"
#include "core/ops/reports/flops.h"
#include "core/ops/reports/live_results.h"
#include "fmt/format.h"

namespace mge {
namespace {

bool CarriesGradient(const Value& v) { return v.kind == ValueKind::kTensor && kFloating.Contains(v.type.dtype); }

// Adds the gradients of one graph.
class Backward {
 public:
  // `again`, by node: it is computed again for the gradients.
  Backward(Graph& graph, std::vector<bool> again)
      : graph_(graph), again_(std::move(again)), sums_(static_cast<size_t>(graph.value_count()), kNone) {}

  absl::StatusOr<std::vector<ValueId>> Run(ValueId loss, std::span<const ValueId> wanted) {
    MGE_RETURN_IF_ERROR(Seed(loss));
    MGE_RETURN_IF_ERROR(GoBackwards(graph_, wanted, sums_, [this](NodeId id) { return SourceOf(id); }));
    std::vector<ValueId> out;
    for (ValueId v : wanted) out.push_back(sums_[static_cast<size_t>(v)]);
    return out;
  }

 private:
  // The gradient of the loss by itself is 1.
  absl::Status Seed(ValueId loss) {
    const Value& v = graph_.value(loss);
    const bool fits = CarriesGradient(v) && v.type.IsStatic() && Elements(v.type.dims) == 1;
    if (!fits) {
      return Fail(errors::kInvalidGraph, fmt::format("'{}' cannot be a loss", v.name),
                  {.what = fmt::format("its type is {}; a loss has one floating element", TypeText(v.kind, v.type))});
    }
    Tensor one;
    MGE_ASSIGN_OR_RETURN(one, Tensor::Create(v.type.dtype, v.type.dims));
    DispatchFloating(v.type.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      one.MutableData<T>()[0] = static_cast<T>(1.0f);
    });
    sums_[static_cast<size_t>(loss)] = AddFreshConstant(graph_, v.name + ".gradient", std::move(one));
    return absl::OkStatus();
  }

  GradientSource SourceOf(NodeId id) {
    const Node node = graph_.node(id);  // a copy: mirrors are new nodes
    GradientSource source = {IsAgain(id) ? MirrorOf(id) : id, {}};
    for (ValueId v : node.inputs) source.inputs.push_back(Mirrored(v));
    return source;
  }
  bool IsAgain(NodeId id) const { return static_cast<size_t>(id) < again_.size() && again_[static_cast<size_t>(id)]; }
  // Returns the value, or an equal one that is computed again.
  ValueId Mirrored(ValueId v) {
    const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
    if (producer == kNone || !IsAgain(producer)) return v;
    const auto slot = std::ranges::find(graph_.node(producer).outputs, v) - graph_.node(producer).outputs.begin();
    return graph_.node(MirrorOf(producer)).outputs[static_cast<size_t>(slot)];
  }
  // Returns the node that computes again what `id` does. It is added at its first use, so that it runs late.
  NodeId MirrorOf(NodeId id) {
    if (graph_.node(id).recomputed) return id;
    if (const auto known = mirrors_.find(id); known != mirrors_.end()) return known->second;
    Node copy = graph_.node(id);
    copy.recomputed = true;
    for (ValueId& v : copy.inputs) v = Mirrored(v);
    for (ValueId& v : copy.outputs) {
      if (v != kNone) v = graph_.AddTemporary(graph_.value(v).name + "_mirror", graph_.value(v).type);
    }
    return mirrors_[id] = graph_.AddNode(std::move(copy));
  }
  Graph& graph_;
  const std::vector<bool> again_;  // by node of the forward graph
  std::unordered_map<NodeId, NodeId> mirrors_;
  std::vector<ValueId> sums_;  // by value of the forward graph: its gradient
};

// Returns the bytes that the results and gradients need if these nodes are computed again; the most if they cannot be.
int64_t PeakWith(const Graph& graph, ValueId loss, std::span<const ValueId> wanted, std::vector<bool> again) {
  Graph copy = graph;
  absl::StatusOr<std::vector<ValueId>> gradients = Backward(copy, std::move(again)).Run(loss, wanted);
  if (!gradients.ok() || !InferTypes(copy).ok()) return std::numeric_limits<int64_t>::max();
  const absl::StatusOr<LiveResults> live = FindLiveResults(copy);  // updates read the gradients at once
  return live.ok() ? live->peak : std::numeric_limits<int64_t>::max();
}

// Returns, by node, which are computed again for the gradients.
absl::StatusOr<std::vector<bool>> ChooseAgain(const Graph& graph, ValueId loss, std::span<const ValueId> wanted,
                                              const GradientOptions& options) {
  const auto peak_with = [&](std::vector<bool> again) { return PeakWith(graph, loss, wanted, std::move(again)); };
  std::vector<bool> mirrored(static_cast<size_t>(graph.node_count()), false);
  for (NodeId id = 0; options.mirror && id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    mirrored[static_cast<size_t>(id)] = !node.dead && IsPure(*node.def) && IsCheap(node);
  }
  if (!options.sublinear) {
    // Computing again needs buffers of its own, which may be more than it saves.
    if (options.mirror && peak_with(mirrored) > peak_with({})) return std::vector<bool>();
    return mirrored;
  }
  const auto with_mirrored = [&](std::vector<bool> again) {
    for (size_t i = 0; i < again.size(); ++i) again[i] = again[i] || mirrored[i];
    return again;
  };
  MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  return with_mirrored(PlanSublinearMemory(graph, order, *options.sublinear, [&](const std::vector<bool>& again) {
                         return peak_with(with_mirrored(again));
                       }).again);
}

}  // namespace

absl::StatusOr<std::vector<ValueId>> AddGradients(Graph& graph, ValueId loss, std::span<const ValueId> wanted,
                                                  const GradientOptions& options) {
  MGE_ASSIGN_OR_RETURN(std::vector<bool> again, ChooseAgain(graph, loss, wanted, options));
  return Backward(graph, std::move(again)).Run(loss, wanted);
}

}  // namespace mge
