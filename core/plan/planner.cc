// SPDX-License-Identifier: Apache-2.0
// BuildPlan: the graph made special for its inputs and simplified, then the stages of planning one after the other.
#include <algorithm>

#include "core/plan/pass.h"
#include "core/plan/stages.h"

namespace mge {
namespace {

// The graph for exactly these inputs, simplified.
absl::Status Specialise(Planning& p) {
  for (size_t i = 0; i < p.input_types.size(); ++i) {
    Value& v = p.graph.value(p.graph.inputs()[i]);
    v.kind = p.input_types[i].kind;
    v.type.dtype = p.input_types[i].dtype;
    v.type.has_rank = v.kind == ValueKind::kTensor;
    v.type.dims = p.input_types[i].shape;
    v.type.symbols.clear();
  }
  PassContext passes = {.allocator = &p.plan->device->host_allocator(), .skip = p.context->skip};
  return RunPasses(p.graph, passes, &p.plan->pass_log);
}

absl::Status TakeCover(Planning& p) {
  p.uses = CountUses(p.graph);
  MGE_ASSIGN_OR_RETURN(p.cover, CoverGraph(p.graph, *p.context, p.uses));
  p.plan->dropped_claims = std::move(p.cover.dropped_claims);
  p.deferred = p.cover.deferred;
  std::sort(p.deferred.begin(), p.deferred.end());
  return absl::OkStatus();
}

void BindInputs(Planning& p) {
  for (ValueId v : p.graph.inputs()) {
    BoundValue in;
    in.name = p.value(v).name;
    in.kind = p.value(v).kind;
    in.type = p.value(v).type;
    const Buffer& b = p.buffers[p.items[p.versions.at(v).front()].buffer];
    if (b.where == Buffer::Where::kLate) {
      in.location.kind = Location::Kind::kLate;
      in.location.index = b.late;
    } else {
      in.location.slot = p.SlotOf(b, false);
    }
    p.plan->inputs.push_back(std::move(in));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& graph, std::span<const InputType> inputs,
                                                const std::shared_ptr<const PlanContext>& context) {
  Planning p(graph, inputs, context);
  MGE_RETURN_IF_ERROR(Specialise(p));
  MGE_RETURN_IF_ERROR(TakeCover(p));
  MGE_RETURN_IF_ERROR(ChooseKernels(p));
  MGE_RETURN_IF_ERROR(ScheduleUnits(p));
  MGE_RETURN_IF_ERROR(PrepareKernels(p));
  AssignBuffers(p);
  MGE_RETURN_IF_ERROR(PackConstants(p));
  MGE_RETURN_IF_ERROR(BindSteps(p));
  FormSegments(p);
  MGE_RETURN_IF_ERROR(MakeContinuation(p));
  BindInputs(p);
  MGE_RETURN_IF_ERROR(UploadConstants(p));
  return std::move(p.plan);
}

}  // namespace mge
