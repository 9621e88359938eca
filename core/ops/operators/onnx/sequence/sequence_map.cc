// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"
#include "core/ops/op_helpers.h"

namespace mge::op_sequence_map {
namespace {

absl::Status CheckBody(const Node& node, const Graph& body) {
  if (FormalInputs(body) != static_cast<int>(node.inputs.size()) || body.outputs().size() != node.outputs.size()) {
    return BadNode(fmt::format("the body has {} inputs and {} outputs, the node has {} and {}", FormalInputs(body),
                               body.outputs().size(), node.inputs.size(), node.outputs.size()));
  }
  return absl::OkStatus();
}

absl::Status Infer(InferContext& ctx) {
  GraphPtr body = ctx.attrs().GraphOrNull("body");
  MGE_RETURN_IF_ERROR(CheckBody(ctx.node(), *body));
  std::vector<ValueType> inputs;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} is absent", i));
    inputs.push_back({ctx.input(i)});
  }
  MGE_ASSIGN_OR_RETURN(std::vector<ValueType> outputs, ctx.InferBody(*body, inputs));
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (outputs[i].kind != ValueKind::kTensor) return ctx.Invalid(fmt::format("output {} of the body is not a tensor", i));
    ctx.SetOutput(i, std::move(outputs[i].type), ValueKind::kSequence);
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  GraphPtr body = ctx.attrs().GraphOrNull("body");
  MGE_RETURN_IF_ERROR(CheckBody(ctx.node(), *body));
  const size_t count = ctx.value(0).sequence.size();
  for (int i = 1; i < ctx.input_count(); ++i) {
    const HostValue& value = ctx.value(i);
    if (value.kind == ValueKind::kSequence && value.sequence.size() != count) {
      return ctx.Invalid(fmt::format("input {} has {} elements, input 0 has {}", i, value.sequence.size(), count));
    }
  }
  std::vector<HostValue> outputs(ctx.output_count());
  for (HostValue& output : outputs) output.kind = ValueKind::kSequence;
  for (size_t k = 0; k < count; ++k) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    std::vector<HostValue> inputs;
    for (int i = 0; i < ctx.input_count(); ++i) {
      const HostValue& value = ctx.value(i);
      inputs.push_back(value.kind == ValueKind::kSequence ? TensorValue(value.sequence[k]) : value);
    }
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, ctx.RunBody(*body, std::move(inputs)));
    for (int i = 0; i < ctx.output_count(); ++i) outputs[i].sequence.push_back(std::move(results[i].tensor));
  }
  for (int i = 0; i < ctx.output_count(); ++i) MGE_RETURN_IF_ERROR(ctx.SetOutput(i, std::move(outputs[i])));
  return absl::OkStatus();
}

}  // namespace

MGE_OP(sequence_map) = {.name = "SequenceMap",
                        .doc = "Runs a body for every element of a sequence.",
                        .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence},
                                   {.name = "additional_inputs", .arity = Arity::kVariadic, .any_kind = true}},
                        .outputs = {{"out_sequence", {}, Arity::kVariadic}},
                        .attrs = {{"body", AttrType::kGraph, Presence::kRequired, "the body"}},
                        .infer = Infer,
                        .eval = Eval,
                        .traits = kHostOnly,
                        .since = 17};

}  // namespace mge::op_sequence_map
