// SPDX-License-Identifier: Apache-2.0
// Runs of a session on replicas, and its states.
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/engine/output_binding.h"
#include "core/engine/session.h"
#include "core/plan/memory/state_memory.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {

absl::Status Session::RunReplicas(std::span<const HostValue> inputs, std::span<HostValue> outputs, const IoPlace& created,
                                  RunState& control) {
  for (size_t i = 0; i < inputs.size(); ++i) MGE_RETURN_IF_ERROR(InputTypeOf(i, inputs[i]).status());
  MGE_RETURN_IF_ERROR(turn_.Take(control));
  const absl::Cleanup end = [&] { turn_.End(); };
  std::vector<HostValue> computed(outputs.size());
  MGE_RETURN_IF_ERROR(replicas_->Run(inputs, computed, control));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& from = computed[i].tensor;
    Tensor& to = outputs[i].tensor;
    const bool plain = computed[i].kind == ValueKind::kTensor && from.dtype() != DType::kString;
    if (!plain || (!to.defined() && !created.device)) {
      outputs[i] = std::move(computed[i]);
      continue;
    }
    if (to.defined()) {
      MGE_RETURN_IF_ERROR(CheckFits(graph().value(graph().outputs()[i]).name, from.dtype(), from.shape(), to));
    } else {
      MGE_ASSIGN_OR_RETURN(to,
                           DeviceMemory::Create(*created.device, MGE_MEMORY_DEVICE, from.dtype(), from.shape(), runtime_));
    }
    MGE_RETURN_IF_ERROR(CopyTensor(from, to));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Session::ReadState(const std::string& name) {
  if (replicas_) {
    RunState control;
    MGE_RETURN_IF_ERROR(turn_.Take(control));
    const absl::Cleanup end = [&] { turn_.End(); };
    return replicas_->ReadState(name);
  }
  const Graph& graph = program_->graph();
  std::vector<std::string> names;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.dead || value.role != Role::kState) continue;
    names.push_back(value.name);
    if (value.name != name) continue;
    RunState control;
    MGE_RETURN_IF_ERROR(turn_.Take(control));
    const absl::Cleanup end = [&] { turn_.End(); };
    MGE_ASSIGN_OR_RETURN(Tensor tensor, program_->context().states->Read(name, &control));
    if (tensor.defined()) return tensor;
    if (value.constant.defined()) return value.constant.Held();
    MGE_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Create(value.type.dtype, value.type.dims));
    if (zeros.bytes() > 0) std::memset(zeros.mutable_data(), 0, static_cast<size_t>(zeros.bytes()));
    return zeros;
  }
  return Fail(errors::kBadInput, fmt::format("the session has no state '{}'", name),
              {.fix = DidYouMeanOr(Nearest(name, names), "")});
}

}  // namespace mge
