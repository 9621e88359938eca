// SPDX-License-Identifier: Apache-2.0
// Runs a whole graph by the operators' reference evaluators on host values: the yardstick for every backend.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ops/op.h"

namespace mge {

// Asked between nodes and in long loops; an error ends the run. May be empty.
using StopCheck = std::function<absl::Status()>;

// Keeps what it learned about a graph (order, last uses), so that bodies of loops run without preparing again.
// Graphs must outlive it and stay as they are. One thread at a time.
class Interpreter {
 public:
  explicit Interpreter(HostAllocator& allocator = UnlimitedHostAllocator(), StopCheck stop = nullptr,
                       uint64_t seed = 0)
      : allocator_(allocator), stop_(std::move(stop)), seed_(seed) {}

  // Values of the graph's outputs. `inputs` are the formal inputs, then the captures. Nodes must be bound.
  // A value is freed after its last use. Errors name the node.
  absl::StatusOr<std::vector<HostValue>> Run(const Graph& graph, std::vector<HostValue> inputs);

 private:
  class Context;
  struct Program {
    std::vector<NodeId> order;
    std::vector<std::vector<ValueId>> last_uses;  // parallel to order: values that nobody reads afterwards
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

// Evaluate() of op.h for one node, which asks `stop` in long loops.
absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator, const StopCheck& stop);

}  // namespace mge
