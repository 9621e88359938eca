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
    MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    MarkDependents(order, wanted);
    MGE_RETURN_IF_ERROR(Seed(loss));
    for (auto id = order.rbegin(); id != order.rend(); ++id) MGE_RETURN_IF_ERROR(Visit(*id));
    return absl::OkStatus();
  }
  ValueId GradientOf(ValueId v) const { return sums_[static_cast<size_t>(v)]; }

 private:
  // Marks the values that depend on a wanted one through floating values.
  void MarkDependents(std::span<const NodeId> order, std::span<const ValueId> wanted) {
    depends_.assign(static_cast<size_t>(graph_.value_count()), false);
    for (ValueId v : wanted) depends_[static_cast<size_t>(v)] = true;
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      if (!AnyDepends(node.inputs) && !AnyDepends(node.captures)) continue;
      for (ValueId v : node.outputs) {
        if (v != kNone) depends_[static_cast<size_t>(v)] = CarriesGradient(graph_.value(v));
      }
    }
  }
  bool Depends(ValueId v) const { return v != kNone && depends_[static_cast<size_t>(v)]; }
  bool AnyDepends(std::span<const ValueId> values) const {
    return std::ranges::any_of(values, [&](ValueId v) { return Depends(v); });
  }

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

  // Calls the rule of a node whose outputs have gradients and whose inputs need them.
  absl::Status Visit(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the rule adds nodes
    if (AnyDepends(node.captures)) return NoRule(node, "the body of a control-flow operator");
    std::vector<ValueId> gradients;
    for (ValueId v : node.outputs) gradients.push_back(v == kNone ? kNone : sums_[static_cast<size_t>(v)]);
    if (!AnyDepends(node.inputs) || std::ranges::count(gradients, kNone) == std::ssize(gradients)) return absl::OkStatus();
    if (!node.def->gradient) return NoRule(node, fmt::format("operator {}", node.op));
    std::vector<bool> wants;
    for (ValueId v : node.inputs) wants.push_back(Depends(v) && CarriesGradient(graph_.value(v)));
    const NodeId source = IsCheap(node) ? MirrorOf(id) : id;
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) inputs.push_back(Mirrored(v));
    GradientContext context(graph_, source, std::move(inputs), std::move(gradients), wants);
    if (absl::Status s = node.def->gradient(context); !s.ok()) {
      return PartsOf(s).where.empty() ? AddWhere(s, NodePlace(node)) : s;
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (context.given()[i] != kNone) Contribute(node.inputs[i], context.given()[i], node);
    }
    return absl::OkStatus();
  }
  // Returns whether the node is computed again for the gradients.
  bool IsCheap(const Node& node) const {
    const OpDef& def = *node.def;
    return options_.mirror && !def.Is(kRandom) && (def.Is(kElementwise) || def.KeepsBytes() || def.Is(kTranspose));
  }
  // Returns the value, or an equal one that is computed again.
  ValueId Mirrored(ValueId v) {
    const NodeId producer = v == kNone ? kNone : graph_.value(v).producer;
    if (producer == kNone || !IsCheap(graph_.node(producer))) return v;
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
  void Contribute(ValueId v, ValueId gradient, const Node& reader) {
    ValueId& sum = sums_[static_cast<size_t>(v)];
    sum = sum == kNone ? gradient : NodeAdder(graph_, reader).Add("Add", {sum, gradient});
  }
  static absl::Status NoRule(const Node& node, std::string what) {
    return Fail(errors::kUnsupportedFeature, fmt::format("{} has no gradient", what), {.where = NodePlace(node)});
  }

  Graph& graph_;
  const GradientOptions options_;
  std::unordered_map<NodeId, NodeId> mirrors_;
  std::vector<ValueId> sums_;  // by value of the forward graph: its gradient so far
  std::vector<bool> depends_;
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
