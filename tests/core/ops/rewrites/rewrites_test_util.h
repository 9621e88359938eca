// SPDX-License-Identifier: Apache-2.0
// Applies one rewrite to a graph in text form and compares the results before and after.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/rewrite.h"
#include "tests/support/ops_test_util.h"

namespace mge {

inline void FillRandom(Tensor& tensor, std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-2, 2);
  DispatchFloating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T& v : tensor.MutableData<T>()) v = static_cast<T>(static_cast<float>(uniform(random)));
  });
}

// Returns the operators that the outputs need, in topological order.
inline std::string LiveOps(const Graph& graph) {
  auto order = graph.TopologicalOrder();
  if (!order.ok()) return FormatError(order.status());
  std::vector<char> used(graph.value_count(), 0);
  for (ValueId v : graph.outputs()) used[v] = 1;
  std::string ops;
  for (auto it = order->rbegin(); it != order->rend(); ++it) {
    const Node& node = graph.node(*it);
    if (std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) { return v != kNone && used[v]; })) continue;
    for (ValueId v : node.inputs) {
      if (v != kNone) used[v] = 1;
    }
    ops = ops.empty() ? node.op : node.op + " " + ops;
  }
  return ops;
}

// Applies a rewrite to every node of the graph. Returns an error that it has, or that the new graph has.
inline absl::Status ApplyEverywhere(std::string_view rewrite_name, Graph& graph) {
  auto rewrite =
      std::find_if(AllRewrites().begin(), AllRewrites().end(), [&](const Rewrite* r) { return r->name == rewrite_name; });
  if (rewrite == AllRewrites().end()) return Fail(errors::kInternal, "no such rewrite");
  MGE_ASSIGN_OR_RETURN(std::vector<NodeId> order, graph.TopologicalOrder());
  for (NodeId id : order) {
    if (!graph.node(id).dead) MGE_RETURN_IF_ERROR((*rewrite)->apply(graph, id, UnlimitedHostAllocator()).status());
  }
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  return VerifyGraph(graph);
}

// Returns the operators behind a rewrite, of a graph that is not run.
inline std::string RewrittenOps(std::string_view rewrite_name, const std::string& text) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  if (absl::Status s = ApplyEverywhere(rewrite_name, *graph); !s.ok()) return FormatError(s);
  return LiveOps(*graph);
}

// Applies the rewrite. Returns the remaining operators, or an error if the results differ by more than `tolerance` times the
// largest element. Inputs and constants named r... get random elements, so their text may give one element for all.
inline std::string AfterRewrite(std::string_view rewrite_name, const std::string& text, double tolerance = 1e-5) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  std::mt19937 random(7);
  for (ValueId v = 0; v < graph->value_count(); ++v) {
    Value& value = graph->value(v);
    if (value.role == Role::kConstant && value.name.starts_with("r")) FillRandom(value.constant, random);
  }
  std::vector<HostValue> inputs;
  for (ValueId v : graph->inputs()) {
    auto tensor = Tensor::Create(graph->value(v).type.dtype, graph->value(v).type.dims);
    if (!tensor.ok()) return FormatError(tensor.status());
    FillRandom(*tensor, random);
    inputs.emplace_back().tensor = *std::move(tensor);
  }
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  auto before = Interpret(*graph, inputs);
  if (!before.ok()) return FormatError(before.status());

  if (absl::Status s = ApplyEverywhere(rewrite_name, *graph); !s.ok()) return FormatError(s);
  auto after = Interpret(*graph, inputs);
  if (!after.ok()) return FormatError(after.status());

  for (size_t i = 0; i < before->size(); ++i) {
    const Tensor &a = (*before)[i].tensor, &b = (*after)[i].tensor;
    if (a.dtype() != b.dtype() || a.shape() != b.shape()) return "the result has another type";
    double largest = 0, error = 0;
    DispatchFloating(a.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t k = 0; k < a.elements(); ++k) {
        double x = static_cast<double>(a.Data<T>()[k]), y = static_cast<double>(b.Data<T>()[k]);
        largest = std::max(largest, std::abs(x));
        error = std::max(error, std::abs(x - y));
      }
    });
    if (!(error <= tolerance * std::max(largest, 1.0))) return fmt::format("results differ by {}", error);
  }
  return LiveOps(*graph);
}

}  // namespace mge
