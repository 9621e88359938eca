// SPDX-License-Identifier: Apache-2.0
// Chains of nodes, for tests of fusions.
#pragma once

#include "tests/support/backend_harness.h"

namespace mge::testing {

// Appends a node to the case. Its inputs are the current output and `more`, which are constants if `constant`. Its output
// becomes the only output of the case.
inline void Then(Case& c, std::string op, std::vector<Tensor> more = {}, Attributes attrs = {}, bool constant = true) {
  Node node;
  node.op = op;
  node.version = 24;
  node.name = op + std::to_string(c.graph.node_count());
  node.attrs = std::move(attrs);
  node.inputs = {c.graph.outputs()[0]};
  for (Tensor& t : more) {
    std::string name = node.name + "_operand";
    if (constant) {
      node.inputs.push_back(c.graph.AddConstant(name, t));
    } else {
      node.inputs.push_back(c.graph.AddInput(name, {t.dtype(), true, t.shape(), {}}));
      c.inputs.push_back(t);
    }
  }
  node.outputs = {c.graph.AddTemporary("y")};
  c.graph.outputs()[0] = node.outputs[0];
  c.name += "+" + op;
  c.graph.AddNode(std::move(node));
}

// Returns the tolerance for sums of k products of numbers of about 1.
inline std::function<Tolerance(DType)> OfProducts(int64_t k) {
  return [k](DType t) {
    Tolerance r = ToleranceOf(t, 8);
    if (t == DType::kF32 || t == DType::kF64) r.absolute *= static_cast<double>(k);
    return r;
  };
}

}  // namespace mge::testing
