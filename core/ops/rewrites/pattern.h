// SPDX-License-Identifier: Apache-2.0
// Helpers of the rewrites: matching a pattern backwards through a graph, and comparing constants up to rounding errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/rewrite.h"

namespace mge {

// Returns true if the node is this ONNX operator in its newest form.
inline bool IsOp(const Node& node, std::string_view op) {
  return !node.dead && node.domain.empty() && node.op == op &&
         std::none_of(node.attrs.begin(), node.attrs.end(), [](const auto& a) { return a.first.starts_with('_'); });
}

// Returns the node whose first output is `value`, or null if it is not this operator.
inline /*nullable*/ const Node* Producer(const Graph& graph, ValueId value, std::string_view op) {
  if (value == kNone || graph.value(value).producer == kNone) return nullptr;
  const Node& node = graph.node(graph.value(value).producer);
  return IsOp(node, op) && node.outputs[0] == value ? &node : nullptr;
}

inline bool IsConstant(const Graph& graph, ValueId value) {
  return value != kNone && graph.value(value).role == Role::kConstant;
}

// Returns the number in a constant of one element.
inline std::optional<double> ConstantNumber(const Graph& graph, ValueId value) {
  if (!IsConstant(graph, value) || graph.value(value).constant.elements() != 1) return std::nullopt;
  const Tensor& tensor = graph.value(value).constant;
  std::optional<double> number;
  DispatchNumeric(tensor.dtype(),
                  [&](auto tag) { number = static_cast<double>(tensor.Data<typename decltype(tag)::type>()[0]); });
  return number;
}

// Returns true if the numbers differ only by a few rounding errors of the type. Only 0 is near 0.
inline bool Near(double a, double b, DType dtype) {
  double tolerance = dtype == DType::kF64 ? 1e-12 : dtype == DType::kF32 ? 1e-6 : dtype == DType::kF16 ? 2e-3 : 1.6e-2;
  return std::abs(a - b) <= tolerance * std::abs(b);
}

// Returns true if both are floating tensors of the same type and known rank. If the other operands of an elementwise
// pattern are one-element constants, its result then has the shape of its input.
inline bool SameTypeAndRank(const Value& a, const Value& b) {
  return a.kind == ValueKind::kTensor && b.kind == ValueKind::kTensor && a.type.dtype == b.type.dtype &&
         kFloating.Contains(a.type.dtype) && a.type.has_rank && b.type.has_rank && a.type.dims.size() == b.type.dims.size();
}

// Returns true if only `root` and the producers of `values` read the values. They are then unused after `root` is
// replaced.
inline bool ServeOnly(const Graph& graph, std::span<const ValueId> values, NodeId root) {
  auto listed = [&](ValueId v) { return std::find(values.begin(), values.end(), v) != values.end(); };
  return std::none_of(values.begin(), values.end(), [&](ValueId v) {
    return v != kNone && (graph.OutputUses(v) > 0 || graph.AnyReader(v, [&](NodeId id) {
             const Node& node = graph.node(id);
             return id != root && std::none_of(node.outputs.begin(), node.outputs.end(), listed);
           }));
  });
}

// A node that reads a value as its input number `slot`.
struct Reader {
  NodeId node = kNone;
  size_t slot = 0;
};

// Returns the only reader of a value. Returns no node if there are several, or if the value is an output.
inline Reader OnlyReader(const Graph& graph, ValueId value) {
  Reader only;
  if (graph.OutputUses(value) > 0) return {};
  const bool several = graph.AnyReader(value, [&](NodeId id) {
    if (id == only.node) return false;
    const Node& node = graph.node(id);
    if (only.node != kNone || std::ranges::count(node.captures, value) > 0) return true;
    if (std::ranges::count(node.inputs, value) > 1) return true;
    only = {id, static_cast<size_t>(std::ranges::find(node.inputs, value) - node.inputs.begin())};
    return false;
  });
  return several ? Reader() : only;
}

// Adds a constant with a unique name that starts with `stem`.
inline ValueId AddFreshConstant(Graph& graph, std::string stem, Tensor tensor) {
  ValueId id = graph.AddTemporary(stem, {.dtype = tensor.dtype(), .has_rank = true, .dims = tensor.shape()});
  graph.value(id).role = Role::kConstant;
  graph.value(id).constant = std::move(tensor);
  return id;
}

// Replaces `root` by a node that produces its output 0. Returns the new node.
inline NodeId Replace(Graph& graph, NodeId root, std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
  Node node;
  node.op = std::move(op);
  node.name = graph.node(root).name;
  node.device = graph.node(root).device;
  node.inputs = std::move(inputs);
  node.outputs = {graph.node(root).outputs[0]};
  node.attrs = std::move(attrs);
  NodeId id = graph.AddNode(std::move(node));
  graph.RemoveNode(root);  // its output stays alive: it has a new producer
  return id;
}

}  // namespace mge
