// SPDX-License-Identifier: Apache-2.0
#include "core/plan/nested.h"

#include <unordered_map>
#include <utility>

#include "core/ops/families/control_flow.h"
#include "core/ops/op.h"
#include "core/plan/program.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<BodyProgram> MakeBody(const Graph& graph, const Graph& body, const Node& node,
                                     const std::shared_ptr<const PlanContext>& context, const StopControl* stop) {
  BodyProgram out;
  out.body = &body;
  Graph copy = body;
  std::span<const ValueId> captures = CapturesOf(node, body);
  size_t formal = copy.inputs().size() - captures.size();
  std::vector<ValueId> inputs(copy.inputs().begin(), copy.inputs().begin() + static_cast<int64_t>(formal));
  for (size_t k = 0; k < captures.size(); ++k) {
    ValueId inner = copy.inputs()[formal + k];
    if (IsConstantValue(graph, captures[k])) {
      Value& v = copy.value(inner);
      v.role = Role::kConstant;
      v.constant = graph.value(captures[k]).constant;
      v.type = graph.value(captures[k]).type;
    } else {
      inputs.push_back(inner);
      out.captures.push_back(static_cast<int>(&captures[k] - node.captures.data()));
    }
  }
  copy.inputs() = std::move(inputs);
  absl::StatusOr<std::shared_ptr<Program>> program =
      Program::Create(copy, context, fmt::format("a body of {}", NodePlace(node)), stop);
  if (!program.ok() && IsShapeFault(program.status())) {
    program = Program::Unfit(std::move(copy), context, AddWhere(program.status(), NodePlace(node)));
  }
  MGE_ASSIGN_OR_RETURN(out.program, std::move(program));
  return out;
}

absl::StatusOr<std::unique_ptr<Continuation>> MakeContinuation(const Graph& graph, const Cover& cover,
                                                               const Schedule& schedule, const MemoryPlan& memory,
                                                               const std::shared_ptr<const PlanContext>& context,
                                                               const StopControl* stop) {
  if (cover.deferred.empty()) return nullptr;
  auto next = std::make_unique<Continuation>();
  Graph rest;
  std::unordered_map<ValueId, ValueId> map;
  auto import = [&](ValueId v) {
    if (v == kNone) return kNone;
    if (auto it = map.find(v); it != map.end()) return it->second;
    const Value& source = graph.value(v);
    ValueId id;
    if (IsConstantValue(graph, v)) {
      id = rest.AddConstant(source.name, source.constant);
    } else if (cover.IsDeferred(v)) {
      Value temporary = {.name = source.name, .kind = source.kind, .type = source.type};
      id = rest.AddValue(std::move(temporary));
    } else {
      const bool tensor = source.kind == ValueKind::kTensor;
      id = rest.AddInput(source.name, {.dtype = tensor ? source.type.dtype : DType::kUndefined});  // shape unknown
      rest.value(id).kind = source.kind;
      const Location location = memory.LocationOf(memory.BufferOf(schedule.HostItem(v)));
      next->inputs.push_back({source.name, source.kind, source.type, location});
    }
    map[v] = id;
    return id;
  };
  for (NodeId id : cover.deferred) {
    Node node = graph.node(id);
    for (ValueId& v : node.inputs) v = import(v);
    for (ValueId& v : node.captures) v = import(v);
    for (ValueId& v : node.outputs) v = import(v);
    rest.AddNode(std::move(node));
  }
  for (ValueId v : graph.outputs()) {
    if (cover.IsDeferred(v)) rest.outputs().push_back(map.at(v));
  }
  MGE_ASSIGN_OR_RETURN(next->program,
                       Program::Create(std::move(rest), context, "the nodes whose shapes depend on data", stop));
  return next;
}

}  // namespace mge
