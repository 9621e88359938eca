// SPDX-License-Identifier: Apache-2.0
#include "core/ops/eval_context.h"

#include <algorithm>
#include <bit>

#include "core/ops/schema.h"
#include "fmt/format.h"

namespace mge {
namespace {

// An InferContext for a node whose inputs all have values.
class ConcreteInferContext : public InferContext {
 public:
  ConcreteInferContext(const Node& node, const std::vector<const HostValue*>& inputs)
      : node_(node), inputs_(inputs), types_(inputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      types_[i] = {.dtype = inputs[i]->tensor.dtype(), .has_rank = true, .dims = inputs[i]->tensor.shape()};
    }
  }

  const Node& node() const override { return node_; }
  const TensorType& input(int i) const override { return types_[i]; }
  ValueKind input_kind(int i) const override { return inputs_[i]->kind; }
  const Tensor* constant(int i) const override { return &inputs_[i]->tensor; }
  void SetOutput(int, TensorType, ValueKind) override {}
  void SetConstant(int, Tensor) override {}
  absl::StatusOr<std::vector<ValueType>> InferBody(const Graph&, std::span<const ValueType>) override {
    return Unsupported("inferring a body while a single node is evaluated");
  }

 private:
  const Node& node_;
  const std::vector<const HostValue*>& inputs_;
  std::vector<TensorType> types_;
};

}  // namespace

absl::Status CheckInputs(const Node& node, const OpDef& def, const std::vector<const HostValue*>& inputs) {
  for (const auto& [name, value] : node.attrs) {
    if (std::holds_alternative<GraphPtr>(value)) return absl::OkStatus();
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    if (inputs[i]->kind != ValueKind::kTensor) return absl::OkStatus();
    const Slot& slot = def.inputs[std::min<int>(static_cast<int>(i), def.inputs.size() - 1)];
    if (!slot.types.Contains(inputs[i]->tensor.dtype())) {
      return Fail(errors::kUnsupportedType,
                  fmt::format("{}: input '{}' has type {}", node.op, slot.name, DTypeName(inputs[i]->tensor.dtype())));
    }
  }
  ConcreteInferContext context(node, inputs);
  return def.infer(context);
}

absl::StatusOr<Tensor*> HostEvalContext::Output(int i, DType dtype, Shape shape) {
  absl::StatusOr<Tensor> tensor = Tensor::Create(dtype, std::move(shape), allocator_);
  if (!tensor.ok()) return tensor.status();
  if (!has_output(i)) {
    unused_.push_back(*std::move(tensor));
    return &unused_.back();
  }
  set_[i] = 1;
  outputs_[i].tensor = *std::move(tensor);
  return &outputs_[i].tensor;
}

absl::Status HostEvalContext::SetOutput(int i, HostValue value) {
  if (has_output(i)) {
    set_[i] = 1;
    outputs_[i] = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HostValue>> HostEvalContext::RunBody(const Graph&, std::vector<HostValue>) {
  return Unsupported("running a body while a single node is evaluated");
}

absl::StatusOr<std::vector<HostValue>> HostEvalContext::Run() {
  const OpDef* def = node_.def ? node_.def : FindOp(node_.domain, node_.op);
  if (!def || !def->eval) {
    return Fail(errors::kUnsupportedOp, fmt::format("operator '{}' has no reference evaluator", node_.op),
                {.where = NodePlace(node_)});
  }
  absl::Status status = CheckInputs(node_, *def, inputs_);
  if (status.ok()) status = def->eval(*this);
  for (int i = 0; status.ok() && i < output_count(); ++i) {
    if (has_output(i) && !set_[i]) {
      status = Fail(errors::kInternal, fmt::format("{} did not compute output {}", node_.op, i));
    }
  }
  if (status.ok()) return std::move(outputs_);
  std::string place = NodePlace(node_);
  return PartsOf(status).where.starts_with(place) ? status : AddWhere(std::move(status), place);
}

uint64_t NodeSeed(const Node& node, uint64_t fallback) {
  const AttributeValue* seed = node.attrs.Find("seed");
  if (!seed) return fallback;
  if (const int64_t* whole = std::get_if<int64_t>(seed)) return static_cast<uint64_t>(*whole);
  return std::bit_cast<uint32_t>(node.attrs.Float("seed"));
}

absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator) {
  return Evaluate(node, inputs, allocator, nullptr);
}

absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator, const StopCheck& stop) {
  if (inputs.size() != node.inputs.size()) {
    return Fail(errors::kInternal, fmt::format("{} values were given for {} inputs", inputs.size(), node.inputs.size()),
                {.where = NodePlace(node)});
  }
  if (const OpDef* def = node.def ? nullptr : FindOp(node.domain, node.op)) {  // not bound
    Node bound = node;
    bound.def = def;
    AddDefaults(*def, bound.attrs);
    return Evaluate(bound, inputs, allocator, stop);
  }
  std::vector<const HostValue*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) pointers.push_back(node.inputs[i] == kNone ? nullptr : &inputs[i]);
  HostEvalContext context(node, std::move(pointers), allocator, stop, NodeSeed(node, 0));
  return context.Run();
}

}  // namespace mge
