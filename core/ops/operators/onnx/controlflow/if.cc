// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"
#include "core/ops/op_helpers.h"

namespace mge::op_if {
namespace {

constexpr std::string_view kBranches[] = {"then_branch", "else_branch"};

absl::Status CheckBranch(const Node& node, std::string_view name) {
  GraphPtr body = node.attrs.GraphOrNull(name);
  if (FormalInputs(*body) != 0) return BadNode(fmt::format("{} has inputs; a branch must not have any", name));
  if (body->outputs().size() != node.outputs.size()) {
    return BadNode(fmt::format("{} has {} outputs, the node has {}", name, body->outputs().size(), node.outputs.size()));
  }
  return absl::OkStatus();
}

// Accepts one branch that is not valid for these shapes. Exporters protect Squeeze with such an If, and models for
// several rates or ranks contain them too. The branch's error is reported when the branch runs, or here if it is known
// to run.
absl::Status Infer(InferContext& ctx) {
  std::optional<bool> taken;
  if (const Tensor* condition = ctx.constant(0)) {
    MGE_ASSIGN_OR_RETURN(taken, ScalarBool("cond", *condition));
  }
  std::optional<std::vector<ValueType>> types;
  absl::Status fault;
  for (int branch = 0; branch < 2; ++branch) {
    MGE_RETURN_IF_ERROR(CheckBranch(ctx.node(), kBranches[branch]));
    if (taken && *taken != (branch == 0)) continue;
    GraphPtr body = ctx.attrs().GraphOrNull(kBranches[branch]);
    absl::StatusOr<std::vector<ValueType>> found = ctx.InferBody(*body, {});
    if (!found.ok()) {
      if (taken || !IsShapeFault(found.status())) return found.status();
      if (fault.ok()) fault = found.status();
      continue;
    }
    if (!types) {
      types = *std::move(found);
      continue;
    }
    for (size_t i = 0; i < found->size(); ++i) {
      ValueType& type = (*types)[i];
      const ValueType& other = (*found)[i];
      if (type.kind != other.kind || type.type.dtype != other.type.dtype) {
        return ctx.Invalid(fmt::format("output {} differs in type between the branches: {} and {}", i,
                                       DTypeName(type.type.dtype), DTypeName(other.type.dtype)));
      }
      type.type = Common(type.type, other.type);
    }
  }
  if (!types) return fault;  // both branches fail
  for (int i = 0; i < ctx.output_count(); ++i) ctx.SetOutput(i, (*types)[i].type, (*types)[i].kind);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(bool condition, ScalarBool("cond", ctx.input(0)));
  std::string_view branch = kBranches[condition ? 0 : 1];
  MGE_RETURN_IF_ERROR(CheckBranch(ctx.node(), branch));
  GraphPtr body = ctx.attrs().GraphOrNull(branch);
  MGE_ASSIGN_OR_RETURN(std::vector<HostValue> results, ctx.RunBody(*body, {}));
  for (int i = 0; i < ctx.output_count(); ++i) {
    MGE_RETURN_IF_ERROR(ctx.SetOutput(i, std::move(results[i])));
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(if) = {.name = "If",
              .doc = "Runs one of two bodies, selected by the condition.",
              .inputs = {{"cond", kBoolean}},
              .outputs = {{"outputs", {}, Arity::kVariadic}},
              .attrs = {{"then_branch", AttrType::kGraph, Presence::kRequired, "the body if the condition is true"},
                        {"else_branch", AttrType::kGraph, Presence::kRequired, "the body if it is false"}},
              .infer = Infer,
              .eval = Eval,
              .traits = kHostOnly};

}  // namespace mge::op_if
