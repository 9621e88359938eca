// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "core/ops/rewrite.h"

namespace mge::op_function_gradient {
namespace {

absl::Status Infer(InferContext& ctx) {
  const Ints wanted = ctx.attrs().IntList("wanted");
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k] < 0 || wanted[k] >= ctx.input_count()) return ctx.Invalid("there is no such input");
    ctx.SetOutput(static_cast<int>(k), ctx.input(static_cast<int>(wanted[k])));
  }
  return absl::OkStatus();
}

// Replaces a node by others. Returns false if nothing does.
absl::StatusOr<bool> Replace(Graph& graph, NodeId id) {
  const OpDef& def = *graph.node(id).def;
  if (const BodyFn body = def.gradient_body ? def.gradient_body : def.body) return ExpandFunction(graph, id, body);
  for (const Rewrite* rewrite : AllRewrites()) {
    if (rewrite->on_request || rewrite->wanted || !rewrite->needs.empty()) continue;
    MGE_ASSIGN_OR_RETURN(const bool changed, rewrite->apply(graph, id, UnlimitedHostAllocator()));
    if (changed) return true;
  }
  return false;
}

// Replaces the node, number 0, and those that replace it, until all that are left have gradient rules of their own. Returns false
// if more must be known about the inputs.
absl::StatusOr<bool> ReplaceAll(Graph& graph) {
  MGE_RETURN_IF_ERROR(InferTypes(graph));
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId id = 0, count = graph.node_count(); id < count; ++id) {
      if (graph.node(id).dead) continue;
      const OpDef& def = *graph.node(id).def;
      const bool has_rule = RuleOf(def) != ReplacementGradient;
      if (has_rule && !def.gradient_body) continue;
      MGE_ASSIGN_OR_RETURN(const bool replaced, Replace(graph, id));
      if (!replaced && (id == 0 || !has_rule)) return false;
      changed |= replaced;
    }
    MGE_RETURN_IF_ERROR(InferTypes(graph));
  }
  // The planner may merge them with the nodes that replace the original one.
  for (NodeId id = 0; id < graph.node_count(); ++id) graph.node(id).recomputed = false;
  return true;
}

absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.IsStatic()) return false;
  Graph graph = *f.attrs().GraphOrNull("function");
  const std::vector<ValueId> operands = graph.inputs();
  for (size_t i = 0; i < operands.size(); ++i) {
    Value& v = graph.value(operands[i]);
    v.type = f.type(static_cast<int>(i));
    if (const Tensor* known = f.constant(static_cast<int>(i))) {
      v.role = Role::kConstant;
      v.constant = *known;
    }
  }
  MGE_ASSIGN_OR_RETURN(const bool replaced, ReplaceAll(graph));
  if (!replaced) return false;
  std::vector<ValueId> gradients(static_cast<size_t>(graph.value_count()), kNone), wanted;
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    const int input = static_cast<int>(operands.size() + k);
    graph.AddInput("dy", f.type(input));
    gradients[static_cast<size_t>(graph.outputs()[k])] = graph.inputs().back();
  }
  for (int64_t i : f.attrs().IntList("wanted")) wanted.push_back(operands[static_cast<size_t>(i)]);
  MGE_RETURN_IF_ERROR(GoBackwards(graph, wanted, gradients, [&](NodeId id) {
    return GradientSource{id, graph.node(id).inputs};
  }));
  graph.outputs().clear();
  std::vector<int> results;
  for (size_t k = 0; k < wanted.size(); ++k) {
    const ValueId gradient = gradients[static_cast<size_t>(wanted[k])];
    if (gradient == kNone) {
      f.Result(static_cast<int>(k), "Identity", {f.Fill(0, f.x(static_cast<int>(f.attrs().IntList("wanted")[k]))).id()});
    } else {
      graph.outputs().push_back(gradient);
      results.push_back(static_cast<int>(k));
    }
  }
  std::vector<ValueId> inputs;
  for (int i = 0; i < f.input_count(); ++i) inputs.push_back(f.input(i));
  const std::vector<ValueId> given = f.Inline(graph, inputs);
  for (size_t k = 0; k < given.size(); ++k) f.Result(results[k], "Identity", {given[k]});
  return true;
}

}  // namespace

MGE_OP(function_gradient) = {
    .name = "FunctionGradient",
    .domain = "mge",
    .doc =
        "The gradients of the operators that replace a node. The function is the node. The inputs are its operands, then "
        "the "
        "gradients of its outputs. The outputs are the gradients of the wanted operands.",
    .inputs = {{"inputs", kAnyType, Arity::kVariadic}},
    .outputs = {{"gradients", kAnyType, Arity::kVariadic}},
    .attrs = {{"function", AttrType::kGraph, Presence::kRequired, "the function"},
              {"wanted", AttrType::kInts, Presence::kRequired, "inputs whose gradients are wanted"}},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .traits = kHostOnly,
};

}  // namespace mge::op_function_gradient
