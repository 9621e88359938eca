// SPDX-License-Identifier: Apache-2.0
// Runs a whole graph on the host with the operators' reference evaluators.
//
// The results define what every backend must compute. The conformance kit and tests compare backends with them.
//
// Algorithm: nodes run one after the other in topological order. Before the first run of a graph, the interpreter
// computes that order and the last use of each value. Each value is released after its last use. A node with bodies
// runs them by a recursive call; the captured values are passed as additional inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ops/op.h"

namespace mge {

// An interpreter for any number of graphs. It keeps the order and the last uses of every graph that it ran. A loop
// therefore computes them only once. Graphs must outlive it and must not change. `allocator` is borrowed. Not
// thread-safe.
class Interpreter {
 public:
  explicit Interpreter(HostAllocator& allocator = UnlimitedHostAllocator(), StopCheck stop = nullptr, uint64_t seed = 0)
      : allocator_(allocator), stop_(std::move(stop)), seed_(seed) {}

  // Runs the graph and returns its outputs. `inputs` holds the formal inputs, then the captures. All nodes must be
  // bound. Fails with kBadInput if the number of inputs is wrong, and with kLimit if bodies are nested too deeply.
  // Evaluators' errors name the node.
  absl::StatusOr<std::vector<HostValue>> Run(const Graph& graph, std::vector<HostValue> inputs);

 private:
  class Context;
  struct Program {
    std::vector<NodeId> order;
    std::vector<std::vector<ValueId>> last_uses;  // parallel to order: values to release after the node
  };

  absl::StatusOr<const Program*> Prepare(const Graph& graph);

  HostAllocator& allocator_;
  StopCheck stop_;
  uint64_t seed_;
  uint64_t random_nodes_run_ = 0;
  int depth_ = 0;
  std::unordered_map<const Graph*, std::unique_ptr<Program>> programs_;
};

absl::StatusOr<std::vector<HostValue>> Interpret(const Graph& graph, std::vector<HostValue> inputs,
                                                 HostAllocator& allocator = UnlimitedHostAllocator(),
                                                 StopCheck stop = nullptr, uint64_t seed = 0);

// Does the same as Evaluate() of op.h, and calls `stop` in long loops.
absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator, const StopCheck& stop);

}  // namespace mge
