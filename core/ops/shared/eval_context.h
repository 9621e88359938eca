// SPDX-License-Identifier: Apache-2.0
// The EvalContext over host values in a vector. Without bodies; the interpreter adds them.
#pragma once

#include <deque>
#include <vector>

#include "core/ops/interpreter.h"
#include "core/ops/op.h"

namespace mge {

// Judges inputs that are all there by the schema and by the shape rule, so that no evaluator meets some that do not fit
// together. `inputs` as the node's, nullptr for an absent one. Operators with bodies, on sequences or on optionals check for
// themselves.
absl::Status CheckInputs(const Node& node, const OpDef& def, const std::vector<const HostValue*>& inputs);

// Inputs and `stop` are borrowed; Run() moves the outputs out.
class HostEvalContext : public EvalContext {
 public:
  HostEvalContext(const Node& node, std::vector<const HostValue*> inputs, HostAllocator& allocator, const StopCheck& stop,
                  uint64_t seed)
      : node_(node), inputs_(std::move(inputs)), allocator_(allocator), stop_(stop), seed_(seed),
        outputs_(node.outputs.size()), set_(node.outputs.size(), 0) {}

  const Node& node() const override { return node_; }
  const HostValue& value(int i) const override { return *inputs_[i]; }
  TensorType output_type(int) const override { return {}; }
  absl::StatusOr<Tensor*> Output(int i, DType dtype, Shape shape) override;
  absl::Status SetOutput(int i, HostValue value) override;
  absl::StatusOr<std::vector<HostValue>> RunBody(const Graph& body, std::vector<HostValue> inputs) override;
  absl::Status CheckStop() override { return stop_ ? stop_() : absl::OkStatus(); }
  uint64_t seed() override { return seed_; }
  HostAllocator& allocator() override { return allocator_; }

  // Runs the node's evaluator, checks that every present output was set, and gives the errors a place.
  absl::StatusOr<std::vector<HostValue>> Run();

 private:
  const Node& node_;
  std::vector<const HostValue*> inputs_;
  HostAllocator& allocator_;
  const StopCheck& stop_;
  uint64_t seed_;
  std::vector<HostValue> outputs_;
  std::vector<char> set_;
  std::deque<Tensor> unused_;  // what an evaluator writes for outputs that nobody asked for
};

}  // namespace mge
