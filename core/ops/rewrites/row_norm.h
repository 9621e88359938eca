// SPDX-License-Identifier: Apache-2.0
// Parts of the patterns of LayerNormalization and RMSNormalization over the last axis.
#pragma once

#include <vector>

#include "core/ops/rewrites/pattern.h"

namespace mge {

// If the value is a ReduceMean over the last axis that keeps the axis, returns its input, else kNone.
inline ValueId MeanOverLastAxis(const Graph& graph, ValueId value) {
  const Node* mean = Producer(graph, value, "ReduceMean");
  if (!mean || mean->inputs.size() != 2 || !IsConstant(graph, mean->inputs[1])) return kNone;
  const Value& x = graph.value(mean->inputs[0]);
  std::vector<int64_t> axes = graph.value(mean->inputs[1]).constant.ToInts();
  if (!x.type.has_rank || axes.size() != 1 || mean->attrs.Int("keepdims") != 1) return kNone;
  int64_t rank = static_cast<int64_t>(x.type.dims.size());
  return axes[0] == -1 || axes[0] == rank - 1 ? mean->inputs[0] : kNone;
}

inline bool IsSquareOf(const Graph& graph, ValueId value, ValueId x) {
  if (const Node* mul = Producer(graph, value, "Mul")) return mul->inputs[0] == x && mul->inputs[1] == x;
  const Node* pow = Producer(graph, value, "Pow");
  return pow && pow->inputs[0] == x && ConstantNumber(graph, pow->inputs[1]) == 2.0;
}

// If the value is mean(x^2) + epsilon over the last axis, appends it and the values between to `inner`. Returns epsilon.
inline std::optional<double> MatchMeanSquare(const Graph& graph, ValueId value, ValueId x, std::vector<ValueId>& inner) {
  const Node* add = Producer(graph, value, "Add");
  for (int i = 0; add && i < 2; ++i) {
    std::optional<double> epsilon = ConstantNumber(graph, add->inputs[1 - i]);
    ValueId squares = MeanOverLastAxis(graph, add->inputs[i]);
    if (!epsilon || !(*epsilon >= 0) || squares == kNone || !IsSquareOf(graph, squares, x)) continue;
    inner.insert(inner.end(), {value, add->inputs[i], squares});
    return epsilon;
  }
  return std::nullopt;
}

// Returns true if the value has one element for each position of x's last axis.
inline bool FitsLastAxis(const Value& value, const Value& x) {
  return value.type.has_rank && value.type.dims.size() == 1 && !x.type.dims.empty() && value.type.dims[0] >= 0 &&
         value.type.dims[0] == x.type.dims.back();
}

}  // namespace mge
