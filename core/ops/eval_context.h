// SPDX-License-Identifier: Apache-2.0
// An EvalContext for one node, with its values in host memory. It runs no bodies; the interpreter derives a class that
// does.
#pragma once

#include <deque>
#include <vector>

#include "core/ops/interpreter.h"
#include "core/ops/op.h"

namespace mge {

// Checks the inputs against the schema and the shape rule, so that no evaluator receives inputs that do not match.
// `inputs` are parallel to the node's inputs; null for an absent one. Does not check operators with bodies, sequences
// or optionals.
absl::Status CheckInputs(const Node& node, const OpDef& def, const std::vector<const HostValue*>& inputs);

// The context of one evaluation. `node`, the inputs, `allocator` and `stop` are borrowed. It owns the outputs until
// Run() returns them.
class HostEvalContext : public EvalContext {
 public:
  HostEvalContext(const Node& node, std::vector<const HostValue*> inputs, HostAllocator& allocator, const StopCheck& stop,
                  uint64_t seed)
      : node_(node),
        inputs_(std::move(inputs)),
        allocator_(allocator),
        stop_(stop),
        seed_(seed),
        outputs_(node.outputs.size()),
        set_(node.outputs.size(), 0) {}

  const Node& node() const override { return node_; }
  const HostValue& value(int i) const override { return *inputs_[i]; }
  TensorType output_type(int) const override { return {}; }
  absl::StatusOr<Tensor*> Output(int i, DType dtype, Shape shape) override;
  absl::Status SetOutput(int i, HostValue value) override;
  absl::StatusOr<std::vector<HostValue>> RunBody(const Graph& body, std::vector<HostValue> inputs) override;
  absl::Status CheckStop() override { return stop_ ? stop_() : absl::OkStatus(); }
  uint64_t seed() override { return seed_; }
  HostAllocator& allocator() override { return allocator_; }

  // Runs the node's evaluator and checks that it set every present output. Adds the node's name to errors.
  absl::StatusOr<std::vector<HostValue>> Run();

 private:
  const Node& node_;
  std::vector<const HostValue*> inputs_;
  HostAllocator& allocator_;
  const StopCheck& stop_;
  uint64_t seed_;
  std::vector<HostValue> outputs_;
  std::vector<char> set_;
  std::deque<Tensor> unused_;  // memory for absent outputs, which an evaluator may write
};

}  // namespace mge
