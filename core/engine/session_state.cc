// SPDX-License-Identifier: Apache-2.0
// The states of a session.
#include <cstring>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/engine/session.h"
#include "core/plan/memory/state_memory.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<Tensor> Session::ReadState(const std::string& name) {
  if (replicas_) {
    MGE_ASSIGN_OR_RETURN(const RunTurn::Guard turn, turn_.Take(StopControl()));
    return replicas_->ReadState(name);
  }
  const Graph& graph = program_->graph();
  std::vector<std::string> names;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (value.dead || value.role != Role::kState) continue;
    names.push_back(value.name);
    if (value.name != name) continue;
    const StopControl never;
    MGE_ASSIGN_OR_RETURN(const RunTurn::Guard turn, turn_.Take(never));
    MGE_ASSIGN_OR_RETURN(Tensor tensor, program_->context().states->Read(name, &never));
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
