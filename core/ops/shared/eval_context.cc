// SPDX-License-Identifier: Apache-2.0
#include "core/ops/shared/eval_context.h"
#include "core/ops/shared/schema.h"

#include <bit>

#include "fmt/format.h"

namespace mge {

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
  absl::Status status = def->eval(*this);
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
  return node.attrs.Has("seed") ? std::bit_cast<uint32_t>(node.attrs.Float("seed")) : fallback;
}

absl::StatusOr<std::vector<HostValue>> Evaluate(const Node& node, std::span<const HostValue> inputs,
                                                HostAllocator& allocator) {
  if (inputs.size() != node.inputs.size()) {
    return Fail(errors::kInternal, fmt::format("{} values were given for {} inputs", inputs.size(),
                                               node.inputs.size()), {.where = NodePlace(node)});
  }
  std::vector<const HostValue*> pointers;
  for (const HostValue& v : inputs) pointers.push_back(&v);
  HostEvalContext context(node, std::move(pointers), allocator, NodeSeed(node, 0));
  return context.Run();
}

}  // namespace mge
