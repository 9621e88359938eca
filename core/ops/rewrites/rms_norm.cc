// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrites/row_norm.h"

namespace mge::rewrite_rms_norm {
namespace {

struct Normalized {
  ValueId x = kNone;
  double epsilon = 0;
  std::vector<ValueId> inner;  // the values between x and the scaled result
};

// If the value is 1 / sqrt(v) in one of its forms, appends it and the root to `inner`. Returns v, or kNone.
ValueId MatchInverseRoot(const Graph& graph, ValueId value, std::vector<ValueId>& inner) {
  ValueId root = kNone;
  if (const Node* reciprocal = Producer(graph, value, "Reciprocal")) root = reciprocal->inputs[0];
  if (const Node* div = Producer(graph, value, "Div"); div && ConstantNumber(graph, div->inputs[0]) == 1.0) {
    root = div->inputs[1];
  }
  if (const Node* sqrt = Producer(graph, root, "Sqrt")) {
    inner.insert(inner.end(), {value, root});
    return sqrt->inputs[0];
  }
  const Node* pow = Producer(graph, value, "Pow");
  if (!pow || ConstantNumber(graph, pow->inputs[1]) != -0.5) return kNone;
  inner.push_back(value);
  return pow->inputs[0];
}

// Matches x / sqrt(mean(x^2) + epsilon), or x multiplied by the inverse.
std::optional<Normalized> MatchNormalized(const Graph& graph, ValueId value) {
  auto match = [&](ValueId x, ValueId mean_square, std::vector<ValueId> inner) -> std::optional<Normalized> {
    inner.push_back(value);
    std::optional<double> epsilon = MatchMeanSquare(graph, mean_square, x, inner);
    if (!epsilon) return std::nullopt;
    return Normalized{x, *epsilon, std::move(inner)};
  };
  if (const Node* div = Producer(graph, value, "Div")) {
    const Node* sqrt = Producer(graph, div->inputs[1], "Sqrt");
    return sqrt ? match(div->inputs[0], sqrt->inputs[0], {div->inputs[1]}) : std::nullopt;
  }
  const Node* mul = Producer(graph, value, "Mul");
  for (int i = 0; mul && i < 2; ++i) {
    std::vector<ValueId> inner;
    const ValueId mean_square = MatchInverseRoot(graph, mul->inputs[i], inner);
    if (std::optional<Normalized> out = match(mul->inputs[1 - i], mean_square, std::move(inner))) return out;
  }
  return std::nullopt;
}

bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// Does the same with a value that was computed in float32 and rounded to a 16-bit type. If x was widened from that type, the
// result is normalised from there.
std::optional<Normalized> MatchRounded(const Graph& graph, ValueId value) {
  const Node* narrow = Producer(graph, value, "Cast");
  if (!narrow) return MatchNormalized(graph, value);
  std::optional<Normalized> out = MatchNormalized(graph, narrow->inputs[0]);
  const DType dtype = graph.value(value).type.dtype;
  if (!out || graph.value(out->x).type.dtype != DType::kF32 || !IsHalf(dtype)) return std::nullopt;
  out->inner.push_back(value);
  const Node* widen = Producer(graph, out->x, "Cast");
  if (widen && graph.value(widen->inputs[0]).type.dtype == dtype) out->x = widen->inputs[0];
  return out;
}

absl::StatusOr<bool> Apply(Graph& graph, NodeId id, HostAllocator&) {
  const Node& mul = graph.node(id);
  if (!IsOp(mul, "Mul")) return false;
  for (int i = 0; i < 2; ++i) {
    const ValueId scale = mul.inputs[1 - i];
    std::optional<Normalized> norm = MatchRounded(graph, mul.inputs[i]);
    if (!norm || scale == kNone) continue;
    const Value &x = graph.value(norm->x), &y = graph.value(mul.outputs[0]);
    const bool floating = kFloating.Contains(x.type.dtype) && x.type.has_rank && y.type.has_rank;
    if (!floating || x.type.dims.size() != y.type.dims.size() || !FitsLastAxis(graph.value(scale), x)) continue;
    if (!ServeOnly(graph, norm->inner, id)) continue;
    const bool wide = x.type.dtype == DType::kF64;
    Attributes& attrs = graph.node(Replace(graph, id, "RMSNormalization", {norm->x, scale})).attrs;
    attrs.Set("axis", int64_t{-1});
    attrs.Set("epsilon", static_cast<float>(norm->epsilon));
    if (wide) attrs.Set("stash_type", static_cast<int64_t>(DType::kF64));
    return true;
  }
  return false;
}

}  // namespace

MGE_REWRITE(rms_norm) = {.name = "rms_norm",
                         .doc = "Replaces x / sqrt(mean(x^2) + epsilon), scaled on the last axis, by one RMSNormalization.",
                         .apply = Apply};

}  // namespace mge::rewrite_rms_norm
