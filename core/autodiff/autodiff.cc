// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/autodiff.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/errors.h"
#include "core/ops/gradient.h"
#include "fmt/format.h"

namespace mge {
namespace {

bool CarriesGradient(const Value& v) { return v.kind == ValueKind::kTensor && kFloating.Contains(v.type.dtype); }

// Adds the gradients of one graph.
class Backward {
 public:
  Backward(Graph& graph, const GradientOptions& options)
      : graph_(graph), options_(options), sums_(static_cast<size_t>(graph.value_count()), kNone) {}

  absl::Status Run(ValueId loss, std::span<const ValueId> wanted) {
    if (options_.sublinear) {
      MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
      again_ = PlanSublinearMemory(graph_, order, *options_.sublinear).again;
    }
    MGE_RETURN_IF_ERROR(Seed(loss));
    return GoBackwards(graph_, wanted, sums_, [this](NodeId id) { return SourceOf(id); });
  }
  ValueId GradientOf(ValueId v) const { return sums_[static_cast<size_t>(v)]; }

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
  // Returns whether the node is computed again for the gradients.
  bool IsAgain(NodeId id) const {
    if (static_cast<size_t>(id) < again_.size() && again_[static_cast<size_t>(id)]) return true;
    if (!options_.mirror) return false;
    const OpDef& def = *graph_.node(id).def;
    return !def.Is(kRandom) && (def.Is(kElementwise) || def.KeepsBytes() || def.Is(kTranspose));
  }
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
  const GradientOptions options_;
  std::vector<bool> again_;  // by node of the forward graph: the plan computes it again
  std::unordered_map<NodeId, NodeId> mirrors_;
  std::vector<ValueId> sums_;  // by value of the forward graph: its gradient
};

}  // namespace

absl::StatusOr<std::vector<ValueId>> AddGradients(Graph& graph, ValueId loss, std::span<const ValueId> wanted,
                                                  const GradientOptions& options) {
  Backward backward(graph, options);
  MGE_RETURN_IF_ERROR(backward.Run(loss, wanted));
  std::vector<ValueId> out;
  for (ValueId v : wanted) out.push_back(backward.GradientOf(v));
  return out;
}

}  // namespace mge
