// SPDX-License-Identifier: Apache-2.0
// Adds the nodes that together replace one node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/rewrites/pattern.h"

namespace mge {

// An attribute with an integer, as a set of attributes.
inline Attributes IntAttribute(std::string name, int64_t value) {
  Attributes attrs;
  attrs.Set(std::move(name), value);
  return attrs;
}

class Parts {
 public:
  // `whole` is the node to replace. The parts have its name and device. `graph` must outlive this object.
  Parts(Graph& graph, const Node& whole)
      : graph_(graph), stem_(graph.value(whole.outputs[0]).name), name_(whole.name), device_(whole.device) {}

  // Adds a node with new outputs and returns them.
  std::vector<ValueId> Add(std::string op, std::vector<ValueId> inputs, size_t outputs, Attributes attrs) {
    Node node;
    node.op = std::move(op);
    node.name = name_;
    node.device = device_;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph_.AddTemporary(stem_));
    return graph_.node(graph_.AddNode(std::move(node))).outputs;
  }
  ValueId Add(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return Add(std::move(op), std::move(inputs), 1, std::move(attrs))[0];
  }

  // Adds a constant.
  ValueId Constant(Tensor tensor) { return AddFreshConstant(graph_, stem_, std::move(tensor)); }
  ValueId Integers(const std::vector<int64_t>& values) { return Constant(Tensor::Vector(std::span(values))); }

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
