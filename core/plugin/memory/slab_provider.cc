// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/slab_provider.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/tables.h"
#include "fmt/format.h"

namespace mge {
namespace {

mge_code AcquireThroughTable(void* self, uint64_t bytes, mge_slab* out, mge_error* error) {
  return AnswerBackend(error, [&]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(mge_slab slab, static_cast<DeviceSlabs*>(self)->Acquire(bytes));
    Fill(out, slab);
    return absl::OkStatus();
  });
}

}  // namespace

bool SlabProvider::ReleaseAfter(const mge_slab&, const mge_fence_point&) { return false; }
absl::StatusOr<mge_slab> SlabProvider::ReserveRange(uint64_t) {
  return Fail(errors::kInternal, "this provider has no virtual memory");
}
void SlabProvider::ReleaseRange(const mge_slab&) {}
absl::Status SlabProvider::Commit(const mge_slab&, uint64_t, uint64_t) {
  return Fail(errors::kInternal, "this provider has no virtual memory");
}
void SlabProvider::Decommit(const mge_slab&, uint64_t, uint64_t) {}

DeviceSlabs::DeviceSlabs(std::string name, mge_device* device, const mge_memory_api* memory, const mge_queue_api* queue,
                         int32_t memory_class, std::shared_ptr<Budget> budget, uint64_t largest, uint64_t alignment)
    : name_(std::move(name)),
      device_(device),
      memory_(memory),
      queue_(queue),
      memory_class_(memory_class),
      budget_(std::move(budget)),
      largest_(largest),
      alignment_(alignment) {
  table_ = {};
  table_.struct_size = sizeof(table_);
  table_.self = this;
  table_.acquire = AcquireThroughTable;
  table_.release = [](void* self, const mge_slab* slab) { static_cast<DeviceSlabs*>(self)->Release(Widen(*slab)); };
  table_.memory_info = [](void* self, uint64_t* free_bytes, uint64_t* total_bytes) {
    MemoryInfo info = static_cast<DeviceSlabs*>(self)->Info();
    *free_bytes = info.free_bytes;
    *total_bytes = info.total_bytes;
  };
}

DeviceSlabs::~DeviceSlabs() {
  while (Settle(true)) {
  }
}

DeviceSlabs* DeviceSlabs::Behind(const mge_slab_provider* table) {
  return table->acquire == AcquireThroughTable ? static_cast<DeviceSlabs*>(table->self) : nullptr;
}

bool DeviceSlabs::Settle(bool wait) {
  std::lock_guard lock(mutex_);
  size_t before = leaving_.size();
  std::erase_if(leaving_, [&](const Leaving& l) {
    if (!Reached(l.last_use, wait)) return false;
    wait = false;
    Refund(l.bytes);
    return true;
  });
  return leaving_.size() < before;
}

absl::Status DeviceSlabs::ChargeOnce(uint64_t bytes) {
  const uint64_t cap = cap_.load(std::memory_order_relaxed);
  uint64_t held = held_.load(std::memory_order_relaxed);
  do {
    if (cap && (held > cap || bytes > cap - held)) {
      return Fail(errors::kOverCap, fmt::format("the cap of the reserve policy of device {} would be exceeded", name_),
                  {.what = fmt::format("{} bytes were asked for, {} are held, the cap is {}", bytes, held, cap),
                   .where = fmt::format("device {}", name_),
                   .fix = "choose another reserve policy, or run a smaller batch or model"});
    }
  } while (!held_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
  absl::Cleanup undo = [&] { held_.fetch_sub(bytes, std::memory_order_relaxed); };
  MGE_RETURN_IF_ERROR(budget_->Charge(bytes));
  std::move(undo).Cancel();
  return absl::OkStatus();
}

absl::Status DeviceSlabs::Charge(uint64_t bytes) {
  Settle(false);
  absl::Status charged = ChargeOnce(bytes);
  while (!charged.ok() && Settle(true)) charged = ChargeOnce(bytes);
  return charged;
}

void DeviceSlabs::Refund(uint64_t bytes) {
  held_.fetch_sub(bytes, std::memory_order_relaxed);
  budget_->Refund(bytes);
}

absl::Status DeviceSlabs::Refused(mge_code code, const mge_error& error, uint64_t bytes) const {
  if (code != MGE_RESOURCE_EXHAUSTED) {
    return StatusOfBackend(code, error, fmt::format("device {}: taking {} bytes", name_, bytes));
  }
  std::string what;
  if (error.text.find(std::to_string(bytes)) == std::string::npos) {  // the backend does not tell the amounts
    const MemoryInfo info = Info();
    what = fmt::format("{} bytes were asked for, ", bytes);
    if (info.total_bytes) what += fmt::format("{} are free, ", info.free_bytes);
  }
  what += fmt::format("MGE holds {}", budget_->in_use());
  if (!error.text.empty()) what += "; " + TextOfBackend(code, error);
  return Fail(errors::kOutOfMemory, fmt::format("device {} has no memory left for this request", name_),
              {.what = std::move(what),
               .where = fmt::format("device {}", name_),
               .fix = "end other programs that use the device, or run a smaller batch or model"});
}

absl::StatusOr<mge_slab> DeviceSlabs::Acquire(uint64_t bytes) {
  if (bytes > largest_) {
    return Fail(errors::kOutOfMemory, fmt::format("device {} cannot allocate so many bytes at once", name_),
                {.what = fmt::format("{} bytes were asked for; its largest allocation is {}", bytes, largest_),
                 .where = fmt::format("device {}", name_),
                 .fix = "run a smaller batch or model"});
  }
  MGE_RETURN_IF_ERROR(Charge(bytes));
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  slab.memory_class = memory_class_;
  mge_error error;
  mge_code code =
      CallBackend(error, [&](mge_error* e) { return memory_->slab_acquire(device_, memory_class_, bytes, &slab, e); });
  if (code == MGE_OK && reinterpret_cast<uintptr_t>(slab.address) % alignment_ == 0 && slab.address) {
    slab.bytes = bytes;
    return slab;
  }
  Refund(bytes);
  if (code == MGE_OK) {
    memory_->slab_release(device_, &slab);
    error.text = fmt::format("it gave the address {}, which is not aligned to {} bytes", fmt::ptr(slab.address), alignment_);
    code = MGE_INTERNAL;
  }
  return Refused(code, error, bytes);
}

void DeviceSlabs::Release(const mge_slab& slab) {
  memory_->slab_release(device_, &slab);
  Refund(slab.bytes);
}

bool DeviceSlabs::ReleaseAfter(const mge_slab& slab, const mge_fence_point& last_use) {
  if (!memory_->slab_release_after || !last_use.fence) return false;
  {
    std::lock_guard lock(mutex_);
    try {
      leaving_.push_back({slab.bytes, last_use});
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  memory_->slab_release_after(device_, &slab, &last_use);
  return true;
}

uint64_t DeviceSlabs::RangeGranularity() const {
  if (!memory_->range_reserve || memory_class_ != MGE_MEMORY_DEVICE) return 0;
  uint64_t granularity = memory_->range_granularity(device_);
  return std::has_single_bit(granularity) && granularity >= kMinSlabAlignment ? granularity : 0;
}

absl::StatusOr<mge_slab> DeviceSlabs::ReserveRange(uint64_t bytes) {
  mge_slab range = {};
  range.struct_size = sizeof(range);
  range.memory_class = memory_class_;
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return memory_->range_reserve(device_, bytes, &range, e); });
  if (code == MGE_OK && (!range.address || reinterpret_cast<uintptr_t>(range.address) % kMinSlabAlignment)) {
    if (range.address) memory_->range_release(device_, &range);
    error.text = fmt::format("it gave the address {}", fmt::ptr(range.address));
    code = MGE_INTERNAL;
  }
  if (code != MGE_OK) {
    return StatusOfBackend(code, error, fmt::format("device {}: reserving {} bytes of addresses", name_, bytes));
  }
  range.bytes = bytes;
  return range;
}

void DeviceSlabs::ReleaseRange(const mge_slab& range) { memory_->range_release(device_, &range); }

absl::Status DeviceSlabs::Commit(const mge_slab& range, uint64_t offset, uint64_t bytes) {
  MGE_RETURN_IF_ERROR(Charge(bytes));
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return memory_->range_commit(device_, &range, offset, bytes, e); });
  if (code == MGE_OK) return absl::OkStatus();
  Refund(bytes);
  return Refused(code, error, bytes);
}

void DeviceSlabs::Decommit(const mge_slab& range, uint64_t offset, uint64_t bytes) {
  memory_->range_decommit(device_, &range, offset, bytes);
  Refund(bytes);
}

MemoryInfo DeviceSlabs::Info() const {
  MemoryInfo info;
  // memory_info() reports only the class DEVICE.
  if (memory_class_ == MGE_MEMORY_DEVICE) memory_->memory_info(device_, &info.free_bytes, &info.total_bytes);
  if (uint64_t limit = budget_->limit()) {
    info.free_bytes = info.total_bytes ? std::min(info.free_bytes, budget_->left()) : budget_->left();
    info.total_bytes = info.total_bytes ? std::min(info.total_bytes, limit) : limit;
  }
  return info;
}

bool DeviceSlabs::Reached(const mge_fence_point& point, bool wait) const {
  if (!point.fence || !queue_) return true;
  // A failed fence counts as reached: no work that waits for it will run.
  return queue_->host_wait(point.fence, point.value, wait ? UINT64_MAX : 0, nullptr) != MGE_DEADLINE_EXCEEDED;
}

}  // namespace mge
