// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/device.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "core/base/errors.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the bytes that a pool keeps for later.
uint64_t Idle(const Pool& pool) {
  const mge_pool_stats stats = pool.Stats();
  return stats.committed - std::min(stats.in_use, stats.committed);
}

}  // namespace

Device::Device(std::shared_ptr<Backend> backend, DeviceDescription description, MemoryOptions memory)
    : backend_(std::move(backend)), description_(std::move(description)), memory_options_(std::move(memory)) {
  if (description_.score == 0) reason_ = description_.reason;
}

Device::~Device() {
  const bool orphaned = Orphaned();
  if (!orphaned && !unfinished_.Reclaim(kPatience)) Abandon();
  const bool abandoned = !orphaned && abandoned_.load(std::memory_order_relaxed);
  for (ClassMemory& memory : classes_) {
    if (memory.pool) BudgetOf(ClassOf(memory))->Leave(memory.pool.get());
    // A forked child must not use the parent's driver. The parent frees the memory.
    if (abandoned && memory.pool) Leak(std::move(memory.pool), std::move(memory.slabs));
    if (orphaned) {
      (void)memory.pool.release();
      (void)memory.slabs.release();
    }
    memory.pool.reset();
    memory.slabs.reset();
  }
  if (abandoned) Leak(std::shared_ptr(backend_));
  if (mge_device* handle = this->handle(); handle && !orphaned && !abandoned) {
    mge_error ignored;
    CallBackend(ignored, [&](mge_error*) {
      backend_->plugin().device->close(handle);
      return MGE_OK;
    });
  }
}

const std::string& Device::gpu_name() const {
  static const std::string none;
  return gpu_named_.load(std::memory_order_acquire) ? gpu_name_ : none;
}

std::shared_ptr<Device> Device::Successor() const {
  auto next = std::make_shared<Device>(backend_, description_, memory_options_);
  next->name_ = name_;
  next->number_ = number_;
  next->gpu_name_ = gpu_name();
  next->gpu_named_.store(gpu_named_.load(std::memory_order_acquire), std::memory_order_release);
  next->budget_ = budget_;
  next->host_budget_ = host_budget_;
  next->host_allocator_ = std::make_unique<BudgetedHostAllocator>(Is(MGE_DEVICE_HOST_ACCESSIBLE) ? budget_ : host_budget_);
  return next;
}

void Device::Keep(std::unique_ptr<Unfinished> work) {
  unfinished_.Reclaim({});
  unfinished_.Add(std::move(work));
}

bool Device::Orphaned() const { return !Is(MGE_DEVICE_SURVIVES_FORK) && backend_->InForkedChild(); }

absl::Status Device::Open() {
  std::lock_guard lock(mutex_);
  return OpenLocked();
}

absl::Status Device::OpenLocked() {
  if (!usable()) {
    return Fail(errors::kDeviceUnusable, fmt::format("device '{}' cannot be used", name_), {.what = reason_});
  }
  if (Orphaned()) {
    return Fail(
        errors::kForked, fmt::format("device '{}' does not survive a fork", name_),
        {.what = "this process was forked from the one that started the backend",
         .fix = "create another runtime in the child process; if the driver refuses that, fork before the first use of "
                "the device, or execute a new program in the child (in Python: multiprocessing's start method spawn)"});
  }
  if (handle()) return absl::OkStatus();
  mge_device* opened = nullptr;
  mge_error error;
  mge_code code =
      CallBackend(error, [&](mge_error* e) { return backend_->plugin().device->open(description_.index, &opened, e); });
  if (code == MGE_OK && opened) {
    handle_.store(opened, std::memory_order_release);
    return absl::OkStatus();
  }
  if (code == MGE_OK) error.text = "the backend returned MGE_OK, but no device";
  if (code == MGE_DEVICE_LOST || code == MGE_FORKED || code == MGE_RESOURCE_EXHAUSTED) {
    return StatusOfBackend(code, error, fmt::format("opening device '{}'", name_));
  }
  return Fail(errors::kDeviceUnusable, fmt::format("device '{}' cannot be opened", name_),
              {.what = fmt::format("backend '{}': {}", backend_->name(), TextOfBackend(code, error)),
               .fix = "choose another device, or remove the cause that the backend names"});
}

absl::Status Device::Health() const {
  mge_device* handle = this->handle();
  auto status = backend_->plugin().device->status;
  if (!handle || !status) return absl::OkStatus();
  mge_error error;
  mge_code code = CallBackend(error, [&](mge_error* e) { return status(handle, e); });
  return StatusOfBackend(code, error, fmt::format("device '{}'", name_));
}

absl::StatusOr<std::unique_ptr<Pool>> Device::NewPool(int32_t memory_class, DeviceSlabs* slabs) const {
  const mge_memory_api& memory = memory_api();
  if (!memory_options_.pool.empty()) return MakePool(memory_options_.pool, memory_options_.numbers, slabs);
  if (memory.own_pool) return MakeBackendPool(memory.own_pool, handle(), memory_class, slabs, name_);
  return MakePool(memory_options_.needs_cuts ? "growing" : CopyText(memory.pool), memory_options_.numbers, slabs);
}

DeviceParts Device::Parts() const {
  const mge_memory_api& memory = memory_api();
  const MemoryOptions& set = memory_options_;
  constexpr const char* kModes[] = {"heuristic", "profile", "reproducible"};  // by MGE_SELECT_...
  const mge_strategy_api* strategy = strategy_api();
  const std::string mode = kModes[strategy ? strategy->mode : MGE_SELECT_HEURISTIC];
  return {!set.pool.empty() ? set.pool
          : memory.own_pool ? "own"
          : set.needs_cuts  ? "growing"
                            : CopyText(memory.pool),
          !set.reserve.empty() ? set.reserve
          : memory.own_reserve ? "own"
                               : CopyText(memory.reserve),
          strategy && strategy->order ? fmt::format("own ({})", mode) : mode};
}

absl::StatusOr<mge_reserve_decision> Device::Decide(const mge_plan_summary& plan) const {
  const mge_memory_api& memory = memory_api();
  if (memory_options_.reserve.empty() && memory.own_reserve) {
    mge_reserve_decision out = {};
    out.struct_size = sizeof(out);
    mge_error error;
    mge_code code = CallBackend(error, [&](mge_error* e) { return memory.own_reserve->decide(handle(), &plan, &out, e); });
    if (code != MGE_OK) return StatusOfBackend(code, error, fmt::format("device '{}': its reserve policy", name_));
    return out;
  }
  MGE_ASSIGN_OR_RETURN(
      ReservePolicy policy,
      ReservePolicy::Parse(memory_options_.reserve.empty() ? CopyText(memory.reserve) : memory_options_.reserve));
  return policy.Decide(plan);
}

absl::StatusOr<Pool*> Device::PoolLocked(int32_t memory_class) {
  MGE_CHECK(memory_class >= 0 && memory_class < MGE_MEMORY_CLASS_COUNT);
  MGE_RETURN_IF_ERROR(OpenLocked());
  ClassMemory& memory = classes_[static_cast<size_t>(memory_class)];
  if (memory.pool) return memory.pool.get();
  auto slabs =
      std::make_unique<DeviceSlabs>(name_, handle(), &memory_api(), queue_api(), memory_class, BudgetOf(memory_class),
                                    memory_class == MGE_MEMORY_DEVICE ? LargestAllocation() : UINT64_MAX,
                                    memory_class == MGE_MEMORY_DEVICE ? BufferAlignment() : kMinSlabAlignment);
  MGE_ASSIGN_OR_RETURN(memory.pool, NewPool(memory_class, slabs.get()));
  memory.slabs = std::move(slabs);
  absl::Cleanup undo = [&] {
    memory.pool.reset();
    memory.slabs.reset();
  };
  MGE_RETURN_IF_ERROR(Follow(memory, {}).status());
  memory.pool->ShareBudget(BudgetOf(memory_class));
  BudgetOf(memory_class)
      ->Join(memory.pool.get(), {[this, &memory](uint32_t p) { return GiveBack(memory, p); },
                                 [this, &memory] { return Orphaned() ? 0 : Idle(*memory.pool); }});
  std::move(undo).Cancel();
  return memory.pool.get();
}

// Completes the plan with the current memory figures and asks the policy. A `retain` of 0 becomes "no limit", except under
// memory pressure.
absl::StatusOr<mge_reserve_decision> Device::Ask(const ClassMemory& memory, mge_plan_summary plan) const {
  const MemoryInfo info = memory.slabs->Info();
  plan.struct_size = sizeof(plan);
  plan.concurrency = std::max(plan.concurrency, 1u);
  plan.memory_free = info.free_bytes;
  plan.memory_total = info.total_bytes;
  plan.memory_class = ClassOf(memory);
  plan.budget = BudgetOf(plan.memory_class)->limit();
  MGE_ASSIGN_OR_RETURN(mge_reserve_decision decision, Decide(plan));
  if (decision.retain == 0 && plan.pressure == MGE_PRESSURE_NONE) decision.retain = UINT64_MAX;
  if (plan.memory_class == MGE_MEMORY_DEVICE && memory_options_.keep_free_percent > 0) {
    const auto percent = static_cast<uint64_t>(memory_options_.keep_free_percent);
    decision.keep_free = std::max(decision.keep_free, PercentOf(plan.memory_total, percent));
    decision.initial = std::min(decision.initial, plan.memory_free - std::min(plan.memory_free, decision.keep_free));
  }
  return decision;
}

absl::StatusOr<mge_reserve_decision> Device::Follow(ClassMemory& memory, mge_plan_summary plan) {
  MGE_ASSIGN_OR_RETURN(mge_reserve_decision decision, Ask(memory, plan));
  std::lock_guard lock(memory.mutex);
  memory.plan = plan;
  memory.decision = decision;
  memory.pool->SetPolicy(decision);
  if (plan.arena_bytes || plan.constant_bytes) {
    memory.cap = std::max(memory.cap, decision.cap ? decision.cap : UINT64_MAX);
    memory.slabs->SetCap(memory.cap);
  }
  return decision;
}

// Applies the policy's decision for `pressure` once, trims the pool, and restores the previous decision.
uint64_t Device::GiveBack(ClassMemory& memory, uint32_t pressure) noexcept {
  if (Orphaned()) return 0;
  std::lock_guard lock(memory.mutex);
  const uint64_t before = memory.slabs->held();
  absl::Status asked = NoThrow([&]() -> absl::Status {
    mge_plan_summary plan = memory.plan;
    plan.pressure = pressure;
    MGE_ASSIGN_OR_RETURN(mge_reserve_decision decision, Ask(memory, plan));
    memory.pool->SetPolicy(decision);
    return absl::OkStatus();
  });
  // If the policy fails, everything is trimmed.
  memory.pool->Trim(asked.ok() && pressure < MGE_PRESSURE_CRITICAL ? MGE_TRIM_EXCESS : MGE_TRIM_ALL);
  memory.pool->SetPolicy(memory.decision);
  memory.slabs->Settle(false);
  const uint64_t after = memory.slabs->held();
  return before - std::min(after, before);
}

absl::StatusOr<Pool*> Device::PoolOf(int32_t memory_class) {
  std::lock_guard lock(mutex_);
  return PoolLocked(memory_class);
}

absl::Status Device::Reserve(const mge_plan_summary& plan) {
  unfinished_.Reclaim({});
  MGE_ASSIGN_OR_RETURN(Pool * pool, PoolOf());
  MGE_ASSIGN_OR_RETURN(mge_reserve_decision decision, Follow(classes_[MGE_MEMORY_DEVICE], plan));
  const uint64_t held = pool->Stats().committed;
  if (decision.initial <= held) return absl::OkStatus();
  uint64_t room = budget_->left();
  if (decision.cap) room = std::min(room, decision.cap - std::min(held, decision.cap));
  uint64_t more = std::min(decision.initial - held, room);
  // The arenas of the plan are reserved separately, so that the rest can be given back as whole slabs later. No piece
  // exceeds the device's largest allocation.
  auto parts = [&](uint64_t bytes) {
    constexpr uint64_t kAlignment = 64;
    const uint64_t most = std::max(LargestAllocation() / kAlignment, uint64_t{1}) * kAlignment;
    std::vector<PoolRequest> pieces;
    auto cut = [&](uint64_t part) {
      for (; part > 0; part -= std::min(part, most)) pieces.push_back({std::min(part, most)});
    };
    cut(std::min(bytes, plan.arena_bytes));
    cut(bytes - std::min(bytes, plan.arena_bytes));
    return pieces;
  };
  if (pool->Footprint(parts(more)) > room) {  // binary search for the largest request that fits after rounding
    for (uint64_t least = 0, most = std::exchange(more, 0); least < most;) {
      const uint64_t middle = most - (most - least) / 2;
      if (pool->Footprint(parts(middle)) <= room) {
        least = more = middle;
      } else {
        most = middle - 1;
      }
    }
  }
  // The pool keeps the memory of reservations that are released at once.
  absl::Status status;
  std::vector<mge_reservation> taken;
  taken.reserve(parts(more).size());
  for (const PoolRequest& part : parts(more)) {
    absl::StatusOr<mge_reservation> one = pool->Acquire(part.bytes);
    if (one.ok()) taken.push_back(*one);
    status.Update(one.status());
  }
  for (const mge_reservation& one : taken) pool->Release(one);
  return AddWhere(std::move(status), fmt::format("device {}: reserving {} bytes before the first run", name_, more));
}

absl::StatusOr<MemoryInfo> Device::QueryMemory() {
  MGE_RETURN_IF_ERROR(Open());
  MemoryInfo info;
  memory_api().memory_info(handle(), &info.free_bytes, &info.total_bytes);
  return info;
}

MemoryStats Device::Stats() {
  MemoryStats stats;
  stats.limit = budget_->limit();
  stats.charged = budget_->in_use();
  stats.peak_charged = budget_->peak();
  if (Orphaned()) return stats;
  std::lock_guard lock(mutex_);
  if (handle()) {
    memory_api().memory_info(handle(), &stats.device.free_bytes, &stats.device.total_bytes);
    if (const auto& pool = classes_[MGE_MEMORY_DEVICE].pool) stats.pool = pool->Stats();
  }
  return stats;
}

uint64_t Device::LiveBytes() const {
  const uint64_t charged = budget_->in_use();
  return charged - std::min(budget_->idle(), charged);
}

void Device::Trim(int32_t how) {
  if (Orphaned()) return;
  std::lock_guard lock(mutex_);
  for (ClassMemory& memory : classes_) {
    if (memory.pool) memory.pool->Trim(how);
  }
}

absl::Status CheckHostReaches(const Device& device, const mge_reservation& memory) {
  if (memory.host_address) return absl::OkStatus();
  return Fail(errors::kKernelFailed,
              fmt::format("device {} returned page-locked memory that the host cannot access", device.name()));
}

void Device::TrimIdle() {
  if (Orphaned()) return;
  unfinished_.Reclaim({});
  std::lock_guard lock(mutex_);
  for (ClassMemory& memory : classes_) {
    if (memory.pool && memory.pool->Stats().in_use == 0) memory.pool->Trim(MGE_TRIM_EXCESS);
  }
}

}  // namespace mge
