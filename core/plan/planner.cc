// SPDX-License-Identifier: Apache-2.0
// BuildPlan(): specialises the graph for its inputs, simplifies it, and runs the stages of planning.
#include <algorithm>

#include "core/base/errors.h"
#include "core/plan/memory/memory_limit.h"
#include "core/plan/passes/pass.h"
#include "core/plan/stages.h"

namespace mge {
namespace {

// Sets the types of the graph's inputs and runs the passes.
absl::Status Specialise(PlanBuilder& p) {
  for (size_t i = 0; i < p.input_types.size(); ++i) {
    Value& v = p.graph.value(p.graph.inputs()[i]);
    v.kind = p.input_types[i].kind;
    v.type.dtype = p.input_types[i].dtype;
    v.type.has_rank = v.kind == ValueKind::kTensor;
    v.type.dims = p.input_types[i].shape;
    v.type.symbols.clear();
  }
  PassContext passes = {.allocator = &p.plan->device->host_allocator(),
                        .denied_bytes = &p.denied_bytes,
                        .skip = p.context->skip,
                        .stop = p.stop};
  return RunPasses(p.graph, passes, &p.plan->pass_log);
}

absl::Status TakeCover(PlanBuilder& p) {
  p.uses = CountUses(p.graph);
  MGE_ASSIGN_OR_RETURN(ValueSizes sizes, ValueSizes::Of(p.graph, *p.context));
  MGE_ASSIGN_OR_RETURN(p.cover, CoverGraph(p.graph, *p.context, p.uses, sizes));
  p.plan->dropped_claims = std::move(p.cover.dropped_claims);
  p.deferred = p.cover.deferred;
  std::sort(p.deferred.begin(), p.deferred.end());
  return absl::OkStatus();
}

void BindInputs(PlanBuilder& p) {
  for (ValueId v : p.graph.inputs()) {
    BoundValue in;
    in.name = p.value(v).name;
    in.kind = p.value(v).kind;
    in.type = p.value(v).type;
    const Buffer& b = p.buffers[p.items[p.versions.at(v).front()].buffer];
    if (b.where == Buffer::Where::kDynamic) {
      in.location.kind = Location::Kind::kDynamic;
      in.location.index = b.dynamic;
    } else {
      in.location.slot = p.SlotOf(b, false);
    }
    p.plan->inputs.push_back(std::move(in));
  }
}

// Runs the stages up to the check of the memory limits. Returns false if some kernels cannot be prepared; the caller then
// starts again.
absl::StatusOr<bool> TryPlanMemory(PlanBuilder& p) {
  MGE_RETURN_IF_ERROR(p.CheckStop());
  MGE_RETURN_IF_ERROR(Specialise(p));
  MGE_RETURN_IF_ERROR(p.CheckStop());
  MGE_RETURN_IF_ERROR(TakeCover(p));
  MGE_RETURN_IF_ERROR(p.CheckStop());
  MGE_RETURN_IF_ERROR(ChooseKernels(p));
  MGE_RETURN_IF_ERROR(ScheduleUnits(p));
  MGE_ASSIGN_OR_RETURN(bool prepared, PrepareKernels(p));
  if (!prepared) return false;
  MGE_RETURN_IF_ERROR(AssignBuffers(p));
  absl::Status fits = CheckMemoryLimits(p);
  while (ErrorId(fits) == errors::kOverBudget.id && (*p.reclaim_memory)()) fits = CheckMemoryLimits(p);
  MGE_RETURN_IF_ERROR(fits);
  return true;
}

// Returns a builder after the check of the memory limits. Starts again while kernels prove to be unable.
absl::StatusOr<std::unique_ptr<PlanBuilder>> PlanMemory(const Graph& graph, std::span<const InputType> inputs,
                                                        const std::shared_ptr<const PlanContext>& context,
                                                        const StopControl* stop,
                                                        const std::function<bool()>& reclaim_memory) {
  for (;;) {
    auto p = std::make_unique<PlanBuilder>(graph, inputs, context);
    p->stop = stop;
    p->reclaim_memory = &reclaim_memory;
    const size_t known = context->unable->count();
    MGE_ASSIGN_OR_RETURN(bool settled, TryPlanMemory(*p));
    if (settled) return p;
    if (context->unable->count() == known) {
      return Fail(errors::kInternal, "a kernel that cannot be prepared was chosen again");
    }
  }
}

uint64_t LiveBytes(const PlanContext& context) {
  uint64_t bytes = 0;
  for (Device* device : context.devices) bytes += device->LiveBytes();
  return bytes;
}

// Runs a stage that allocates memory for constants, and adds the growth to measured_constant_bytes.
absl::Status Growing(PlanBuilder& p, absl::Status (*stage)(PlanBuilder&)) {
  const uint64_t before = LiveBytes(*p.context);
  absl::Status done = stage(p);
  p.plan->measured_constant_bytes += static_cast<int64_t>(LiveBytes(*p.context) - before);
  return done;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& graph, std::span<const InputType> inputs,
                                                const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                                const std::function<bool()>& reclaim_memory) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<PlanBuilder> sized, PlanMemory(graph, inputs, context, stop, reclaim_memory));
  PlanBuilder& p = *sized;
  MGE_RETURN_IF_ERROR(Growing(p, PackConstants));
  MGE_RETURN_IF_ERROR(BindSteps(p));
  FormSegments(p);
  MGE_RETURN_IF_ERROR(MakeContinuation(p));
  BindInputs(p);
  p.plan->kernel_restrictions = context->kernel_restrictions;
  MGE_RETURN_IF_ERROR(Growing(p, UploadConstants));
  return std::move(p.plan);
}

}  // namespace mge
