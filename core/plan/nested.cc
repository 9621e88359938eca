// SPDX-License-Identifier: Apache-2.0
// Creates the programs within a plan: the bodies of control flow, and the continuation.
#include "core/ops/families/control_flow.h"
#include "core/ops/op.h"
#include "core/plan/stages.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<BodyProgram> MakeBody(const PlanBuilder& p, const Graph& body, const Node& node) {
  BodyProgram out;
  out.body = &body;
  Graph copy = body;
  std::span<const ValueId> captures = CapturesOf(node, body);
  size_t formal = copy.inputs().size() - captures.size();
  std::vector<ValueId> inputs(copy.inputs().begin(), copy.inputs().begin() + static_cast<int64_t>(formal));
  for (size_t k = 0; k < captures.size(); ++k) {
    ValueId inner = copy.inputs()[formal + k];
    if (p.IsConstant(captures[k])) {
      Value& v = copy.value(inner);
      v.role = Role::kConstant;
      v.constant = p.value(captures[k]).constant;
      v.type = p.value(captures[k]).type;
    } else {
      inputs.push_back(inner);
      out.captures.push_back(static_cast<int>(&captures[k] - node.captures.data()));
    }
  }
  copy.inputs() = std::move(inputs);
  absl::StatusOr<std::shared_ptr<Program>> program =
      Program::Create(copy, p.context, fmt::format("a body of {}", NodePlace(node)));
  if (!program.ok() && IsShapeFault(program.status())) {
    program = Program::Unfit(std::move(copy), p.context, AddWhere(program.status(), NodePlace(node)));
  }
  MGE_ASSIGN_OR_RETURN(out.program, std::move(program));
  return out;
}

absl::Status MakeContinuation(PlanBuilder& p) {
  if (p.cover.deferred.empty()) return absl::OkStatus();
  auto next = std::make_unique<Continuation>();
  Graph rest;
  std::unordered_map<ValueId, ValueId> map;
  auto import = [&](ValueId v) {
    if (v == kNone) return kNone;
    if (auto it = map.find(v); it != map.end()) return it->second;
    const Value& source = p.value(v);
    ValueId id;
    if (p.IsConstant(v)) {
      id = rest.AddConstant(source.name, source.constant);
    } else if (p.IsDeferred(v)) {
      Value temporary = {.name = source.name, .kind = source.kind, .type = source.type};
      id = rest.AddValue(std::move(temporary));
    } else {
      const bool tensor = source.kind == ValueKind::kTensor;
      id = rest.AddInput(source.name, {.dtype = tensor ? source.type.dtype : DType::kUndefined});  // shape unknown
      rest.value(id).kind = source.kind;
      HostOperand o = p.OperandOf(v);
      next->inputs.push_back({source.name, source.kind, source.type, o.location});
    }
    map[v] = id;
    return id;
  };
  for (NodeId id : p.cover.deferred) {
    Node node = p.graph.node(id);
    for (ValueId& v : node.inputs) v = import(v);
    for (ValueId& v : node.captures) v = import(v);
    for (ValueId& v : node.outputs) v = import(v);
    rest.AddNode(std::move(node));
  }
  uint32_t outputs = 0;
  for (size_t i = 0; i < p.graph.outputs().size(); ++i) {
    if (!p.IsDeferred(p.graph.outputs()[i])) continue;
    rest.outputs().push_back(map.at(p.graph.outputs()[i]));
    p.plan->outputs[i].location.index = outputs++;
  }
  MGE_ASSIGN_OR_RETURN(next->program, Program::Create(std::move(rest), p.context, "the nodes whose shapes depend on data"));
  p.plan->bodies.push_back({-1, "continuation", next->program});
  p.plan->continuation = std::move(next);
  return absl::OkStatus();
}

}  // namespace mge
