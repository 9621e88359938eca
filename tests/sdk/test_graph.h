// SPDX-License-Identifier: Apache-2.0
// Graphs of float32[4] values in the form that a backend receives.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "mge/plugin.h"

// A node: an operator, the numbers of its input values, and the number of its output value.
struct TestNode {
  std::string op;
  std::vector<int32_t> inputs;
  int32_t output;
};

struct TestGraph {
  TestGraph(std::vector<TestNode> list, int32_t values, std::vector<int32_t> graph_outputs)
      : nodes(std::move(list)), outputs(std::move(graph_outputs)), value(static_cast<size_t>(values)) {
    std::vector<bool> made(value.size());
    for (TestNode& n : nodes) {
      mge_node raw = {};
      raw.struct_size = sizeof(raw);
      raw.op = {n.op.data(), n.op.size()};
      raw.inputs = n.inputs.data();
      raw.input_count = n.inputs.size();
      raw.outputs = &n.output;
      raw.output_count = 1;
      raw_nodes.push_back(raw);
      made[static_cast<size_t>(n.output)] = true;
      for (int32_t i : n.inputs) ++value[static_cast<size_t>(i)].uses;
    }
    for (int32_t i : outputs) ++value[static_cast<size_t>(i)].uses;
    for (mge_value& v : value) {
      v.struct_size = sizeof(v);
      v.dtype = MGE_DTYPE_F32;
      v.rank = 1;
      v.dims = &dim;
      value_list.push_back(&v);
    }
    for (const mge_node& n : raw_nodes) node_list.push_back(&n);
    for (int32_t i = 0; i < values; ++i) {
      if (!made[static_cast<size_t>(i)]) inputs.push_back(i);
    }
    graph = {sizeof(graph),     0,
             node_list.data(),  node_list.size(),
             value_list.data(), value_list.size(),
             inputs.data(),     inputs.size(),
             outputs.data(),    outputs.size()};
    problem = {sizeof(problem), 1, &graph, &mode, nullptr, 0};
  }
  TestGraph(const TestGraph&) = delete;

  std::vector<TestNode> nodes;
  std::vector<int32_t> inputs, outputs;
  std::vector<mge_value> value;
  std::vector<mge_node> raw_nodes;
  std::vector<const mge_node*> node_list;
  std::vector<const mge_value*> value_list;
  int64_t dim = 4;
  int32_t mode = MGE_WRITE_ADD;
  mge_graph graph;
  mge_problem problem;
};
