// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/local_group.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "core/base/element_range.h"
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
constexpr uint32_t kNoBucket = std::numeric_limits<uint32_t>::max();  // the key of sums that have no bucket

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
      : Communicator(device, group->first() + rank, group->all_ranks()), group_(std::move(group)), local_(rank) {}
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
    if (step.kind == CollectiveKind::kExchange) return Exchange(step, run);
    if (step.kind == CollectiveKind::kEndSum) {
      MGE_ASSIGN_OR_RETURN(const std::span<const Tensor> sums, group_->EndSum(local_, step.bucket));
      if (run->queue) MGE_RETURN_IF_ERROR(FreeStaging(step));
      return Deliver(step, run, sums);
    }
    const bool sums = step.kind == CollectiveKind::kStartSum ||
                      (step.kind == CollectiveKind::kAllReduce && step.reduction == MGE_REDUCE_SUM);
    if (!sums && step.kind != CollectiveKind::kAllGather) {
      return Fail(errors::kUnsupportedFeature, "these replicas have no collective operators but sums",
                  {.fix = "remove the other ones from the model, or train it on one device"});
    }
    MGE_ASSIGN_OR_RETURN(std::vector<LocalGroup::Operand> mine, Fetch(step, run));
    if (step.kind == CollectiveKind::kStartSum) return group_->StartSum(local_, step.bucket, step.parts, std::move(mine));
    if (step.kind == CollectiveKind::kAllGather) return Gather(step, run, std::move(mine));
    MGE_ASSIGN_OR_RETURN(const std::span<const Tensor> all, group_->Sum(local_, std::move(mine)));
    return Deliver(step, run, all);
  }

  // Brings the arrays to host memory.
  absl::StatusOr<std::vector<LocalGroup::Operand>> Fetch(const CollectiveStepArgs& step, const mge_run* run) {
    std::vector<LocalGroup::Operand> out;
    if (run->queue) MGE_RETURN_IF_ERROR(FreeStaging(step));
    size_t place = 0;
    for (uint32_t i = 0; i < step.operands; ++i) {
      const CollectiveOperand& o = step.list()[i];
      const void* data = Address(run, o.from);
      if (run->queue) {
        const void* from = std::exchange(data, staging_.Host(place));
        MGE_RETURN_IF_ERROR(Copy(run, staging_.Queue(place), from, BytesOf(o)));
        place += PlaceBytes(o);
      }
      out.push_back({data, static_cast<DType>(o.dtype), static_cast<int64_t>(o.count)});
    }
    if (run->queue) MGE_RETURN_IF_ERROR(WaitFor(run));
    return out;
  }

  // Writes the sums to the step's outputs. The staging memory must be free, as after Fetch(), which waits for the queue.
  absl::Status Deliver(const CollectiveStepArgs& step, const mge_run* run, std::span<const Tensor> sums) {
    size_t place = 0;
    for (uint32_t i = 0; i < step.operands; ++i) {
      const CollectiveOperand& o = step.list()[i];
      if (BytesOf(o) == 0) continue;
      std::memcpy(run->queue ? staging_.Host(place) : Address(run, o.to), sums[i].data(), BytesOf(o));
      if (!run->queue) continue;
      MGE_RETURN_IF_ERROR(Copy(run, Address(run, o.to), staging_.Queue(place), BytesOf(o)));
      place += PlaceBytes(o);
    }
    return run->queue ? MarkDelivered(run) : absl::OkStatus();
  }

  // Lets the staging memory hold the operands, when its earlier copies have ended.
  absl::Status FreeStaging(const CollectiveStepArgs& step) {
    if (delivered_ > 0) MGE_RETURN_IF_ERROR(WaitUntil(delivered_));
    size_t bytes = 0;
    for (uint32_t i = 0; i < step.operands; ++i) bytes += PlaceBytes(step.list()[i]);
    return staging_.Reserve(device(), bytes);
  }

  absl::Status Gather(const CollectiveStepArgs& step, const mge_run* run, std::vector<LocalGroup::Operand> mine) {
    std::vector<int64_t> whole;
    std::vector<size_t> places;  // of the arrays in the staging memory
    size_t bytes = 0;
    for (uint32_t i = 0; i < step.operands; ++i) {
      CollectiveOperand o = step.list()[i];
      whole.push_back(static_cast<int64_t>(o.whole));
      o.count = o.whole;
      places.push_back(std::exchange(bytes, bytes + PlaceBytes(o)));
    }
    MGE_ASSIGN_OR_RETURN(const std::span<const LocalGroup::Gathered> parts, group_->Gather(local_, std::move(mine), whole));
    if (run->queue) MGE_RETURN_IF_ERROR(staging_.Reserve(device(), bytes));  // Fetch() has waited for the queue
    for (const LocalGroup::Gathered& part : parts) {
      const CollectiveOperand& o = step.list()[part.array];
      const auto size = static_cast<size_t>(ElementBytes(static_cast<DType>(o.dtype)));
      auto* const to = static_cast<char*>(run->queue ? staging_.Host(places[part.array]) : Address(run, o.to));
      const size_t count = static_cast<size_t>(part.count) * size;
      if (count > 0) std::memcpy(to + static_cast<size_t>(part.begin) * size, part.data, count);
    }
    for (uint32_t i = 0; run->queue && i < step.operands; ++i) {
      CollectiveOperand o = step.list()[i];
      o.count = o.whole;
      MGE_RETURN_IF_ERROR(Copy(run, Address(run, o.to), staging_.Queue(places[i]), BytesOf(o)));
    }
    return run->queue ? MarkDelivered(run) : absl::OkStatus();
  }
  // Remembers when the copies from the staging memory have ended.
  absl::Status MarkDelivered(const mge_run* run) {
    MGE_RETURN_IF_ERROR(Signal(run));
    delivered_ = value_;
    return absl::OkStatus();
  }

  // Page-locked memory through which copies between the device and the host pass.
  class Staging {
   public:
    absl::Status Reserve(Device& device, size_t bytes) {
      if (memory_.defined() && static_cast<size_t>(memory_.bytes()) >= bytes) return absl::OkStatus();
      memory_ = Tensor();
      MGE_ASSIGN_OR_RETURN(
          memory_, DeviceMemory::Create(device, MGE_MEMORY_PINNED, DType::kU8, {static_cast<int64_t>(bytes)}, nullptr));
      return absl::OkStatus();
    }
    char* Host(size_t place) { return static_cast<char*>(memory_.mutable_data()) + place; }
    void* Queue(size_t place) { return DeviceMemory::Of(memory_)->QueueAddress(Host(place)); }

   private:
    Tensor memory_;
  };

  // Gives to other ranks what the step sends, takes what it receives, and waits until the others have released theirs. After a
  // failure too, it returns only when no rank reads this one's memory.
  absl::Status Exchange(const CollectiveStepArgs& step, const mge_run* run) {
    const std::span<const CollectiveOperand> all(step.list(), step.operands);
    absl::Status status = SubmitAll(all, run);
    if (status.ok()) status = ReceiveAll(all, run);
    if (!status.ok()) group_->Abort();
    for (const CollectiveOperand& o : all) {
      if (!o.sends || o.peer < 0) continue;
      const LocalGroup::Released released = group_->WaitForRelease(PathOf(o));
      if (!released.fence) continue;
      if (group_->stop().cancel.load() != kGoOn) {
        (void)WaitForFence(*device().queue_api(), released.fence, released.value, nullptr, kPatience);
        continue;
      }
      status.Update(QueryDevice(device(), "waiting for another replica", [&](mge_error* e) {
        return device().queue_api()->wait(run->queue, released.fence, released.value, e);
      }));
    }
    if (status.ok()) return group_->stop().CheckStop();
    return status;
  }

  absl::Status SubmitAll(std::span<const CollectiveOperand> all, const mge_run* run) {
    auto passes_host = [&](const CollectiveOperand& o) {
      return o.sends && o.peer >= 0 && !group_->IsDirect(local_, static_cast<uint32_t>(o.peer));
    };
    size_t bytes = 0, place = 0;
    for (const CollectiveOperand& o : all) bytes += run->queue && passes_host(o) ? PlaceBytes(o) : 0;
    if (bytes > 0) {
      MGE_RETURN_IF_ERROR(staging_.Reserve(device(), bytes));
      for (const CollectiveOperand& o : all) {
        if (!passes_host(o)) continue;
        MGE_RETURN_IF_ERROR(Copy(run, staging_.Queue(place), Address(run, o.from), BytesOf(o)));
        place += PlaceBytes(o);
      }
      MGE_RETURN_IF_ERROR(WaitFor(run));
    } else if (run->queue) {
      MGE_RETURN_IF_ERROR(Signal(run));
    }
    place = 0;
    for (const CollectiveOperand& o : all) {
      if (!o.sends || o.peer < 0) continue;
      LocalGroup::Buffer buffer = {.data = Address(run, o.from), .bytes = BytesOf(o)};
      if (!passes_host(o)) {
        buffer.device = &device();
        buffer.fence = fence_;
        buffer.value = value_;
      } else if (run->queue) {
        buffer.data = staging_.Host(place);
        place += PlaceBytes(o);
      }
      group_->Submit(PathOf(o), buffer);
    }
    return absl::OkStatus();
  }

  absl::Status ReceiveAll(std::span<const CollectiveOperand> all, const mge_run* run) {
    std::vector<LocalGroup::Path> direct;
    size_t bytes = 0, place = 0;
    for (const CollectiveOperand& o : all) {
      if (o.sends || o.peer < 0 || group_->IsDirect(static_cast<uint32_t>(o.peer), local_)) continue;
      bytes += PlaceBytes(o);
    }
    if (run->queue && bytes > 0) {  // the copies of the previous exchange have left the memory
      if (received_ > 0) MGE_RETURN_IF_ERROR(WaitUntil(received_));
      MGE_RETURN_IF_ERROR(receiving_.Reserve(device(), bytes));
    }
    absl::Status status = ReceiveEach(all, run, place, direct);
    if (place == 0 && direct.empty()) return status;
    const absl::Status signalled = Signal(run);
    if (place > 0) received_ = value_;
    // The other ranks wait for this, whatever has failed.
    for (const LocalGroup::Path& path : direct) {
      group_->Release(path, signalled.ok() ? LocalGroup::Released{fence_, value_} : LocalGroup::Released{});
    }
    status.Update(signalled);
    return status;
  }
  // Copies what the step receives. Adds to `place` the bytes that pass through receiving_, and to `direct` the paths of which
  // this rank's queue reads the memory.
  absl::Status ReceiveEach(std::span<const CollectiveOperand> all, const mge_run* run, size_t& place,
                           std::vector<LocalGroup::Path>& direct) {
    for (const CollectiveOperand& o : all) {
      if (o.sends || o.peer < 0) continue;
      const LocalGroup::Path path = PathOf(o);
      void* const to = Address(run, o.to);
      MGE_ASSIGN_OR_RETURN(const LocalGroup::Buffer buffer, group_->WaitForBuffer(path));
      const bool fits = buffer.bytes == BytesOf(o);
      if (buffer.fence && fits) {
        direct.push_back(path);
        MGE_RETURN_IF_ERROR(CopyFrom(path.from, buffer, to, run));
        continue;
      }
      if (fits && buffer.bytes > 0) std::memcpy(run->queue ? receiving_.Host(place) : to, buffer.data, buffer.bytes);
      group_->Release(path, {});
      if (!fits) return Fail(errors::kUnsupportedFeature, "the arrays to sum differ between replicas");
      if (!run->queue || buffer.bytes == 0) continue;
      const size_t from = std::exchange(place, place + PlaceBytes(o));
      MGE_RETURN_IF_ERROR(Copy(run, to, receiving_.Queue(from), buffer.bytes));
    }
    return absl::OkStatus();
  }

  // Copies from another device. The host waits for the data, because a failure of the other queue does not stop this one.
  absl::Status CopyFrom(uint32_t from, const LocalGroup::Buffer& buffer, void* to, const mge_run* run) {
    const mge_queue_api& api = *device().queue_api();
    MGE_ASSIGN_OR_RETURN(const mge_code code, WaitForFence(api, buffer.fence, buffer.value, &group_->stop()));
    if (code != MGE_OK) {
      return QueryDevice(*buffer.device, fmt::format("replica {} on {}", from, buffer.device->name()),
                         [&](mge_error* e) { return api.host_wait(buffer.fence, buffer.value, 0, e); });
    }
    if (buffer.bytes == 0) return absl::OkStatus();
    return QueryDevice(device(), "copying from another replica", [&](mge_error* e) {
      return api.copy_peer(run->queue, device().handle(), to, buffer.device->handle(), buffer.data, buffer.bytes, e);
    });
  }

  LocalGroup::Path PathOf(const CollectiveOperand& o) const {
    const auto peer = static_cast<uint32_t>(o.peer);
    return o.sends ? LocalGroup::Path{local_, peer, o.key} : LocalGroup::Path{peer, local_, o.key};
  }

  absl::Status Copy(const mge_run* run, void* to, const void* from, size_t bytes) const {
    if (bytes == 0) return absl::OkStatus();
    return QueryDevice(device(), "copying for a sum over replicas",
                       [&](mge_error* e) { return device().queue_api()->copy(run->queue, to, from, bytes, e); });
  }
  // Signals the next value of the fence when the queue has done all work.
  absl::Status Signal(const mge_run* run) {
    const mge_queue_api& api = *device().queue_api();
    if (!fence_) {
      MGE_RETURN_IF_ERROR(QueryDevice(device(), "creating a fence",
                                      [&](mge_error* e) { return api.fence_create(device().handle(), &fence_, e); }));
    }
    return QueryDevice(device(), "signalling a fence",
                       [&](mge_error* e) { return api.signal(run->queue, fence_, ++value_, e); });
  }
  // Waits until the queue has done all work.
  absl::Status WaitFor(const mge_run* run) {
    MGE_RETURN_IF_ERROR(Signal(run));
    return WaitUntil(value_);
  }
  absl::Status WaitUntil(uint64_t value) const {
    const mge_queue_api& api = *device().queue_api();
    MGE_ASSIGN_OR_RETURN(const mge_code code, WaitForFence(api, fence_, value, &group_->stop()));
    if (code == MGE_OK) return absl::OkStatus();
    return QueryDevice(device(), "waiting for a queue", [&](mge_error* e) { return api.host_wait(fence_, value, 0, e); });
  }

  const std::shared_ptr<LocalGroup> group_;
  const uint32_t local_;  // the rank within the group
  Staging staging_;       // of a step's operands, or of what an exchange sends
  Staging receiving_;     // of what an exchange receives
  mge_fence* fence_ = nullptr;
  uint64_t value_ = 0;      // the latest one of the fence
  uint64_t received_ = 0;   // when the copies from receiving_ have ended
  uint64_t delivered_ = 0;  // the same of the latest copies from staging_ to the device
};

class LocalCommunicators final : public Communicators {
 public:
  LocalCommunicators(std::shared_ptr<LocalGroup> group, uint32_t rank) : group_(std::move(group)), rank_(rank) {}
  uint32_t ranks() const override { return group_->all_ranks(); }
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
  stop_.cancel.store(kStopAsked);  // before the lock, which a sum over other groups holds while it waits
  std::lock_guard lock(mutex_);
  changed_.notify_all();
}

absl::Status LocalGroup::Aborted() const { return stop_.CheckStop(); }

absl::Status LocalGroup::Join(const std::function<absl::Status()>& complete) {
  std::unique_lock lock(mutex_);
  MGE_RETURN_IF_ERROR(Aborted());
  const uint64_t join = joins_;
  if (++waiting_ == ranks()) {
    result_ = NoThrow(complete);
    waiting_ = 0;
    ++joins_;
    changed_.notify_all();
    return result_;
  }
  changed_.wait(lock, [&] { return joins_ != join || stop_.cancel.load() != kGoOn; });
  return joins_ != join ? result_ : Aborted();
}

absl::StatusOr<std::span<const Tensor>> LocalGroup::Sum(uint32_t rank, std::vector<Operand> mine) {
  operands_[rank] = std::move(mine);
  MGE_RETURN_IF_ERROR(Join([&]() -> absl::Status {
    MGE_RETURN_IF_ERROR(SumAll(whole_));
    return outer_.sum ? InQueue([this] { return SumOverGroups(whole_, 0); }) : absl::OkStatus();
  }));
  return whole_.sums;
}

absl::Status LocalGroup::StartSum(uint32_t rank, uint32_t bucket, bool parts, std::vector<Operand> mine) {
  operands_[rank] = std::move(mine);
  return Join([&]() -> absl::Status {
    Summed& sum = buckets_[bucket];
    sum.parts = parts;
    MGE_RETURN_IF_ERROR(SumAll(sum));
    queue_.Submit(bucket, [this, &sum, bucket] { return outer_.sum ? SumOverGroups(sum, bucket) : absl::OkStatus(); });
    return absl::OkStatus();
  });
}

absl::StatusOr<std::span<const Tensor>> LocalGroup::EndSum(uint32_t rank, uint32_t bucket) {
  MGE_RETURN_IF_ERROR(queue_.Wait(bucket));
  std::lock_guard lock(mutex_);
  const Summed& sum = buckets_.at(bucket);
  const std::span<const Tensor> all = sum.sums;
  if (!sum.parts) return all;
  const size_t own = all.size() / ranks();
  return all.subspan(rank * own, own);
}

absl::Status LocalGroup::InQueue(SumQueue::Job job) {
  queue_.Submit(kNoBucket, std::move(job));
  return queue_.Wait(kNoBucket);
}

absl::Status LocalGroup::SumOverGroups(Summed& sum, uint32_t bucket) {
  MGE_RETURN_IF_ERROR(Aborted());
  for (auto& [dtype, joined] : sum.joined) {
    MGE_RETURN_IF_ERROR(sum.parts ? outer_.sum_parts(joined, sum.ends.at(dtype), bucket) : outer_.sum(joined, bucket));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::span<const LocalGroup::Gathered>> LocalGroup::Gather(uint32_t rank, std::vector<Operand> mine,
                                                                         std::span<const int64_t> whole) {
  operands_[rank] = std::move(mine);
  MGE_RETURN_IF_ERROR(Join([&] { return GatherAll(whole); }));
  return gathered_;
}

// Lets gathered_bytes_ hold the parts: rank after rank, and of each rank array after array.
absl::Status LocalGroup::GatherAll(std::span<const int64_t> whole) {
  const std::vector<Operand>& first = operands_.front();
  gathered_.clear();
  std::vector<int64_t> ends;  // by group of all_ ranks
  int64_t bytes = 0;
  for (uint32_t r = 0; r < all_; ++r) {
    for (size_t i = 0; i < whole.size(); ++i) {
      const ElementRange part = PartOfElements(whole[i], r, all_);
      gathered_.push_back({i, part.begin, nullptr, part.count});
      bytes += part.count * ElementBytes(first[i].dtype);
    }
    if ((r + 1) % ranks() == 0) ends.push_back(bytes);
  }
  if (!gathered_bytes_.defined() || gathered_bytes_.elements() < bytes) {
    MGE_ASSIGN_OR_RETURN(gathered_bytes_, Tensor::Create(DType::kU8, {bytes}));
  }
  auto* at = static_cast<char*>(gathered_bytes_.mutable_data());
  for (size_t p = 0; p < gathered_.size(); ++p) {
    Gathered& part = gathered_[p];
    const auto rank = static_cast<uint32_t>(p / whole.size());
    const auto size = static_cast<size_t>(part.count * ElementBytes(first[part.array].dtype));
    part.data = at;
    const bool own = rank >= first_ && rank < first_ + ranks();
    if (own && size > 0) std::memcpy(at, operands_[rank - first_][part.array].data, size);
    at += size;
  }
  if (!outer_.gather || bytes == 0) return absl::OkStatus();
  return InQueue([&]() -> absl::Status {
    MGE_RETURN_IF_ERROR(Aborted());
    return outer_.gather(gathered_bytes_, ends);
  });
}

LocalGroup::Sums LocalGroup::Facts() const {
  Sums out = {.buckets = buckets_.size()};
  for (const auto& [bucket, sum] : buckets_) {
    for (const auto& [dtype, joined] : sum.joined) out.bytes += static_cast<uint64_t>(joined.bytes());
  }
  std::tie(out.busy_us, out.waited_us) = queue_.Times();
  return out;
}

void LocalGroup::Submit(const Path& path, const Buffer& buffer) {
  std::lock_guard lock(mutex_);
  buffers_[path].buffer = buffer;
  changed_.notify_all();
}

absl::StatusOr<LocalGroup::Buffer> LocalGroup::WaitForBuffer(const Path& path) {
  std::unique_lock lock(mutex_);
  auto submitted = [&] {  // and not one of an earlier exchange, which the other rank has not removed yet
    const auto at = buffers_.find(path);
    return at != buffers_.end() && !at->second.released;
  };
  changed_.wait(lock, [&] { return submitted() || stop_.cancel.load() != kGoOn; });
  MGE_RETURN_IF_ERROR(Aborted());
  Exchanged& exchanged = buffers_.at(path);
  exchanged.in_use = true;
  return exchanged.buffer;
}

void LocalGroup::Release(const Path& path, const Released& released) {
  std::lock_guard lock(mutex_);
  buffers_.at(path).released = released;
  changed_.notify_all();
}

LocalGroup::Released LocalGroup::WaitForRelease(const Path& path) {
  std::unique_lock lock(mutex_);
  const auto at = buffers_.find(path);
  if (at == buffers_.end()) return {};
  const Exchanged& exchanged = at->second;
  changed_.wait(lock, [&] { return exchanged.released || (stop_.cancel.load() != kGoOn && !exchanged.in_use); });
  const Released released = exchanged.released.value_or(Released{});
  buffers_.erase(at);
  return released;
}

absl::Status LocalGroup::Place(Summed& out) {
  const std::vector<Operand>& first = operands_.front();
  std::map<DType, int64_t> sizes;
  for (const Operand& o : first) sizes[o.dtype] += o.elements;
  for (const auto& [dtype, size] : sizes) {
    Tensor& joined = out.joined[dtype];
    if (joined.defined() && joined.elements() == size) continue;
    MGE_ASSIGN_OR_RETURN(joined, Tensor::Create(dtype, {size}));
  }
  std::erase_if(out.joined, [&](const auto& entry) { return !sizes.contains(entry.first); });
  out.sums.clear();
  out.ends.clear();
  std::map<DType, int64_t> used;
  auto place = [&](DType dtype, int64_t elements) {
    Tensor& joined = out.joined[dtype];
    auto* const at = static_cast<char*>(joined.mutable_data()) + used[dtype] * ElementBytes(dtype);
    used[dtype] += elements;
    return joined.Within(dtype, {elements}, at);
  };
  if (!out.parts) {
    for (const Operand& o : first) out.sums.push_back(place(o.dtype, o.elements));
    return absl::OkStatus();
  }
  uint32_t placed = 0;
  auto end_groups = [&](uint32_t until) {
    for (; placed < until; ++placed) {
      if ((placed + 1) % ranks() > 0) continue;
      for (const auto& [dtype, size] : sizes) out.ends[dtype].push_back(used[dtype]);
    }
  };
  ForEachPart([&](uint32_t rank, size_t i, ElementRange part) {
    end_groups(rank);
    out.sums.push_back(place(first[i].dtype, part.count));
  });
  end_groups(all_);
  return absl::OkStatus();
}

void LocalGroup::ForEachPart(const std::function<void(uint32_t, size_t, ElementRange)>& visit) const {
  const std::vector<Operand>& first = operands_.front();
  for (uint32_t r = 0; r < all_; ++r) {
    for (size_t i = 0; i < first.size(); ++i) visit(r, i, PartOfElements(first[i].elements, r, all_));
  }
}

absl::Status LocalGroup::SumAll(Summed& out) {
  const std::vector<Operand>& first = operands_.front();
  for (const auto& [data, dtype, elements] : first) {
    if (HostSum::Adds(dtype)) continue;
    return Fail(errors::kUnsupportedFeature, fmt::format("replicas cannot sum arrays of {}", DTypeName(dtype)));
  }
  for (uint32_t r = 0; r < ranks(); ++r) {
    bool same = operands_[r].size() == first.size();
    for (size_t i = 0; same && i < first.size(); ++i) {
      same = operands_[r][i].dtype == first[i].dtype && operands_[r][i].elements == first[i].elements;
    }
    if (!same) return Fail(errors::kUnsupportedFeature, "the arrays to sum differ between replicas");
  }
  MGE_RETURN_IF_ERROR(Place(out));
  std::vector<const void*> arrays(ranks());
  auto add = [&](size_t i, ElementRange range, const Tensor& to) {
    const int64_t begin = range.begin * ElementBytes(first[i].dtype);
    for (uint32_t r = 0; r < ranks(); ++r) arrays[r] = static_cast<const char*>(operands_[r][i].data) + begin;
    if (range.count > 0) sum_.Add(first[i].dtype, arrays, const_cast<void*>(to.data()), range.count);
  };
  if (!out.parts) {
    for (size_t i = 0; i < first.size(); ++i) add(i, {0, first[i].elements}, out.sums[i]);
    return absl::OkStatus();
  }
  size_t part = 0;
  ForEachPart([&](uint32_t, size_t i, ElementRange range) { add(i, range, out.sums[part++]); });
  // The ranks of this group keep theirs.
  const auto own = out.sums.begin() + static_cast<std::ptrdiff_t>(first_ * first.size());
  out.sums = std::vector<Tensor>(own, own + static_cast<std::ptrdiff_t>(ranks() * first.size()));
  return absl::OkStatus();
}

}  // namespace mge
