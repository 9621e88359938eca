// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/row_norm.h"

namespace mge::rewrite_layer_norm {
namespace {

struct Normalized {
  ValueId x = kNone;
  double epsilon = 0;
  std::vector<ValueId> inner;  // the values between x and the normalised value
};

// Matches centred / sqrt(mean(centred^2) + epsilon), or centred multiplied by the reciprocal.
std::optional<Normalized> MatchNormalized(const Graph& graph, ValueId value) {
  ValueId centred = kNone, root = kNone;
  Normalized out;
  if (const Node* div = Producer(graph, value, "Div")) {
    centred = div->inputs[0];
    root = div->inputs[1];
  } else if (const Node* mul = Producer(graph, value, "Mul")) {
    for (int i = 0; i < 2; ++i) {
      const Node* reciprocal = Producer(graph, mul->inputs[i], "Reciprocal");
      if (!reciprocal) continue;
      centred = mul->inputs[1 - i];
      root = reciprocal->inputs[0];
      out.inner.push_back(mul->inputs[i]);
    }
  }
  const Node* sqrt = Producer(graph, root, "Sqrt");
  const Node* sub = Producer(graph, centred, "Sub");
  if (!sub || !sqrt || MeanOverLastAxis(graph, sub->inputs[1]) != sub->inputs[0]) return std::nullopt;
  std::optional<double> epsilon = MatchMeanSquare(graph, sqrt->inputs[0], centred, out.inner);
  if (!epsilon) return std::nullopt;
  out.x = sub->inputs[0];
  out.epsilon = *epsilon;
  out.inner.insert(out.inner.end(), {value, root, centred, sub->inputs[1]});
  return out;
}

// Matches normalised * gamma.
absl::StatusOr<bool> MatchScale(Graph& graph, NodeId id) {
  for (int i = 0; i < 2; ++i) {
    const Node& mul = graph.node(id);
    ValueId gamma = mul.inputs[1 - i];
    std::optional<Normalized> norm = MatchNormalized(graph, mul.inputs[i]);
    if (!norm || gamma == kNone) continue;
    const Value& x = graph.value(norm->x);
    if (!SameTypeAndRank(x, graph.value(mul.outputs[0])) || !FitsLastAxis(graph.value(gamma), x)) continue;
    if (!ServeOnly(graph, norm->inner, id)) continue;
    const bool wide = x.type.dtype == DType::kF64;
    Attributes& attrs = graph.node(Replace(graph, id, "LayerNormalization", {norm->x, gamma})).attrs;
    attrs.Set("axis", int64_t{-1});
    attrs.Set("epsilon", static_cast<float>(norm->epsilon));
    if (wide) attrs.Set("stash_type", static_cast<int64_t>(DType::kF64));
    return true;
  }
  return false;
}

// Matches LayerNormalization(x, gamma) + beta.
absl::StatusOr<bool> MatchShift(Graph& graph, NodeId id) {
  for (int i = 0; i < 2; ++i) {
    const Node& add = graph.node(id);
    ValueId scaled = add.inputs[i], beta = add.inputs[1 - i];
    const Node* norm = Producer(graph, scaled, "LayerNormalization");
    if (!norm || beta == kNone) continue;
    bool has_bias = norm->inputs.size() > 2 && norm->inputs[2] != kNone;
    bool statistics = std::any_of(norm->outputs.begin() + 1, norm->outputs.end(), [](ValueId v) { return v != kNone; });
    const Value& x = graph.value(norm->inputs[0]);
    if (has_bias || statistics || !SameTypeAndRank(x, graph.value(add.outputs[0]))) continue;
    int64_t axis = norm->attrs.Int("axis");
    if (axis != -1 && axis != static_cast<int64_t>(x.type.dims.size()) - 1) continue;
    if (!FitsLastAxis(graph.value(beta), x) || !ServeOnly(graph, std::vector<ValueId>{scaled}, id)) continue;
    const Attributes attrs = norm->attrs;
    NodeId whole = Replace(graph, id, "LayerNormalization", {norm->inputs[0], norm->inputs[1], beta});
    graph.node(whole).attrs = attrs;
    return true;
  }
  return false;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  if (IsOp(graph.node(id), "Mul")) return MatchScale(graph, id);
  if (IsOp(graph.node(id), "Add")) return MatchShift(graph, id);
  return false;
}

}  // namespace

MGE_REWRITE(layer_norm) = {.name = "layer_norm",
                           .doc = "Replaces mean, variance, scale and shift over the last axis by one LayerNormalization.",
                           .apply = Apply};

}  // namespace mge::rewrite_layer_norm
