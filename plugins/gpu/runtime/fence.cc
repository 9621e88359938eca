// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/fence.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "plugins/gpu/launch.h"

namespace mge::gpu {
namespace {

// A wait with a time limit polls, at first without sleeping: a thread that sleeps notices the end some 50 us late. It stays
// awake a little longer than the last wait took, because runs of one plan take the same time, but not for long ones.
constexpr std::chrono::nanoseconds kMinAwake = std::chrono::microseconds(50), kMaxAwake = std::chrono::milliseconds(2);
constexpr std::chrono::microseconds kFencePause{20};
std::chrono::nanoseconds AwakeAfter(int64_t last_ns) {
  return std::clamp(std::chrono::nanoseconds(last_ns + last_ns / 4), kMinAwake, kMaxAwake);
}

// Calls a function of the driver on an event, and once more if it fails for another reason than a lost device: the work
// before the event goes on, so a run that fails would have to wait for it.
int Ask(const DriverFunction<void*>& function, void* event) {
  const int code = function.call(event);
  return code == kDriverOk || code == kDriverNotReady || IsLoss(code) ? code : function.call(event);
}

// Waits for an event, for the time `awake` without sleeping. The driver's own wait has no time limit.
int Await(void* event, uint64_t timeout_ns, std::chrono::nanoseconds awake) {
  const Driver& d = TheDriver();
  if (timeout_ns == UINT64_MAX) return Ask(d.event_synchronize, event);
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const int code = Ask(d.event_query, event);
    if (code != kDriverNotReady) return code;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (static_cast<uint64_t>(std::chrono::nanoseconds(waited).count()) >= timeout_ns) return code;
    if (waited < awake) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kFencePause);
    }
  }
}

// Waits like Await(), and looks at the collective operations before the event. Writes their failure.
int AwaitCollectives(void* event, uint64_t timeout_ns, std::chrono::nanoseconds awake, CollectiveWatch& watch,
                     Result* failure) {
  constexpr uint64_t kLook = 5'000'000;  // nanoseconds between two looks
  for (uint64_t left = timeout_ns;; left -= std::min(left, kLook)) {
    const int code = Await(event, std::min(left, kLook), awake);
    const bool pending = code == kDriverNotReady;
    *failure = watch.Check(pending);
    if (!pending || !failure->ok() || left <= kLook) return code;
  }
}

}  // namespace

Fence::~Fence() {
  for (size_t i = 0; i < count_; ++i) device_.events().Put(signals_[(first_ + i) % signals_.size()].event);
}

Result Fence::Prepare(uint64_t value) {
  if (value <= announced_) {
    return {MGE_FAILED_PRECONDITION, "a signal of the fence with " + std::to_string(value) + " after one with " +
                                         std::to_string(announced_) + "; its values must increase"};
  }
  if (count_ < signals_.size()) return {};
  // Full: the host has not waited for the oldest values. Looks which of them are reached before the ring grows.
  while (count_ > 0) {
    const SignalOf& oldest = signals_[first_];
    if (oldest.waiters || TheDriver().event_query.call(oldest.event.handle) != kDriverOk) break;
    const size_t before = count_;
    Reached(oldest.value);
    if (count_ == before) break;
  }
  if (count_ < signals_.size()) return {};
  std::vector<SignalOf> wider(2 * count_);
  for (size_t i = 0; i < count_; ++i) wider[i] = signals_[(first_ + i) % count_];
  signals_ = std::move(wider);
  first_ = 0;
  return {};
}

Result Fence::CheckAnnounced(uint64_t value) const {
  if (value <= announced_) return {};
  return {MGE_FAILED_PRECONDITION,
          "a wait for a fence to reach " + std::to_string(value) + ", but no signal of that value has been enqueued before"};
}

Fence::SignalOf* Fence::Find(uint64_t value) {
  if (value <= reached_) return nullptr;
  for (size_t i = 0; i < count_; ++i) {
    SignalOf& s = signals_[(first_ + i) % signals_.size()];
    if (s.value >= value) return &s;
  }
  return nullptr;
}

void Fence::Reached(uint64_t value) {
  reached_ = std::max(reached_, value);
  while (count_ > 0 && signals_[first_].value <= reached_ && signals_[first_].waiters == 0) {
    const SignalOf& s = signals_[first_];
    if (s.event.fault->what != Fault::kNone && fault_.what == Fault::kNone) {
      fault_ = *s.event.fault;
      faulted_from_ = s.value;
    }
    device_.events().Put(s.event);
    first_ = (first_ + 1) % signals_.size();
    --count_;
  }
}

Result Fence::HostWait(uint64_t value, uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  if (Result r = device_.Health(); !r.ok()) return r;
  if (Result r = CheckAnnounced(value); !r.ok()) return r;
  if (SignalOf* s = Find(value)) {
    // The ring may grow meanwhile, so the entry is found again afterwards: it stays because it has a waiter.
    const uint64_t exact = s->value;
    void* const event = s->event.handle;
    const std::shared_ptr<CollectiveWatch> watch = s->watch;
    ++s->waiters;
    lock.unlock();
    Result failure;
    const Result r = device_.With([&] {
      const auto awake = AwakeAfter(last_wait_ns_.load(std::memory_order_relaxed));
      const auto begin = std::chrono::steady_clock::now();
      const int code =
          watch ? AwaitCollectives(event, timeout_ns, awake, *watch, &failure) : Await(event, timeout_ns, awake);
      const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - begin;
      if (code == kDriverOk) last_wait_ns_.store(waited.count(), std::memory_order_relaxed);
      return ResultOf(code, TheDriver().event_synchronize.name);
    });
    lock.lock();
    if (!failure.ok() && failure_.ok()) {
      failure_ = std::move(failure);
      failed_from_ = exact;
    }
    for (size_t i = 0; i < count_; ++i) {
      SignalOf& entry = signals_[(first_ + i) % signals_.size()];
      if (entry.value == exact) --entry.waiters;
    }
    if (!failure_.ok() && value >= failed_from_) return failure_;
    if (!r.ok()) return r;
    Reached(exact);
  }
  if (!failure_.ok() && value >= failed_from_) return failure_;
  const uint64_t from = faulted_from_;
  if (fault_.what != Fault::kNone && value >= from) return ErrorOf(fault_);
  return {};
}

}  // namespace mge::gpu
