// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/ops/families/control_flow.h"
#include "core/ops/families/unroll.h"
#include "core/ops/gradient.h"
#include "core/ops/known_values.h"
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

// Returns whether the condition that the body returns is true whenever the loop's first one is: it is that value, or a constant.
bool ConditionStays(InferContext& ctx, const Graph& body) {
  ValueId v = body.outputs()[0];
  for (NodeId id = body.value(v).producer; id != kNone; id = body.value(v).producer) {
    const Node& node = body.node(id);
    if (!IsOp(node, "Identity") && !IsOp(node, "Cast")) return false;
    v = node.inputs[0];
  }
  const auto place = std::ranges::find(body.inputs(), v);
  if (place == body.inputs().end()) {
    const Tensor& constant = body.value(v).constant;
    return body.value(v).role == Role::kConstant && constant.dtype() == DType::kBool && constant.elements() == 1 &&
           constant.Data<bool>()[0];
  }
  const auto input = place - body.inputs().begin(), captures = input - FormalInputs(body);
  if (captures < 0) return input == 1;
  return ctx.has_input(1) && ctx.node().captures[static_cast<size_t>(captures)] == ctx.node().inputs[1];
}

// Returns the number of iterations if it follows from what is known, else kUnknownDim.
int64_t KnownTrips(InferContext& ctx, const Graph& body) {
  const Tensor *trips = ctx.has_input(0) ? ctx.constant(0) : nullptr, *go = ctx.has_input(1) ? ctx.constant(1) : nullptr;
  if (!trips || trips->elements() != 1 || (ctx.has_input(1) && (!go || go->elements() != 1))) return kUnknownDim;
  if (go && !go->Data<bool>()[0]) return 0;
  return ConditionStays(ctx, body) ? std::max<int64_t>(trips->Data<int64_t>()[0], 0) : kUnknownDim;
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
  const int64_t trips = KnownTrips(ctx, *body);
  for (int i = c.states; i < c.states + c.scans; ++i) {
    TensorType& type = outputs[1 + i].type;
    if (outputs[1 + i].kind != ValueKind::kTensor) {
      return ctx.Invalid(fmt::format("scan output {} of the body is not a tensor", i - c.states));
    }
    if (type.has_rank) {
      type.dims.insert(type.dims.begin(), trips);
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

// Returns whether the loop goes on after an iteration, or nothing if that depends on the run's values.
absl::StatusOr<std::optional<bool>> GoesOn(const FunctionBody& f, const Graph& body, int64_t trip, size_t states) {
  Graph known_inputs = body;
  auto set = [&](size_t i, Tensor elements) {
    Value& v = known_inputs.value(known_inputs.inputs()[i]);
    v.role = Role::kConstant;
    v.type = MakeType(elements.dtype(), elements.shape());
    v.constant = std::move(elements);
  };
  set(0, Tensor::Of<int64_t>(ScalarShape(body, 0), {&trip, 1}));
  const bool yes[] = {true};
  set(1, Tensor::Of<bool>(ScalarShape(body, 1), yes));
  for (size_t i = 2; i < 2 + states; ++i) {
    known_inputs.value(known_inputs.inputs()[i]).type = UnrankedType(f.dtype(static_cast<int>(i)));
  }
  for (size_t k = 0; k < f.captures().size(); ++k) {
    const Value& outer = f.value(f.captures()[k]);
    known_inputs.value(known_inputs.inputs()[2 + states + k]).type = outer.type;
    if (outer.role == Role::kConstant) set(2 + states + k, outer.constant);
  }
  std::vector<Tensor> known;
  MGE_RETURN_IF_ERROR(InferKnownValues(known_inputs, &known));
  const Tensor& condition = known[static_cast<size_t>(known_inputs.outputs()[0])];
  if (!condition.defined()) return std::nullopt;
  MGE_ASSIGN_OR_RETURN(const bool goes_on, ScalarBool("the body's condition", condition));
  return goes_on;
}

// The iterations one after the other, if their number is known.
absl::StatusOr<bool> GradientBody(FunctionBody& f) {
  if (!f.IsStatic() || (f.has_input(0) && !f.constant(0)) || (f.has_input(1) && !f.constant(1))) return false;
  const GraphPtr body = f.attrs().GraphOrNull("body");
  MGE_RETURN_IF_ERROR(RequireTensors(f, *body));
  int64_t trips = INT64_MAX;
  bool goes_on = true;
  if (f.has_input(0)) {
    MGE_ASSIGN_OR_RETURN(trips, ScalarInt("M", *f.constant(0)));
  }
  if (f.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(goes_on, ScalarBool("cond", *f.constant(1)));
  }
  std::vector<ValueId> initial;
  for (int i = 2; i < f.input_count(); ++i) initial.push_back(f.input(i));
  const size_t states = initial.size(), scans = body->outputs().size() - 1 - states;
  Unrolled iterations(f, *body, std::move(initial));
  std::vector<std::vector<ValueId>> scanned(scans);
  const bool yes[] = {true};
  for (int64_t trip = 0; trip < trips && goes_on; ++trip) {
    const ValueId number = f.Constant(Tensor::Of<int64_t>(ScalarShape(*body, 0), {&trip, 1}));
    const ValueId condition = f.Constant(Tensor::Of<bool>(ScalarShape(*body, 1), yes));
    MGE_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, iterations.Add({number, condition}));
    iterations.Pass(outputs, 1);
    for (size_t i = 0; i < scans; ++i) scanned[i].push_back(outputs[1 + states + i]);
    MGE_ASSIGN_OR_RETURN(const std::optional<bool> next, GoesOn(f, *body, trip, states));
    if (!next) return f.Unsupported("the gradient of a Loop whose end depends on the values of a run");
    goes_on = *next;
  }
  for (size_t i = 0; i < states; ++i) f.Result(static_cast<int>(i), "Identity", {iterations.states()[i]});
  for (size_t i = 0; i < scans; ++i) {
    MGE_RETURN_IF_ERROR(StackResult(f, static_cast<int>(states + i), scanned[i], 0));
  }
  return true;
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
                .gradient = ReplacementGradient,
                .gradient_body = GradientBody,
                .traits = kHostOnly};

}  // namespace mge::op_loop
