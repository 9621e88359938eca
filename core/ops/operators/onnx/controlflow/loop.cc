// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"
#include "core/ops/op_helpers.h"

namespace mge::op_loop {
namespace {

// The numbers of carried values. Body inputs: iteration number, condition, states. Body outputs: condition, states,
// scan outputs.
struct Counts {
  int states = 0;
  int scans = 0;
};

absl::StatusOr<Counts> Count(const Node& node, const Graph& body) {
  Counts c;
  c.states = std::max(0, static_cast<int>(node.inputs.size()) - 2);
  c.scans = static_cast<int>(body.outputs().size()) - 1 - c.states;
  if (FormalInputs(body) != c.states + 2 || c.scans < 0) {
    return BadNode(fmt::format("{} carried values; the body has {} inputs and {} outputs", c.states, FormalInputs(body),
                               body.outputs().size()));
  }
  if (static_cast<int>(node.outputs.size()) > c.states + c.scans) {
    return BadNode(fmt::format("{} outputs, but the body has only {}", node.outputs.size(), c.states + c.scans));
  }
  return c;
}

// Returns the shape of the iteration number or the condition: a scalar, or a vector of one element if the body declares
// that.
Shape ScalarShape(const Graph& body, int input) {
  const TensorType& type = body.value(body.inputs()[input]).type;
  return type.has_rank && type.dims.size() == 1 ? Shape{1} : Shape{};
}

absl::Status Infer(InferContext& ctx) {
  GraphPtr body = ctx.attrs().GraphOrNull("body");
  MGE_ASSIGN_OR_RETURN(Counts c, Count(ctx.node(), *body));
  std::vector<ValueType> inputs = {{MakeType(DType::kI64, ScalarShape(*body, 0))},
                                   {MakeType(DType::kBool, ScalarShape(*body, 1))}};
  for (int i = 0; i < c.states; ++i) {
    if (!ctx.has_input(2 + i)) return ctx.Invalid(fmt::format("carried value {} is absent", i));
    inputs.push_back({ctx.input(2 + i), ctx.input_kind(2 + i)});
  }
  MGE_ASSIGN_OR_RETURN(std::vector<ValueType> outputs, InferCarried(ctx, *body, std::move(inputs), 2, 1, c.states));
  for (int i = 0; i < c.states; ++i) ctx.SetOutput(i, outputs[1 + i].type, outputs[1 + i].kind);
  for (int i = c.states; i < c.states + c.scans; ++i) {
    TensorType& type = outputs[1 + i].type;
    if (outputs[1 + i].kind != ValueKind::kTensor) {
      return ctx.Invalid(fmt::format("scan output {} of the body is not a tensor", i - c.states));
    }
    if (type.has_rank) {
      type.dims.insert(type.dims.begin(), kUnknownDim);
      type.symbols.clear();
    }
    ctx.SetOutput(i, std::move(type));
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  GraphPtr body = ctx.attrs().GraphOrNull("body");
  MGE_ASSIGN_OR_RETURN(Counts c, Count(ctx.node(), *body));
  int64_t trips = INT64_MAX;
  bool condition = true;
  if (ctx.has_input(0)) {
    MGE_ASSIGN_OR_RETURN(trips, ScalarInt("M", ctx.input(0)));
  }
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(condition, ScalarBool("cond", ctx.input(1)));
  }
  std::vector<HostValue> states;
  for (int i = 0; i < c.states; ++i) states.push_back(ctx.value(2 + i));
  std::vector<Stack> scans(c.scans);
  const Shape number_shape = ScalarShape(*body, 0), condition_shape = ScalarShape(*body, 1);
  for (int64_t trip = 0; trip < trips && condition; ++trip) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    std::vector<HostValue> inputs;
    MGE_ASSIGN_OR_RETURN(Tensor number, Tensor::Create(DType::kI64, number_shape, ctx.allocator()));
    number.MutableData<int64_t>()[0] = trip;
    inputs.push_back(TensorValue(std::move(number)));
    MGE_ASSIGN_OR_RETURN(Tensor go_on, Tensor::Create(DType::kBool, condition_shape, ctx.allocator()));
    go_on.MutableData<bool>()[0] = true;
    inputs.push_back(TensorValue(std::move(go_on)));
    for (int i = 0; i < c.states; ++i) {
      ValueKind formal = body->value(body->inputs()[2 + i]).kind;
      ValueKind wanted = IsOptional(formal) ? formal : states[i].kind;
      MGE_ASSIGN_OR_RETURN(HostValue state, AsKind(std::move(states[i]), wanted));
      inputs.push_back(std::move(state));
    }
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, ctx.RunBody(*body, std::move(inputs)));
    MGE_ASSIGN_OR_RETURN(condition, ScalarBool("the body's condition", results[0].tensor));
    for (int i = 0; i < c.states; ++i) states[i] = std::move(results[1 + i]);
    for (int i = 0; i < c.scans; ++i) {
      if (!ctx.has_output(c.states + i)) continue;
      MGE_RETURN_IF_ERROR(scans[i].Append(ctx, fmt::format("scan output {}", i), results[1 + c.states + i].tensor));
    }
  }
  for (int i = 0; i < c.states; ++i) {
    ValueKind kind = body->value(body->outputs()[1 + i]).kind;
    MGE_ASSIGN_OR_RETURN(HostValue state, AsKind(std::move(states[i]), kind));
    MGE_RETURN_IF_ERROR(ctx.SetOutput(i, std::move(state)));
  }
  for (int i = 0; i < c.scans; ++i) {
    if (ctx.has_output(c.states + i)) MGE_RETURN_IF_ERROR(scans[i].Finish(ctx, c.states + i));
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(loop) = {.name = "Loop",
                .doc = "Runs a body M times, or while its condition is true. Passes values from iteration to iteration.",
                .inputs = {{"M", {DType::kI64}, Arity::kOptional},
                           {"cond", kBoolean, Arity::kOptional},
                           {.name = "v_initial", .arity = Arity::kVariadic, .any_kind = true}},
                .outputs = {{"v_final_and_scan_outputs", {}, Arity::kVariadic}},
                .attrs = {{"body", AttrType::kGraph, Presence::kRequired, "the body"}},
                .infer = Infer,
                .eval = Eval,
                .traits = kHostOnly};

}  // namespace mge::op_loop
