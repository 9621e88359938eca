// SPDX-License-Identifier: Apache-2.0
// A part of a Graph as structs of the plugin ABI (mge_graph, mge_problem).
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "mge/plugin.h"

namespace mge {

// A list of nodes as an mge_graph. Owns the structs and their arrays. Names, shapes and constants stay in the Graph, which
// must outlive this object. Immutable.
class AbiGraph {
 public:
  // `nodes` must be in topological order. uses[v] is the number of uses of v in the whole graph, graph outputs included.
  AbiGraph(const Graph& graph, std::span<const NodeId> nodes, std::span<const int32_t> uses);
  AbiGraph(const AbiGraph&) = delete;
  AbiGraph& operator=(const AbiGraph&) = delete;

  const mge_graph* graph() const { return &graph_; }

  // Returns the Graph's ids of the inputs, in the order of mge_graph::inputs.
  const std::vector<ValueId>& inputs() const { return input_ids_; }
  // Returns the Graph's ids of the outputs, in the order of mge_graph::outputs.
  const std::vector<ValueId>& outputs() const { return output_ids_; }
  // Returns the Graph's id of the value with that index in mge_graph::values.
  ValueId value(int32_t index) const { return value_ids_[index]; }
  // Returns the Graph's id of the node with that index in mge_graph::nodes.
  NodeId node(int32_t index) const { return node_ids_[index]; }

 private:
  std::vector<NodeId> node_ids_;
  std::vector<ValueId> value_ids_;
  std::vector<ValueId> input_ids_;
  std::vector<ValueId> output_ids_;
  std::deque<mge_value> values_;
  std::deque<mge_node> nodes_;
  std::deque<mge_attr> attrs_;
  std::deque<std::string> texts_;  // attributes that are lists of texts, joined with commas
  std::deque<std::vector<int32_t>> indices_;
  std::deque<std::vector<const mge_attr*>> attr_lists_;
  std::vector<const mge_value*> value_ptrs_;
  std::vector<const mge_node*> node_ptrs_;
  std::vector<int32_t> inputs_;
  std::vector<int32_t> outputs_;
  mge_graph graph_ = {};
};

// The reorder of one value between two layouts, as a problem of the operator mge.Reorder. Owns its structs. Immutable.
class ReorderProblem {
 public:
  ReorderProblem(const TensorType& type, const mge_layout& from, const mge_layout& to, uint32_t threads);
  ReorderProblem(const ReorderProblem&) = delete;
  ReorderProblem& operator=(const ReorderProblem&) = delete;
  const mge_problem* problem() const { return &problem_; }

 private:
  Shape dims_;
  mge_layout layouts_[2];
  mge_value values_[2] = {};
  mge_node node_ = {};
  const mge_value* value_ptrs_[2];
  const mge_node* node_ptr_;
  int32_t in_ = 0, out_ = 1;
  mge_graph graph_ = {};
  mge_problem problem_ = {};
};

// Returns true if backends can see the node. Its operands must be tensors of static shape and fixed element size. It must
// have no body, and its attributes must have types that the ABI can pass.
bool VisibleToBackends(const Graph& graph, const Node& node);

}  // namespace mge
