// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/slab_provider.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/plugin/guard.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr uintptr_t kLeastAlignment = 64;

}  // namespace

DeviceSlabs::DeviceSlabs(std::string name, mge_device* device, const mge_memory_api* memory,
                         const mge_queue_api* queue, int32_t memory_class,
                         std::shared_ptr<Budget> budget)
    : name_(std::move(name)),
      device_(device),
      memory_(memory),
      queue_(queue),
      memory_class_(memory_class),
      budget_(std::move(budget)) {
  table_ = {};
  table_.struct_size = sizeof(table_);
  table_.self = this;
  table_.acquire = [](void* self, uint64_t bytes, mge_slab* out, mge_error* error) -> mge_code {
    absl::StatusOr<mge_slab> slab = static_cast<DeviceSlabs*>(self)->Acquire(bytes);
    if (slab.ok()) {
      *out = *slab;
      return MGE_OK;
    }
    mge_code code = slab.status().code() == absl::StatusCode::kResourceExhausted
                        ? mge_code{MGE_RESOURCE_EXHAUSTED}
                        : static_cast<mge_code>(slab.status().code());
    if (error) {
      error->code = code;
      error->text = ErrorTitle(slab.status());
      error->origin = slab.status();
    }
    return code;
  };
  table_.release = [](void* self, const mge_slab* slab) {
    static_cast<DeviceSlabs*>(self)->Release(*slab);
  };
  table_.memory_info = [](void* self, uint64_t* free_bytes, uint64_t* total_bytes) {
    MemoryInfo info = static_cast<DeviceSlabs*>(self)->Info();
    *free_bytes = info.free_bytes;
    *total_bytes = info.total_bytes;
  };
}

absl::StatusOr<mge_slab> DeviceSlabs::Acquire(uint64_t bytes) {
  MGE_RETURN_IF_ERROR(budget_->Charge(bytes));
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  slab.memory_class = memory_class_;
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) {
    return memory_->slab_acquire(device_, memory_class_, bytes, &slab, e);
  });
  if (code == MGE_OK && reinterpret_cast<uintptr_t>(slab.address) % kLeastAlignment == 0 &&
      slab.address) {
    slab.bytes = bytes;
    return slab;
  }
  budget_->Refund(bytes);
  if (code == MGE_OK) {
    memory_->slab_release(device_, &slab);
    error.text = fmt::format("it gave the address {}, which is not aligned to {} bytes",
                             fmt::ptr(slab.address), kLeastAlignment);
    return StatusOfBackend(MGE_INTERNAL, error,
                           fmt::format("device {}: taking {} bytes", name_, bytes));
  }
  if (code != MGE_RESOURCE_EXHAUSTED) {
    return StatusOfBackend(code, error, fmt::format("device {}: taking {} bytes", name_, bytes));
  }
  MemoryInfo info = Info();
  std::string what = fmt::format("{} bytes were asked for, {} are free, MGE holds {}", bytes,
                                 info.free_bytes, budget_->in_use());
  if (!error.text.empty()) what += "; " + TextOfBackend(code, error);
  return Fail(errors::kOutOfMemory,
              fmt::format("device {} has no memory left for this request", name_),
              {.what = std::move(what),
               .where = fmt::format("device {}", name_),
               .fix = "end other programs that use the device, or run a smaller batch or model"});
}

void DeviceSlabs::Release(const mge_slab& slab) {
  memory_->slab_release(device_, &slab);
  budget_->Refund(slab.bytes);
}

MemoryInfo DeviceSlabs::Info() const {
  MemoryInfo info;
  memory_->memory_info(device_, &info.free_bytes, &info.total_bytes);
  if (uint64_t limit = budget_->limit()) {
    info.free_bytes = std::min(info.free_bytes, budget_->left());
    info.total_bytes = info.total_bytes ? std::min(info.total_bytes, limit) : limit;
  }
  return info;
}

bool DeviceSlabs::Reached(const mge_fence_point& point, bool wait) const {
  if (!point.fence || !queue_) return true;
  // A fence that failed is over as well: nothing that waits for it will run.
  return queue_->host_wait(point.fence, point.value, wait ? UINT64_MAX : 0, nullptr) !=
         MGE_DEADLINE_EXCEEDED;
}

}  // namespace mge
