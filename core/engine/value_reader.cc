// SPDX-License-Identifier: Apache-2.0
#include "core/engine/value_reader.h"

#include <cstring>
#include <utility>

#include "core/kernel/layout.h"
#include "core/kernel/layout_copy.h"

namespace mge {

void* ValueReader::AddressOf(const RecordedValue& value) const {
  const mge_slot& slot = value.location.slot;
  return static_cast<std::byte*>(bases_[slot.base]) + slot.offset;
}

absl::StatusOr<std::vector<std::byte>> ValueReader::Bytes(const RecordedValue& value) {
  std::vector<std::byte> out(static_cast<size_t>(value.bytes));
  if (out.empty()) return out;
  if (!value.device) {
    std::memcpy(out.data(), AddressOf(value), out.size());
    return out;
  }
  std::unique_ptr<SyncQueue>& queue = queues_[value.device];
  if (!queue) {
    MGE_ASSIGN_OR_RETURN(queue, SyncQueue::Create(*value.device));
  }
  MGE_RETURN_IF_ERROR(queue->Download(out.data(), AddressOf(value), out.size(), stop_));
  return out;
}

absl::StatusOr<std::optional<Tensor>> ValueReader::Plain(const RecordedValue& value) {
  if (value.constant.defined()) {
    MGE_ASSIGN_OR_RETURN(Tensor held, value.constant.Held());
    return held;
  }
  if (value.location.kind == Location::Kind::kDynamic) {
    const HostValue& v = dynamic_[value.location.index];
    if (v.kind != ValueKind::kTensor || !v.tensor.defined()) return std::nullopt;
    return v.tensor;
  }
  if (value.location.kind != Location::Kind::kSlot || value.layout.kind == MGE_LAYOUT_OPAQUE) return std::nullopt;
  MGE_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, Bytes(value));
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(value.type.dtype, value.type.dims));
  if (IsPlain(value.layout)) {
    if (!bytes.empty()) std::memcpy(out.mutable_data(), bytes.data(), bytes.size());
  } else {
    CopyFromLayout(bytes, value.layout, out);
  }
  return out;
}

bool ValueReader::Over(std::chrono::nanoseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  bool over = true;
  for (const auto& [device, queue] : queues_) over &= !queue || queue->Over(end - std::chrono::steady_clock::now());
  return over;
}

}  // namespace mge
