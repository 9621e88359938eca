// SPDX-License-Identifier: Apache-2.0
#include "core/engine/run_outputs.h"

#include <algorithm>
#include <utility>

#include "core/engine/output_binding.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {

absl::StatusOr<Tensor> RunOutputs::Create(DType dtype, const Shape& shape, const IoPlace& place,
                                          const std::string& name) const {
  const int32_t memory_class = place.pinned ? MGE_MEMORY_PINNED : MGE_MEMORY_DEVICE;
  absl::StatusOr<Tensor> created = DeviceMemory::Create(*place.device, memory_class, dtype, shape, runtime_);
  if (!created.ok()) return AddWhere(created.status(), fmt::format("output '{}'", name));
  return created;
}

absl::StatusOr<std::span<HostValue>> RunOutputs::ForPlan(const Plan& plan, std::span<const HostValue> inputs) {
  for (size_t i = 0; i < given_.size(); ++i) {
    const BoundValue& bound = plan.outputs[i];
    Tensor& tensor = given_[i].tensor;
    const auto shares = [&](const HostValue& input) { return SameMemory(tensor, input.tensor); };
    const auto shared = tensor.defined() ? std::ranges::find_if(inputs, shares) : inputs.end();
    if (bound.move_to) {
      moves_.push_back({i, i, {bound.move_to, false}, &bound.name});
    } else if (shared != inputs.end() && shared - inputs.begin() != bound.over_input && tensor.bytes() > 0) {
      moves_.push_back({i, i, {}, &bound.name});
    } else if (!tensor.defined() && (bound.place.device || created_.pinned)) {
      const bool known = bound.location.kind == Location::Kind::kSlot && bound.type.dtype != DType::kString;
      if (!bound.place.device && !known) {
        moves_.push_back({i, i, created_, &bound.name});
        continue;
      }
      const IoPlace place = bound.place.device ? IoPlace{bound.place.device, false} : created_;
      MGE_ASSIGN_OR_RETURN(tensor, Create(bound.type.dtype, bound.type.dims, place, bound.name));
    }
  }
  if (moves_.empty()) return given_;
  computed_.assign(given_.begin(), given_.end());
  for (const Move& move : moves_) computed_[move.from] = HostValue();
  return std::span(computed_);
}

std::span<HostValue> RunOutputs::InHostMemory(const Graph& graph, std::span<const int> places) {
  computed_.resize(graph.outputs().size());
  for (size_t i = 0; i < given_.size(); ++i) {
    const size_t from = places.empty() ? i : static_cast<size_t>(places[i]);
    moves_.push_back({from, i, created_, &graph.value(graph.outputs()[from]).name});
  }
  return computed_;
}

absl::StatusOr<uint64_t> RunOutputs::DeliverOne(const Move& move) {
  HostValue& result = computed_[move.from];
  Tensor& to = given_[move.to].tensor;
  const Tensor& from = result.tensor;
  const bool plain = result.kind == ValueKind::kTensor && from.dtype() != DType::kString;
  const bool there = !move.place.device || (move.place.pinned && DeviceMemory::Of(from));
  if (!plain || (!to.defined() && there)) {
    given_[move.to] = std::move(result);
    return uint64_t{0};
  }
  if (to.defined()) {
    MGE_RETURN_IF_ERROR(CheckFits(*move.name, from.dtype(), from.shape(), to));
  } else {
    MGE_ASSIGN_OR_RETURN(to, Create(from.dtype(), from.shape(), move.place, *move.name));
  }
  MGE_RETURN_IF_ERROR(CopyTensor(from, to));
  return static_cast<uint64_t>(from.bytes());
}

absl::StatusOr<uint64_t> RunOutputs::Deliver() {
  if (moves_.empty()) return uint64_t{0};
  uint64_t copied = 0;
  std::vector<bool> moved(given_.size());
  for (const Move& move : moves_) {
    moved[move.to] = true;
    MGE_ASSIGN_OR_RETURN(const uint64_t bytes, DeliverOne(move));
    copied += bytes;
  }
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!moved[i]) given_[i] = std::move(computed_[i]);
  }
  return copied;
}

}  // namespace mge
