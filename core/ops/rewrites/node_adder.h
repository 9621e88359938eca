// SPDX-License-Identifier: Apache-2.0
// Adds the nodes that together replace one node.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/rewrites/pattern.h"

namespace mge {

// One attribute, as a set of attributes.
inline Attributes OneAttribute(std::string name, AttributeValue value) {
  Attributes attrs;
  attrs.Set(std::move(name), std::move(value));
  return attrs;
}
inline Attributes IntAttribute(std::string name, int64_t value) { return OneAttribute(std::move(name), value); }
inline Attributes CastTo(DType type) { return IntAttribute("to", static_cast<int64_t>(type)); }

class NodeAdder {
 public:
  // `whole` is the node to replace. The new nodes have its name and device. `graph` must outlive this object.
  NodeAdder(Graph& graph, const Node& whole)
      : graph_(graph), stem_(graph.value(whole.outputs[0]).name), name_(whole.name), device_(whole.device) {}
  // The new values and nodes are named after `stem`.
  NodeAdder(Graph& graph, std::string stem) : graph_(graph), stem_(stem), name_(std::move(stem)) {}

  // Adds a node that produces these values; kNone stands for an absent output.
  void AddTo(std::vector<ValueId> outputs, std::string op, std::vector<ValueId> inputs, Attributes attrs = {},
             std::string_view domain = "") {
    Node node;
    node.op = std::move(op);
    node.domain = std::string(domain);
    node.name = name_;
    node.device = device_;
    node.inputs = std::move(inputs);
    while (!outputs.empty() && outputs.back() == kNone) outputs.pop_back();
    node.outputs = std::move(outputs);
    node.attrs = std::move(attrs);
    graph_.AddNode(std::move(node));
  }
  // Adds a node with new outputs and returns them.
  std::vector<ValueId> Add(std::string op, std::vector<ValueId> inputs, size_t outputs, Attributes attrs) {
    std::vector<ValueId> values;
    for (size_t i = 0; i < outputs; ++i) values.push_back(graph_.AddTemporary(stem_));
    AddTo(values, std::move(op), std::move(inputs), std::move(attrs));
    return values;
  }
  ValueId Add(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return Add(std::move(op), std::move(inputs), 1, std::move(attrs))[0];
  }

  // Adds a node of the domain "mge" with new outputs and returns them.
  std::vector<ValueId> AddOurs(std::string op, std::vector<ValueId> inputs, size_t outputs, Attributes attrs) {
    std::vector<ValueId> y;
    for (size_t i = 0; i < outputs; ++i) y.push_back(graph_.AddTemporary(stem_));
    AddTo(y, std::move(op), std::move(inputs), std::move(attrs), "mge");
    return y;
  }
  ValueId AddOurs(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return AddOurs(std::move(op), std::move(inputs), 1, std::move(attrs))[0];
  }

  // Adds a constant.
  ValueId Constant(Tensor tensor) { return AddFreshConstant(graph_, stem_, std::move(tensor)); }
  ValueId Integers(std::span<const int64_t> values) { return Constant(Tensor::Vector(values)); }
  ValueId Integers(std::initializer_list<int64_t> values) { return Integers(std::span(values.begin(), values.size())); }
  // Adds a number of a numeric type.
  ValueId Number(DType type, double x) {
    Tensor tensor;
    DispatchNumeric(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      tensor = Tensor::Scalar<T>(static_cast<T>(static_cast<Compute<T>>(x)));
    });
    return Constant(std::move(tensor));
  }

  ValueId Reshape(ValueId x, const Shape& shape) {
    return Add("Reshape", {x, Integers(shape)}, IntAttribute("allowzero", 1));
  }
  void ReshapeTo(ValueId output, ValueId x, const Shape& shape) {
    AddTo({output}, "Reshape", {x, Integers(shape)}, IntAttribute("allowzero", 1));
  }
  // The same where sizes of `x` may be unknown: 0 keeps the size that `x` has at this place, and one -1 stands for the rest.
  ValueId ReshapePartly(ValueId x, const Shape& shape) { return Add("Reshape", {x, Integers(shape)}); }
  void ReshapePartlyTo(ValueId output, ValueId x, const Shape& shape) { AddTo({output}, "Reshape", {x, Integers(shape)}); }
  ValueId Transpose(ValueId x, Ints perm) { return Add("Transpose", {x}, OneAttribute("perm", std::move(perm))); }
  ValueId Cast(ValueId x, DType from, DType to) { return from == to ? x : Add("Cast", {x}, CastTo(to)); }

  // Divides the last dimension into parts of these sizes.
  std::vector<ValueId> Split(ValueId x, const std::vector<int64_t>& sizes) {
    if (sizes.size() == 1) return {x};
    return Add("Split", {x, Integers(sizes)}, sizes.size(), IntAttribute("axis", -1));
  }

 private:
  Graph& graph_;
  std::string stem_, name_, device_;
};

}  // namespace mge
