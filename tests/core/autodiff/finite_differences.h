// SPDX-License-Identifier: Apache-2.0
// Compares gradients with finite differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/autodiff/autodiff.h"
#include "core/base/errors.h"
#include "core/conform/cases.h"
#include "core/ops/expression.h"
#include "core/ops/interpreter.h"
#include "fmt/format.h"

namespace mge {

inline constexpr int64_t kProbes = 6;  // elements of each input that are changed
inline constexpr double kStep = 1e-5;  // the change

inline absl::StatusOr<std::vector<HostValue>> RunGraph(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<HostValue> values;
  for (const Tensor& t : inputs) values.emplace_back().tensor = t;
  return Interpret(graph, std::move(values));
}

// Adds a sum of all outputs with random weights as the only output. Returns kNone if no output is floating.
inline ValueId AddLoss(Graph& graph) {
  ExpressionBuilder b(graph, "loss", DType::kF64);
  ValueId loss = kNone;
  uint64_t seed = 7;
  for (ValueId v : std::vector<ValueId>(graph.outputs())) {
    const TensorType type = graph.value(v).type;
    if (type.dtype != DType::kF64 || !type.IsStatic()) continue;
    const Term weights(b, b.Constant(conform::RandomTensor(DType::kF64, type.dims, -1, 1, ++seed)));
    const ValueId sum = b.SumAll(Term(b, v) * weights).id();
    loss = loss == kNone ? sum : b.Add("Add", {loss, sum});
  }
  graph.outputs() = {loss};
  return loss;
}

// Returns a copy with element `at` changed by `by`.
inline Tensor Changed(const Tensor& t, int64_t at, double by) {
  Tensor copy = conform::TensorOf(t.dtype(), t.shape(), t.data());
  copy.MutableData<double>()[static_cast<size_t>(at)] += by;
  return copy;
}

// Compares the gradients of a case, but for inputs that left_out(operator, input) names. Returns the number of compared elements.
// Fails the test if one differs.
template <typename LeftOut>
int Compare(conform::Case c, LeftOut left_out) {
  Graph& graph = c.graph;
  const std::vector<Tensor>& inputs = c.inputs[0];
  std::vector<ValueId> wanted;
  for (ValueId v : graph.inputs()) {
    if (graph.value(v).type.dtype == DType::kF64) wanted.push_back(v);
  }
  const ValueId loss = AddLoss(graph);
  if (wanted.empty() || loss == kNone) return 0;
  EXPECT_TRUE(InferTypes(graph).ok());
  Graph forward = graph;
  absl::StatusOr<std::vector<ValueId>> gradients = AddGradients(graph, loss, wanted);
  if (!gradients.ok()) {
    EXPECT_EQ(ErrorId(gradients.status()), errors::kUnsupportedFeature.id) << c.Name() << FormatError(gradients.status());
    return 0;
  }
  graph.outputs().clear();
  for (ValueId& v : *gradients) {
    if (v != kNone) graph.outputs().push_back(v);
  }
  absl::Status typed = InferTypes(graph);
  EXPECT_TRUE(typed.ok()) << c.Name() << FormatError(typed);
  absl::StatusOr<std::vector<HostValue>> got = RunGraph(graph, inputs);
  if (ErrorId(got.status()) == errors::kUnsupportedFeature.id) return 0;  // a gradient by replacement finds that late
  EXPECT_TRUE(got.ok()) << c.Name() << FormatError(got.status());
  if (!got.ok()) return 0;
  int compared = 0;
  size_t next = 0;
  for (size_t w = 0; w < wanted.size(); ++w) {
    const auto at = static_cast<size_t>(std::ranges::find(graph.inputs(), wanted[w]) - graph.inputs().begin());
    const std::vector<ValueId>& operands = graph.node(0).inputs;
    if (left_out(*c.def, static_cast<size_t>(std::ranges::find(operands, wanted[w]) - operands.begin()))) continue;
    const Tensor& x = inputs[at];
    const bool given = (*gradients)[w] != kNone;
    const Tensor gradient = given ? (*got)[next++].tensor : Tensor();
    if (given && gradient.shape() != x.shape()) {
      ADD_FAILURE() << c.Name() << " input " << at << ": the gradient has shape " << ShapeText(gradient.shape());
      continue;
    }
    for (int64_t probe = 0; probe < std::min(kProbes, x.elements()); ++probe) {
      const int64_t element = probe * 7919 % x.elements();
      double values[2] = {};
      for (int side : {0, 1}) {
        std::vector<Tensor> moved = inputs;
        moved[at] = Changed(x, element, side == 0 ? -kStep : kStep);
        auto y = RunGraph(forward, moved);
        EXPECT_TRUE(y.ok()) << FormatError(y.status());
        if (y.ok()) values[side] = (*y)[0].tensor.Data<double>()[0];
      }
      const double want = (values[1] - values[0]) / (2 * kStep);
      if (std::isnan(want)) continue;  // outside of the domain
      const double have = given ? gradient.Data<double>()[static_cast<size_t>(element)] : 0;
      EXPECT_NEAR(have, want, 2e-4 * std::max(1.0, std::abs(want))) << c.Name() << " input " << at << " element " << element;
      ++compared;
    }
  }
  return compared;
}

}  // namespace mge
