// SPDX-License-Identifier: Apache-2.0
#include "core/eager/eager_value.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/eager/eager_operator.h"
#include "core/plugin/device_tensor.h"

namespace mge {
namespace {

// Releases a producer, the values that only it keeps, their producers, and so on. A chain of calls may be long, so this does
// not recurse: calls that die meanwhile join a list. Allocates nothing.
void ReleaseProducer(std::shared_ptr<EagerCall> call) {
  thread_local std::shared_ptr<EagerCall>* list = nullptr;  // not null while this thread releases
  if (call.use_count() != 1) return;                        // somebody else releases it
  if (list) {
    call->next = std::move(*list);
    *list = std::move(call);
    return;
  }
  list = &call;
  while (call) {
    std::shared_ptr<EagerCall> first = std::move(call);
    call = std::move(first->next);
  }
  list = nullptr;
}

}  // namespace

int64_t BytesOf(const HostValue& value) {
  int64_t sum = value.tensor.defined() ? value.tensor.bytes() : 0;
  for (const Tensor& t : value.sequence) sum += t.bytes();
  return sum;
}

absl::StatusOr<Tensor> HostCopyOf(const Tensor& from) {
  if (from.dtype() == DType::kString) {
    MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(from.dtype(), from.shape()));
    std::ranges::copy(from.Data<std::string>(), out.MutableData<std::string>().begin());
    return out;
  }
  if (!DeviceMemory::OnHost(from)) return ToHost(from);
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(from.dtype(), from.shape()));
  if (from.bytes()) std::memcpy(out.mutable_data(), from.data(), static_cast<size_t>(from.bytes()));
  return out;
}

absl::StatusOr<HostValue> HostCopyOf(const HostValue& from) {
  HostValue copy;
  copy.kind = from.kind;
  copy.present = from.present;
  if (from.tensor.defined()) {
    MGE_ASSIGN_OR_RETURN(copy.tensor, HostCopyOf(from.tensor));
  }
  for (const Tensor& part : from.sequence) {
    MGE_ASSIGN_OR_RETURN(copy.sequence.emplace_back(), HostCopyOf(part));
  }
  return copy;
}

ValueType TypeOfData(const HostValue& value) {
  ValueType out;
  out.kind = value.kind;
  const bool is_tensor = value.kind == ValueKind::kTensor;
  const Tensor* sample = value.tensor.defined() ? &value.tensor : value.sequence.empty() ? nullptr : &value.sequence.back();
  if (sample) out.type.dtype = sample->dtype();
  if (is_tensor && sample) {
    out.type.has_rank = true;
    out.type.dims = sample->shape();
  }
  return out;
}

EagerCall::EagerCall() = default;
EagerCall::~EagerCall() = default;

EagerValue::~EagerValue() {
  {
    std::lock_guard lock(store_->mutex);
    Uncount();
    if (path) std::ranges::replace(path->outputs, static_cast<PathValue*>(this), nullptr);
    if (evicted) RootOf(component)->cost -= cost;
  }
  if (producer) ReleaseProducer(std::move(producer));
}

void EagerValue::SetEarlyType(ValueType type) {
  if (type.type.dtype == DType::kUndefined || (type.kind == ValueKind::kTensor && !type.type.has_rank)) return;
  early_type_ = std::move(type);
  known_.store(Known::kRank, std::memory_order_release);
}

void EagerValue::Uncount() {
  store_->policy.Remove(*this);
  if (!counted_) return;
  counted_ = false;
  store_->live_bytes -= bytes;
  place_->live_bytes -= bytes;
}

void EagerValue::SetType(const HostValue& data) {
  if (known_.load(std::memory_order_relaxed) == Known::kAll) return;
  type_ = TypeOfData(data);
  known_.store(Known::kAll, std::memory_order_release);
}

void EagerValue::SetOnHost(HostValue data) {
  on_host_ = data;
  data_ = std::move(data);
  SetType(data_);
  state_.store(EagerState::kSwapped, std::memory_order_release);
}

void EagerValue::SetReady(HostValue data) {
  data_ = std::move(data);
  bytes = BytesOf(data_);
  SetType(data_);
  if (place_) {
    counted_ = true;
    store_->live_bytes += bytes;
    place_->live_bytes += bytes;
    store_->peak_bytes = std::max(store_->peak_bytes, store_->live_bytes);
  }
  state_.store(EagerState::kReady, std::memory_order_release);
}

void EagerValue::SetFailed(absl::Status error, absl::Status cause) {
  Uncount();
  data_ = {};
  cause_ = cause.ok() ? error : std::move(cause);
  error_ = std::move(error);
  state_.store(EagerState::kFailed, std::memory_order_release);
}

void EagerValue::Drop() {
  Uncount();
  store_->policy.Evict(*this);
  data_ = {};
  state_.store(EagerState::kDropped, std::memory_order_release);
}

void EagerValue::SwapOut(HostValue host) {
  Uncount();
  data_ = std::move(host);
  state_.store(EagerState::kSwapped, std::memory_order_release);
}

void EagerValue::ForgetProducer() {
  if (path) std::ranges::replace(path->outputs, static_cast<PathValue*>(this), nullptr);
  path = nullptr;
  store_->policy.Remove(*this);
}

}  // namespace mge
