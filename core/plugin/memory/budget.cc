// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/budget.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "core/base/errors.h"
#include "core/plugin/unfinished.h"
#include "fmt/format.h"

namespace mge {
absl::Status Budget::Charge(uint64_t bytes) {
  uint64_t now = in_use_.load(std::memory_order_relaxed);
  uint64_t next;
  do {
    uint64_t limit = limit_ ? limit_ : UINT64_MAX;
    if (now > limit || bytes > limit - now) {
      return Fail(errors::kOverBudget, fmt::format("the memory limit of device {} would be exceeded", owner_),
                  {.what = fmt::format("{} bytes were asked for, {} are in use, the limit is {}", bytes, now, limit),
                   .where = fmt::format("memory.limit of {}", owner_),
                   .fix = "raise MGE_MEMORY_LIMIT, or run a smaller batch or model"});
    }
    next = now + bytes;
  } while (!in_use_.compare_exchange_weak(now, next, std::memory_order_relaxed));
  uint64_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < next && !peak_.compare_exchange_weak(peak, next, std::memory_order_relaxed)) {
  }
  return absl::OkStatus();
}

uint64_t Budget::left() const {
  if (!limit_) return UINT64_MAX;
  uint64_t used = in_use();
  return used < limit_ ? limit_ - used : 0;
}

std::unique_lock<std::mutex> Budget::Lock() const {
  if (getpid() == process_) return std::unique_lock(mutex_);
  std::unique_lock lock(mutex_, std::defer_lock);
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!lost_.load(std::memory_order_relaxed) && !lock.try_lock()) {
    if (std::chrono::steady_clock::now() > end) lost_.store(true, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return lock;
}

void Budget::Join(const void* who, Keeper keeper) {
  if (auto lock = Lock()) keepers_.emplace_back(who, std::move(keeper));
}

void Budget::Leave(const void* who) {
  if (auto lock = Lock()) std::erase_if(keepers_, [&](const auto& keeper) { return keeper.first == who; });
}

uint64_t Budget::idle() const {
  uint64_t bytes = 0;
  if (auto lock = Lock()) {
    for (const auto& [who, keeper] : keepers_) bytes += keeper.idle();
  }
  return bytes;
}

bool Budget::CanHelp(const absl::Status& refusal, uint64_t bytes) const {
  return absl::IsResourceExhausted(refusal) && ErrorId(refusal) != errors::kGrowthRequired.id &&
         bytes <= (limit_ ? limit_ : kLargestRequest);
}

uint64_t Budget::AskBack(const void* but, uint32_t pressure) {
  uint64_t given = 0;
  if (auto lock = Lock()) {
    for (auto at = keepers_.rbegin(); at != keepers_.rend(); ++at) {
      if (at->first != but) given += at->second.give_back(pressure);
    }
  }
  return given;
}

bool IsOverBudget(const absl::Status& status) {
  const int id = ErrorId(status);
  return id == errors::kOverBudget.id || id == errors::kOverCap.id;
}

absl::StatusOr<std::shared_ptr<std::byte>> BudgetedHostAllocator::Allocate(int64_t bytes) {
  absl::StatusOr<std::shared_ptr<std::byte>> taken = Take(bytes);
  if (!taken.ok())
    budget_->Press(this, static_cast<uint64_t>(std::max<int64_t>(bytes, 0)), taken, [&] { return Take(bytes); });
  return taken;
}

absl::StatusOr<std::shared_ptr<std::byte>> BudgetedHostAllocator::Take(int64_t bytes) {
  uint64_t charge = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
  MGE_RETURN_IF_ERROR(budget_->Charge(charge));
  absl::StatusOr<std::shared_ptr<std::byte>> memory = UnlimitedHostAllocator().Allocate(bytes);
  if (!memory.ok()) {
    budget_->Refund(charge);
    return memory;
  }
  std::byte* address = memory->get();
  auto refund = [keep = *std::move(memory), budget = budget_, charge](std::byte*) mutable {
    keep.reset();
    budget->Refund(charge);
  };
  try {
    return std::shared_ptr<std::byte>(address, std::move(refund));
  } catch (const std::bad_alloc&) {  // shared_ptr has already called the deleter
    return Fail(errors::kOutOfMemory, "the system has no memory left",
                {.what = fmt::format("{} bytes were asked for", charge)});
  }
}

}  // namespace mge
