// SPDX-License-Identifier: Apache-2.0
#include "core/plan/assemble.h"

#include <utility>

#include "core/plan/communicator.h"
#include "core/plan/memory/state_memory.h"

namespace mge {

std::shared_ptr<Plan> AssemblePlan(const PlanContext& context, PlanParts parts) {
  auto& [graph, pass_log, dropped_claims, kernels, memory, needs, constants, states, bound, segments, accesses, continuation,
         records] = parts;
  auto plan = std::make_shared<Plan>();
  plan->device = context.devices.front();
  plan->report.kernel_rules = context.kernels.texts;
  plan->red_zones = context.settings->Get<kDebugCheckMemory>();
  plan->report.pass_log = std::move(pass_log);
  plan->report.dropped_claims = std::move(dropped_claims);
  plan->kernels = std::move(kernels.handles);
  plan->report.rebound_kernels = kernels.rebound;
  plan->states = std::move(kernels.states);
  plan->state_apis = std::move(kernels.state_apis);

  plan->inputs = std::move(memory.inputs);
  plan->outputs = std::move(memory.outputs);
  plan->arenas = std::move(memory.arenas);
  for (const Arena& arena : plan->arenas) {
    plan->report.arena_bytes += arena.bytes;
    plan->report.lower_bound_bytes += arena.lower_bound_bytes;
  }
  plan->buffers = std::move(memory.placed);
  plan->needs = std::move(needs);
  plan->dynamic_count = memory.dynamic_count;
  plan->random = std::move(memory.random);
  for (const auto& [v, index] : memory.dynamic_constants) {
    plan->dynamic_constants.push_back({index, graph.value(v).constant});
  }

  plan->state_values = std::move(states);
  plan->state_memory = context.states;
  plan->base_count = constants.base_count;
  plan->constants = std::move(constants.host);
  plan->device_constants = std::move(constants.device);
  plan->report.constant_bytes = constants.plain_bytes;
  plan->report.packed_bytes = constants.packed_bytes;
  plan->report.uploaded_bytes = constants.uploaded_bytes;
  plan->report.uploaded_packed_bytes = constants.uploaded_packed_bytes;
  plan->report.measured_constant_bytes = constants.measured_bytes;

  plan->steps = std::move(segments.steps);
  plan->own_steps = plan->steps.size();
  plan->units = std::move(bound.units);
  plan->args = std::move(bound.args);
  plan->host_args = std::move(bound.host_args);
  plan->communicators = std::move(bound.communicators);
  plan->bodies = std::move(bound.bodies);
  plan->report.reference_steps = bound.reference_steps;
  plan->segments = std::move(segments.segments);
  plan->queues = std::move(segments.queues);
  plan->accesses = std::move(accesses);
  plan->access_variables = static_cast<int32_t>(memory.buffers.size());
  plan->operation_steps = StepsPerOperation(context);
  plan->values = std::move(records.values);
  plan->recorded_units = std::move(records.units);
  if (continuation) plan->bodies.push_back({-1, "continuation", continuation->program});
  plan->continuation = std::move(continuation);
  return plan;
}

}  // namespace mge
