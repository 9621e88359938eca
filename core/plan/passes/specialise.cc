// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passes/specialise.h"

#include "core/plan/passes/function_kernels.h"
#include "core/plan/passes/pass.h"

namespace mge {

absl::StatusOr<SpecialisedGraph> Specialise(const Graph& graph, std::span<const InputType> inputs,
                                            const PlanContext& context, const StopControl* stop) {
  MGE_RETURN_IF_ERROR(CheckStop(stop));
  SpecialisedGraph out = {.graph = graph};
  for (size_t i = 0; i < inputs.size(); ++i) {
    Value& v = out.graph.value(out.graph.inputs()[i]);
    v.kind = inputs[i].kind;
    v.type.dtype = inputs[i].dtype;
    v.type.has_rank = v.kind == ValueKind::kTensor;
    v.type.dims = inputs[i].shape;
    v.type.symbols.clear();
  }
  FunctionKernels kernels(context);
  PassContext passes = {.allocator = &context.devices.front()->host_allocator(),
                        .denied_bytes = &out.denied_bytes,
                        .skip = context.skip.names,
                        .stop = stop,
                        .keeps_function = [&](const Graph& g, NodeId id) { return kernels.Has(g, id); }};
  MGE_RETURN_IF_ERROR(RunPasses(out.graph, passes, &out.pass_log));
  return out;
}

}  // namespace mge
