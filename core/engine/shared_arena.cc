// SPDX-License-Identifier: Apache-2.0
#include "core/engine/shared_arena.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/plan/memory/memory_errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status InUse(const Device& device) {
  return Fail(errors::kApiMisuse, fmt::format("another run uses the shared arena of device {}", device.name()),
              {.what = "with this memory.static_policy, plans of static shape share one arena, so two runs at the same time "
                       "would overwrite each other's values",
               .where = fmt::format("device {}", device.name()),
               .fix = "start a run when the run before has ended and its fence, if it has one, was waited for, or set "
                      "memory.static_policy=off "
                      "(GE_USE_STATIC_MEMORY=0) for one of the models"});
}

// Acquires a block. Memory that the pool keeps is returned to the device first, unless the pool can cut the block from it.
absl::StatusOr<mge_reservation> AcquireTightly(Pool& pool, const SharedArena::Request& request) {
  absl::StatusOr<mge_reservation> block = pool.Acquire(request.bytes, request.alignment, nullptr, MGE_POOL_NO_GROWTH);
  if (block.ok()) return block;
  pool.Trim(MGE_TRIM_ALL);
  return pool.Acquire(request.bytes, request.alignment);
}

bool Fits(const mge_reservation& block, const SharedArena::Request& request) {
  return block.address && block.bytes >= request.bytes &&
         reinterpret_cast<uintptr_t>(block.address) % request.alignment == 0;
}

}  // namespace

std::string_view ArenaUse::name() const {
  if (per_run) return "per run";
  if (shared.empty()) return "own";
  return shared.front()->keeps() ? "shared" : "returned";
}

SharedArena::~SharedArena() {
  MGE_CHECK(!leased_);
  for (ClassMemory& memory : classes_) {
    if (!memory.pool) continue;
    device_.budget(static_cast<int32_t>(&memory - classes_.data())).Leave(&memory);
    if (!device_.Orphaned()) Release(memory);
  }
}

uint64_t SharedArena::Release(ClassMemory& memory) {
  for (const mge_reservation& block : memory.blocks) {
    if (block.address) memory.pool->Release(block);
  }
  memory.blocks.clear();
  return memory.bytes.exchange(0);
}

uint64_t SharedArena::ReleaseIdle(ClassMemory& memory) {
  if (device_.Orphaned()) return 0;
  std::lock_guard lock(mutex_);
  return leased_ || !memory.pool ? 0 : Release(memory);
}

void SharedArena::GiveUpIdle() {
  for (ClassMemory& memory : classes_) ReleaseIdle(memory);
}

uint64_t SharedArena::bytes() const {
  uint64_t bytes = 0;
  for (const ClassMemory& memory : classes_) bytes += memory.bytes;
  return bytes;
}

absl::Status SharedArena::Lease(std::span<const Request> requests, std::span<mge_reservation> blocks) {
  {
    std::lock_guard lock(mutex_);
    if (leased_) return InUse(device_);
    leased_ = true;
  }
  absl::Status status = Fit(requests, blocks);
  if (!status.ok()) End();
  return status;
}

void SharedArena::End() {
  std::lock_guard lock(mutex_);
  for (ClassMemory& memory : classes_) {
    if (!keeps_ && memory.pool && !device_.Orphaned()) Release(memory);
  }
  leased_ = false;
}

absl::Status SharedArena::Fit(std::span<const Request> requests, std::span<mge_reservation> blocks) {
  std::array<size_t, MGE_MEMORY_CLASS_COUNT> used = {};
  for (size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    ClassMemory& memory = classes_[static_cast<size_t>(request.memory_class)];
    MGE_RETURN_IF_ERROR(UsePool(memory, request.memory_class));
    const size_t place = used[static_cast<size_t>(request.memory_class)]++;
    if (memory.blocks.size() <= place) memory.blocks.resize(place + 1);
    mge_reservation& block = memory.blocks[place];
    if (!Fits(block, request)) MGE_RETURN_IF_ERROR(Grow(memory, block, request));
    blocks[i] = block;
  }
  return absl::OkStatus();
}

// Replaces a block by a larger one.
absl::Status SharedArena::Grow(ClassMemory& memory, mge_reservation& block, const Request& request) {
  memory.bytes -= block.bytes;
  if (block.address) memory.pool->Release(std::exchange(block, {}));
  MGE_ASSIGN_OR_RETURN(block, AcquireTightly(*memory.pool, request));
  memory.bytes += block.bytes;
  return absl::OkStatus();
}

absl::Status SharedArena::UsePool(ClassMemory& memory, int32_t memory_class) {
  if (memory.pool) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(memory.pool, device_.PoolOf(memory_class));
  auto give_back = [this, &memory](uint32_t pressure) { return pressure < MGE_PRESSURE_CRITICAL ? 0 : ReleaseIdle(memory); };
  auto idle = [this, &memory] { return leased_ || device_.Orphaned() ? 0 : memory.bytes.load(); };
  device_.budget(memory_class).Join(&memory, {give_back, idle});
  return absl::OkStatus();
}

std::vector<std::shared_ptr<SharedArena>> SharedArenas::Of(const Plan& plan, bool keeps) {
  std::vector<std::shared_ptr<SharedArena>> out;
  std::lock_guard lock(mutex_);
  for (const Arena& arena : plan.arenas) {
    auto same = [&](const auto& taken) { return &taken->device() == arena.device; };
    if (arena.bytes == 0 || std::any_of(out.begin(), out.end(), same)) continue;
    std::weak_ptr<SharedArena>& known = arenas_[{arena.device, keeps}];
    std::shared_ptr<SharedArena> shared = known.lock();
    if (!shared) known = shared = std::make_shared<SharedArena>(*arena.device, keeps);
    out.push_back(std::move(shared));
  }
  return out;
}

ArenaLeases::ArenaLeases(const Plan& plan, const ArenaUse& use) : plan_(plan) {
  for (const Arena& arena : plan.arenas) {
    if (arena.bytes == 0) continue;
    auto lease = std::find_if(leases_.begin(), leases_.end(), [&](const Lease& l) { return l.device == arena.device; });
    if (lease == leases_.end()) {
      auto shared =
          std::find_if(use.shared.begin(), use.shared.end(), [&](const auto& s) { return &s->device() == arena.device; });
      lease = leases_.insert(lease, Lease{arena.device, use.per_run ? nullptr : shared->get()});
    }
    lease->plan_arenas.push_back(&arena);
    lease->requests.push_back({arena.memory_class, static_cast<uint64_t>(arena.bytes), arena.alignment});
    lease->blocks.resize(lease->requests.size());
  }
}

absl::StatusOr<bool> ArenaLeases::Begin(std::vector<void*>& bases) {
  bool moved = false;
  bytes_ = 0;
  for (Lease& lease : leases_) {
    absl::Status status = Take(lease, bases, moved);
    if (status.ok()) continue;
    End();
    return status;
  }
  return moved;
}

absl::Status ArenaLeases::Take(Lease& lease, std::vector<void*>& bases, bool& moved) {
  absl::Status status = lease.arena ? lease.arena->Lease(lease.requests, lease.blocks) : TakeFromPools(lease);
  if (!status.ok()) return NamePlan(std::move(status), plan_, lease.device->budget(), 0);
  lease.held = true;
  for (size_t i = 0; i < lease.blocks.size(); ++i) {
    const Arena& arena = *lease.plan_arenas[i];
    const mge_reservation& block = lease.blocks[i];
    moved |= bases[arena.base] != block.address;
    bases[arena.base] = block.address;
    bytes_ += arena.bytes;
    if (arena.host_base == arena.base) continue;
    MGE_RETURN_IF_ERROR(CheckHostReaches(*lease.device, block));
    bases[arena.host_base] = block.host_address;
  }
  return absl::OkStatus();
}

absl::Status ArenaLeases::TakeFromPools(Lease& lease) {
  for (size_t i = 0; i < lease.requests.size(); ++i) {
    absl::StatusOr<Pool*> pool = lease.device->PoolOf(lease.requests[i].memory_class);
    absl::StatusOr<mge_reservation> block = pool.ok() ? AcquireTightly(**pool, lease.requests[i]) : pool.status();
    if (block.ok()) {
      lease.blocks[i] = *block;
      continue;
    }
    ReturnToPools(lease, i);
    return block.status();
  }
  return absl::OkStatus();
}

void ArenaLeases::ReturnToPools(Lease& lease, size_t count) {
  if (lease.device->Orphaned()) return;
  for (size_t i = 0; i < count; ++i) {
    if (absl::StatusOr<Pool*> pool = lease.device->PoolOf(lease.requests[i].memory_class); pool.ok()) {
      (*pool)->Release(lease.blocks[i]);
    }
  }
}

void ArenaLeases::End() {
  for (Lease& lease : leases_) {
    if (!std::exchange(lease.held, false)) continue;
    if (lease.arena) {
      lease.arena->End();
    } else {
      ReturnToPools(lease, lease.blocks.size());
    }
  }
}

}  // namespace mge
