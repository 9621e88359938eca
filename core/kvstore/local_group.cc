// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/local_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/plan/collective_step.h"
#include "core/plan/plan.h"
#include "core/plugin/ask.h"
#include "core/plugin/device_tensor.h"
#include "core/plugin/host_services.h"
#include "core/plugin/queue_wait.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr size_t kPlaceAlignment = 64;

size_t BytesOf(const CollectiveOperand& o) {
  return static_cast<size_t>(o.count) * static_cast<size_t>(ElementBytes(static_cast<DType>(o.dtype)));
}
size_t PlaceBytes(const CollectiveOperand& o) {
  return (BytesOf(o) + kPlaceAlignment - 1) / kPlaceAlignment * kPlaceAlignment;
}

// The communicator of a rank. Arrays on a device with queues pass through page-locked memory of the rank.
class LocalRank final : public Communicator {
 public:
  LocalRank(Device& device, std::shared_ptr<LocalGroup> group, uint32_t rank)
      : Communicator(device), group_(std::move(group)), rank_(rank) {}
  ~LocalRank() override {
    if (fence_ && !device().Orphaned()) device().queue_api()->fence_destroy(fence_);
  }
  void Abort() noexcept override { group_->Abort(); }

  mge_code Run(const CollectiveStepArgs& step, const mge_run* run) override {
    const absl::Status status = NoThrow([&] { return RunStep(step, run); });
    return status.ok() ? MGE_OK : CodeForBackend(status, run->error);
  }

 private:
  absl::Status RunStep(const CollectiveStepArgs& step, const mge_run* run) {
    if (!step.reduces || step.reduction != MGE_REDUCE_SUM) {
      return Fail(errors::kUnsupportedFeature, "replicas can exchange nothing but sums",
                  {.fix = "remove the other collective operators from the model, or train it on one device"});
    }
    MGE_ASSIGN_OR_RETURN(std::vector<LocalGroup::Operand> mine, Fetch(step, run));
    MGE_ASSIGN_OR_RETURN(const std::span<const Tensor> sums, group_->Sum(rank_, std::move(mine)));
    return Deliver(step, run, sums);
  }

  // Brings the arrays to host memory.
  absl::StatusOr<std::vector<LocalGroup::Operand>> Fetch(const CollectiveStepArgs& step, const mge_run* run) {
    std::vector<LocalGroup::Operand> out;
    if (run->queue) MGE_RETURN_IF_ERROR(Stage(step));
    size_t place = 0;
    for (uint32_t i = 0; i < step.operands; ++i) {
      const CollectiveOperand& o = step.list()[i];
      const void* data = Address(run, o.from);
      if (run->queue) {
        const void* from = std::exchange(data, HostAddress(place));
        MGE_RETURN_IF_ERROR(Copy(run, QueueAddress(place), from, BytesOf(o)));
        place += PlaceBytes(o);
      }
      out.push_back({data, static_cast<DType>(o.dtype), static_cast<int64_t>(o.count)});
    }
    if (run->queue) MGE_RETURN_IF_ERROR(WaitFor(run));
    return out;
  }

  // Writes the sums to the step's outputs. The staging memory is free: Fetch() has waited for the queue.
  absl::Status Deliver(const CollectiveStepArgs& step, const mge_run* run, std::span<const Tensor> sums) {
    size_t place = 0;
    for (uint32_t i = 0; i < step.operands; ++i) {
      const CollectiveOperand& o = step.list()[i];
      if (BytesOf(o) == 0) continue;
      std::memcpy(run->queue ? HostAddress(place) : Address(run, o.to), sums[i].data(), BytesOf(o));
      if (!run->queue) continue;
      MGE_RETURN_IF_ERROR(Copy(run, Address(run, o.to), QueueAddress(place), BytesOf(o)));
      place += PlaceBytes(o);
    }
    return absl::OkStatus();
  }

  // Lets the staging memory hold all operands.
  absl::Status Stage(const CollectiveStepArgs& step) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < step.operands; ++i) bytes += PlaceBytes(step.list()[i]);
    if (staging_.defined() && static_cast<size_t>(staging_.bytes()) >= bytes) return absl::OkStatus();
    staging_ = Tensor();
    MGE_ASSIGN_OR_RETURN(
        staging_, DeviceMemory::Create(device(), MGE_MEMORY_PINNED, DType::kU8, {static_cast<int64_t>(bytes)}, nullptr));
    return absl::OkStatus();
  }
  char* HostAddress(size_t place) { return static_cast<char*>(staging_.mutable_data()) + place; }
  void* QueueAddress(size_t place) { return DeviceMemory::Of(staging_)->QueueAddress(HostAddress(place)); }

  absl::Status Copy(const mge_run* run, void* to, const void* from, size_t bytes) const {
    if (bytes == 0) return absl::OkStatus();
    return AskDevice(device(), "copying for a sum over replicas",
                     [&](mge_error* e) { return device().queue_api()->copy(run->queue, to, from, bytes, e); });
  }
  // Waits until the queue has done all work.
  absl::Status WaitFor(const mge_run* run) {
    const mge_queue_api& api = *device().queue_api();
    if (!fence_) {
      MGE_RETURN_IF_ERROR(AskDevice(device(), "creating a fence",
                                    [&](mge_error* e) { return api.fence_create(device().handle(), &fence_, e); }));
    }
    MGE_RETURN_IF_ERROR(AskDevice(device(), "signalling a fence",
                                  [&](mge_error* e) { return api.signal(run->queue, fence_, ++value_, e); }));
    MGE_ASSIGN_OR_RETURN(const mge_code code, WaitForFence(api, fence_, value_, &group_->stop()));
    if (code == MGE_OK) return absl::OkStatus();
    return AskDevice(device(), "waiting for a queue", [&](mge_error* e) { return api.host_wait(fence_, value_, 0, e); });
  }

  const std::shared_ptr<LocalGroup> group_;
  const uint32_t rank_;
  Tensor staging_;
  mge_fence* fence_ = nullptr;
  uint64_t value_ = 0;  // of the fence
};

class LocalCommunicators final : public Communicators {
 public:
  LocalCommunicators(std::shared_ptr<LocalGroup> group, uint32_t rank) : group_(std::move(group)), rank_(rank) {}
  uint32_t ranks() const override { return group_->ranks(); }
  bool Serve(const Device&) const override { return true; }
  absl::StatusOr<std::shared_ptr<Communicator>> On(Device& device) override {
    std::lock_guard lock(mutex_);
    if (!communicator_) communicator_ = std::make_shared<LocalRank>(device, group_, rank_);
    MGE_CHECK(&communicator_->device() == &device);
    return communicator_;
  }

 private:
  const std::shared_ptr<LocalGroup> group_;
  const uint32_t rank_;
  std::mutex mutex_;
  std::shared_ptr<Communicator> communicator_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<Communicators> LocalGroup::RankOf(uint32_t rank) {
  return std::make_shared<LocalCommunicators>(shared_from_this(), rank);
}

void LocalGroup::Abort() noexcept {
  std::lock_guard lock(mutex_);
  stop_.cancel.store(kStopAsked);
  all_met_.notify_all();
}

absl::Status LocalGroup::Aborted() const { return stop_.CheckStop(); }

absl::Status LocalGroup::Meet(const std::function<absl::Status()>& complete) {
  std::unique_lock lock(mutex_);
  MGE_RETURN_IF_ERROR(Aborted());
  const uint64_t meeting = meetings_;
  if (++waiting_ == ranks()) {
    result_ = NoThrow(complete);
    waiting_ = 0;
    ++meetings_;
    all_met_.notify_all();
    return result_;
  }
  all_met_.wait(lock, [&] { return meetings_ != meeting || stop_.cancel.load() != kGoOn; });
  return meetings_ != meeting ? result_ : Aborted();
}

absl::StatusOr<std::span<const Tensor>> LocalGroup::Sum(uint32_t rank, std::vector<Operand> mine) {
  operands_[rank] = std::move(mine);
  MGE_RETURN_IF_ERROR(Meet([&] { return SumAll(); }));
  return sums_;
}

absl::Status LocalGroup::SumAll() {
  const std::vector<Operand>& first = operands_.front();
  sums_.resize(first.size());
  std::vector<const void*> arrays(ranks());
  for (size_t i = 0; i < first.size(); ++i) {
    const auto [data, dtype, elements] = first[i];
    if (!HostSum::Adds(dtype)) {
      return Fail(errors::kUnsupportedFeature, fmt::format("replicas cannot sum arrays of {}", DTypeName(dtype)));
    }
    for (uint32_t r = 0; r < ranks(); ++r) {
      if (operands_[r].size() != first.size() || operands_[r][i].dtype != dtype || operands_[r][i].elements != elements) {
        return Fail(errors::kUnsupportedFeature, "the arrays to sum differ between replicas");
      }
      arrays[r] = operands_[r][i].data;
    }
    Tensor& sum = sums_[i];
    if (!sum.defined() || sum.dtype() != dtype || sum.elements() != elements) {
      MGE_ASSIGN_OR_RETURN(sum, Tensor::Create(dtype, {elements}));
    }
    sum_.Add(dtype, arrays, sum.mutable_data(), elements);
  }
  return absl::OkStatus();
}

}  // namespace mge
