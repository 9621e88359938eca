// SPDX-License-Identifier: Apache-2.0
// The states of a session.
#include <cstring>

#include "core/base/errors.h"
#include "core/base/nearest.h"
#include "core/engine/session.h"
#include "core/plan/memory/state_memory.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Fails with kBadInput if the elements do not have the type of a state.
absl::Status CheckStateType(const std::string& name, const TensorType& type, const Tensor& elements) {
  if (elements.dtype() == type.dtype && elements.shape() == type.dims) return absl::OkStatus();
  const TensorType given = {.dtype = elements.dtype(), .has_rank = true, .dims = elements.shape()};
  return Fail(errors::kBadInput, fmt::format("state '{}' cannot take these elements", name),
              {.what = fmt::format("it is {}, and they are {}", type.ToString(), given.ToString()),
               .fix = fmt::format("give a tensor of the type {}", type.ToString())});
}

}  // namespace

std::vector<std::string> Session::StateNames() const {
  const Graph& graph = program_->graph();
  std::vector<std::string> names;
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (!value.dead && value.role == Role::kState) names.push_back(value.name);
  }
  if (trains_) names.emplace_back(kRandomState);
  return names;
}

absl::StatusOr<const Value*> Session::FindState(const std::string& name) const {
  const Graph& graph = program_->graph();
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    const Value& value = graph.value(v);
    if (!value.dead && value.role == Role::kState && value.name == name) return &value;
  }
  return Fail(errors::kBadInput, fmt::format("the session has no state '{}'", name),
              {.fix = DidYouMeanOr(Nearest(name, StateNames()), "")});
}

absl::StatusOr<Tensor> Session::ReadState(const std::string& name) {
  const StopControl never;
  if (trains_ && name == kRandomState) {
    const int64_t random[] = {static_cast<int64_t>(seed_.load()), static_cast<int64_t>(program_->context().states->runs())};
    return Tensor::Vector<int64_t>(random);
  }
  MGE_ASSIGN_OR_RETURN(const Value* value, FindState(name));
  MGE_ASSIGN_OR_RETURN(const RunTurn::Guard turn, turn_->Take(never));
  if (replicas_) return replicas_->ReadState(name);
  MGE_ASSIGN_OR_RETURN(Tensor tensor, program_->context().states->Read(name, &never));
  if (tensor.defined()) return tensor;
  MGE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(value->type.dtype, value->type.dims));
  if (copy.bytes() == 0) return copy;
  if (!value->constant.defined()) {
    std::memset(copy.mutable_data(), 0, static_cast<size_t>(copy.bytes()));
    return copy;
  }
  MGE_ASSIGN_OR_RETURN(const Tensor held, value->constant.Held());
  std::memcpy(copy.mutable_data(), held.data(), static_cast<size_t>(copy.bytes()));
  return copy;
}

absl::Status Session::WriteState(const std::string& name, const Tensor& elements) {
  const StopControl never;
  if (trains_ && name == kRandomState) {
    MGE_RETURN_IF_ERROR(CheckStateType(name, {.dtype = DType::kI64, .has_rank = true, .dims = {2}}, elements));
    MGE_ASSIGN_OR_RETURN(const Tensor host, ToHost(elements));
    seed_ = static_cast<uint64_t>(host.Data<int64_t>()[0]);
    program_->context().states->set_runs(static_cast<uint64_t>(host.Data<int64_t>()[1]));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(const Value* value, FindState(name));
  MGE_RETURN_IF_ERROR(CheckStateType(name, value->type, elements));
  MGE_ASSIGN_OR_RETURN(const Tensor host, ToHost(elements));
  MGE_ASSIGN_OR_RETURN(const RunTurn::Guard turn, turn_->Take(never));
  if (replicas_) return replicas_->WriteState(name, host);
  MGE_RETURN_IF_ERROR(device().Open());
  return program_->context().states->Write(device(), *value, host, &never);
}

}  // namespace mge
