// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/state_memory.h"

#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/plugin/sync_queue.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<void*> StateMemory::AddressOf(Device& device, const Value& state, const StopControl* stop) {
  std::lock_guard lock(mutex_);
  if (auto known = states_.find(state.name); known != states_.end()) {
    const TensorType& type = known->second.type;
    if (type.dtype == state.type.dtype && type.dims == state.type.dims) return known->second.address;
    return Fail(errors::kInvalidGraph, fmt::format("state '{}' has two types", state.name),
                {.what = fmt::format("{} and {}", type.ToString(), state.type.ToString())});
  }
  State made;
  made.type = state.type;
  made.device = &device;
  const auto bytes = static_cast<size_t>(Elements(state.type.dims) * ElementBytes(state.type.dtype));
  MGE_ASSIGN_OR_RETURN(Tensor first, state.constant.Held());
  if (!first.defined() || !device.queue_api()) {
    MGE_ASSIGN_OR_RETURN(made.host, Tensor::Create(state.type.dtype, state.type.dims, device.host_allocator()));
    if (first.defined() && bytes) std::memcpy(made.host.mutable_data(), first.data(), bytes);
    if (!first.defined() && bytes) std::memset(made.host.mutable_data(), 0, bytes);
    first = made.host;
    made.address = made.host.mutable_data();
  }
  if (device.queue_api()) {
    MGE_ASSIGN_OR_RETURN(made.block, ConstantBlock::Acquire(device, bytes, true));
    made.address = made.block->memory().address;
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> queue, SyncQueue::Create(device, MGE_QUEUE_COPY_IN));
    queue->Uses(made.block);
    if (bytes) MGE_RETURN_IF_ERROR(queue->Upload(made.address, first.data(), bytes, stop));
    MGE_RETURN_IF_ERROR(queue->Finish(stop));
    made.host = Tensor();
  }
  void* const address = made.address;
  states_.emplace(state.name, std::move(made));
  return address;
}

absl::StatusOr<Tensor> StateMemory::Read(const std::string& name, const StopControl* stop) {
  std::lock_guard lock(mutex_);
  const auto at = states_.find(name);
  if (at == states_.end()) return Tensor();
  const State& state = at->second;
  MGE_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(state.type.dtype, state.type.dims, state.device->host_allocator()));
  const auto bytes = static_cast<size_t>(copy.bytes());
  if (bytes == 0) return copy;
  if (!state.block) {
    std::memcpy(copy.mutable_data(), state.address, bytes);
    return copy;
  }
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> queue, SyncQueue::Create(*state.device, MGE_QUEUE_COPY_OUT));
  queue->Uses(state.block);
  MGE_RETURN_IF_ERROR(queue->Download(copy.mutable_data(), state.address, bytes, stop));
  return copy;
}

absl::Status StateMemory::Write(Device& device, const Value& state, const Tensor& elements, const StopControl* stop) {
  MGE_ASSIGN_OR_RETURN(void* const address, AddressOf(device, state, stop));
  std::lock_guard lock(mutex_);
  const State& known = states_.at(state.name);
  const auto bytes = static_cast<size_t>(elements.bytes());
  if (bytes == 0) return absl::OkStatus();
  if (!known.block) {
    std::memcpy(address, elements.data(), bytes);
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> queue, SyncQueue::Create(*known.device, MGE_QUEUE_COPY_IN));
  queue->Uses(known.block);
  MGE_RETURN_IF_ERROR(queue->Upload(address, elements.data(), bytes, stop));
  return queue->Finish(stop);
}

absl::StatusOr<std::vector<StateBase>> BindStates(const Graph& graph, const MemoryPlan& memory, const PlanContext& context,
                                                  const StopControl* stop) {
  std::vector<StateBase> out;
  for (const MemoryPlan::StateBuffer& state : memory.states) {
    const Value& value = graph.value(state.value);
    absl::StatusOr<void*> address = context.states->AddressOf(*context.devices.front(), value, stop);
    if (!address.ok()) return AddWhere(address.status(), fmt::format("state '{}'", value.name));
    out.push_back({value.name, state.base, *address});
  }
  return out;
}

}  // namespace mge
