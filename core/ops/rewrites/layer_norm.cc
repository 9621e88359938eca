// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/pattern.h"

namespace mge::rewrite_layer_norm {
namespace {

struct Normalized {
  ValueId x = kNone;
  double epsilon = 0;
  std::vector<ValueId> inner;  // the values between x and the normalised value
};

// If the value is a ReduceMean over the last axis that keeps the axis, returns its input, else kNone.
ValueId MeanOverLastAxis(const Graph& graph, ValueId value) {
  const Node* mean = Producer(graph, value, "ReduceMean");
  if (!mean || mean->inputs.size() != 2 || !IsConstant(graph, mean->inputs[1])) return kNone;
  const Value& x = graph.value(mean->inputs[0]);
  std::vector<int64_t> axes = graph.value(mean->inputs[1]).constant.ToInts();
  if (!x.type.has_rank || axes.size() != 1 || mean->attrs.Int("keepdims", 1) != 1) return kNone;
  int64_t rank = static_cast<int64_t>(x.type.dims.size());
  return axes[0] == -1 || axes[0] == rank - 1 ? mean->inputs[0] : kNone;
}

bool IsSquareOf(const Graph& graph, ValueId value, ValueId x) {
  if (const Node* mul = Producer(graph, value, "Mul")) return mul->inputs[0] == x && mul->inputs[1] == x;
  const Node* pow = Producer(graph, value, "Pow");
  return pow && pow->inputs[0] == x && ConstantNumber(graph, pow->inputs[1]) == 2.0;
}

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
  const Node* add = sqrt ? Producer(graph, sqrt->inputs[0], "Add") : nullptr;
  if (!sub || !add || MeanOverLastAxis(graph, sub->inputs[1]) != sub->inputs[0]) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    std::optional<double> epsilon = ConstantNumber(graph, add->inputs[1 - i]);
    ValueId squares = MeanOverLastAxis(graph, add->inputs[i]);
    if (!epsilon || !(*epsilon >= 0) || squares == kNone || !IsSquareOf(graph, squares, centred)) continue;
    out.x = sub->inputs[0];
    out.epsilon = *epsilon;
    out.inner.insert(out.inner.end(), {value, root, sqrt->inputs[0], add->inputs[i], squares, centred, sub->inputs[1]});
    return out;
  }
  return std::nullopt;
}

// Returns true if the value has one element for each position of x's last axis.
bool FitsLastAxis(const Value& value, const Value& x) {
  return value.type.dtype == x.type.dtype && value.type.has_rank && value.type.dims.size() == 1 && !x.type.dims.empty() &&
         value.type.dims[0] >= 0 && value.type.dims[0] == x.type.dims.back();
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
    int64_t axis = norm->attrs.Int("axis", -1);
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
