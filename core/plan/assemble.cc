// SPDX-License-Identifier: Apache-2.0
#include "core/plan/assemble.h"

#include <utility>

#include "core/plan/communicator.h"
#include "core/plan/memory/state_memory.h"

namespace mge {

std::shared_ptr<Plan> AssemblePlan(const PlanContext& context, SpecialisedGraph special, Cover cover,
                                   PreparedKernels kernels, MemoryPlan memory, std::vector<MemoryNeed> needs,
                                   PlanConstants constants, std::vector<StateBase> states, BoundSteps bound,
                                   Segments segments, std::unique_ptr<Continuation> continuation) {
  auto plan = std::make_shared<Plan>();
  plan->device = context.devices.front();
  plan->kernel_restrictions = context.kernels.texts;
  plan->red_zones = context.settings->Get<kDebugCheckMemory>();
  plan->pass_log = std::move(special.pass_log);
  plan->dropped_claims = std::move(cover.dropped_claims);
  plan->kernels = std::move(kernels.handles);
  plan->rebound_kernels = kernels.rebound;
  plan->states = std::move(kernels.states);
  plan->state_apis = std::move(kernels.state_apis);

  plan->inputs = std::move(memory.inputs);
  plan->outputs = std::move(memory.outputs);
  plan->arenas = std::move(memory.arenas);
  for (const Arena& arena : plan->arenas) {
    plan->arena_bytes += arena.bytes;
    plan->lower_bound_bytes += arena.lower_bound_bytes;
  }
  plan->buffers = std::move(memory.placed);
  plan->needs = std::move(needs);
  plan->dynamic_count = memory.dynamic_count;
  plan->random = std::move(memory.random);
  for (const auto& [v, index] : memory.dynamic_constants) {
    plan->dynamic_constants.push_back({index, special.graph.value(v).constant});
  }

  plan->state_values = std::move(states);
  plan->state_memory = context.states;
  plan->base_count = constants.base_count;
  plan->constants = std::move(constants.host);
  plan->device_constants = std::move(constants.device);
  plan->constant_bytes = constants.plain_bytes;
  plan->packed_bytes = constants.packed_bytes;
  plan->uploaded_bytes = constants.uploaded_bytes;
  plan->measured_constant_bytes = constants.measured_bytes;

  plan->steps = std::move(segments.steps);
  plan->units = std::move(bound.units);
  plan->args = std::move(bound.args);
  plan->host_args = std::move(bound.host_args);
  plan->communicators = std::move(bound.communicators);
  plan->bodies = std::move(bound.bodies);
  plan->reference_steps = bound.reference_steps;
  plan->segments = std::move(segments.segments);
  plan->queues = std::move(segments.queues);
  if (continuation) plan->bodies.push_back({-1, "continuation", continuation->program});
  plan->continuation = std::move(continuation);
  return plan;
}

}  // namespace mge
