// SPDX-License-Identifier: Apache-2.0
#include "core/engine/compute_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <new>
#include <system_error>

#include "mge/plugin/host_limits.hpp"

namespace mge {
namespace {

constexpr int kSpins = 4000;      // tries of an idle worker before it sleeps, about 100 us
constexpr int kWaitSpins = 2000;  // tries of a caller that waits for claimed chunks before it yields
constexpr uint64_t kMaxChunks = 0xffffffffu;

thread_local uint32_t this_thread = 0;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

struct SharedState {
  std::mutex mutex;
  std::weak_ptr<ComputePool> pool;
  pid_t process = 0;
};

SharedState& State() {
  static SharedState* state = new SharedState;  // never destroyed, since threads may use it until the process ends
  return *state;
}

}  // namespace

std::shared_ptr<ComputePool> ComputePool::Shared() {
  SharedState& state = State();
  std::lock_guard lock(state.mutex);
  std::shared_ptr<ComputePool> pool = state.pool.lock();
  if (pool && state.process == getpid()) return pool;
  auto fresh = std::make_shared<ComputePool>(UsableThreads() - 1);
  state.pool = fresh;
  state.process = getpid();
  return fresh;
}

ComputePool::ComputePool(int workers) : default_workers_(std::max(workers, 0)), workers_wanted_(default_workers_) {}

ComputePool::~ComputePool() {
  stop_.store(true);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& t : workers_) t.join();
}

void ComputePool::Reserve(uint32_t threads) {
  const int workers = static_cast<int>(threads) - 1;
  int wanted = workers_wanted_.load();
  while (wanted < workers && !workers_wanted_.compare_exchange_weak(wanted, workers)) {
  }
}

void ComputePool::StartWorkers() {
  const int wanted = workers_wanted_.load(std::memory_order_relaxed);
  if (started_.load(std::memory_order_acquire) >= wanted) return;
  std::lock_guard lock(start_mutex_);
  // If memory or threads are exhausted, continues with the workers that were started.
  try {
    workers_.reserve(static_cast<size_t>(wanted));
    for (int i = started_.load(); i < wanted; ++i) {
      workers_.emplace_back([this, i] { Work(static_cast<uint32_t>(i) + 1); });
    }
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  started_.store(std::max(wanted, started_.load()), std::memory_order_release);
}

// The members of the job may be read after a successful claim, since the job cannot end before the claimed chunk has ended.
bool ComputePool::ClaimAndRun(Job& job) {
  uint64_t ticket = job.ticket.load(std::memory_order_acquire);
  while (ticket & 0xffffffffu) {
    if (!job.ticket.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) continue;
    uint64_t left = ticket & 0xffffffffu;
    job.body(job.context, job.chunks - left);
    job.done.fetch_add(1, std::memory_order_release);
    return true;
  }
  return false;
}

bool ComputePool::HelpSomebody() {
  bool helped = false;
  for (Job& job : jobs_) {
    if ((job.ticket.load(std::memory_order_relaxed) & 0xffffffffu) == 0) continue;
    if (job.seats.fetch_sub(1, std::memory_order_acq_rel) <= 0) {
      job.seats.fetch_add(1, std::memory_order_acq_rel);
      continue;
    }
    while (ClaimAndRun(job)) helped = true;
    job.seats.fetch_add(1, std::memory_order_acq_rel);
  }
  return helped;
}

uint32_t ComputePool::ThisThread() { return this_thread; }

void ComputePool::Work(uint32_t number) {
  this_thread = number;
  int idle = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (HelpSomebody()) {
      idle = 0;
      continue;
    }
    if (++idle < kSpins) {
      Pause();
      continue;
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (epoch_.load(std::memory_order_seq_cst) == epoch && !stop_.load()) epoch_.wait(epoch);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    idle = 0;
  }
}

void ComputePool::ParallelFor(uint64_t chunks, uint32_t width, Body body, void* context) noexcept {
  Job* job = nullptr;
  if (chunks > 1 && chunks <= kMaxChunks && width > 1 && workers_wanted_.load(std::memory_order_relaxed) > 0) {
    StartWorkers();
    for (Job& j : jobs_) {
      if (!j.taken.load(std::memory_order_relaxed) && !j.taken.exchange(true, std::memory_order_acq_rel)) {
        job = &j;
        break;
      }
    }
  }
  if (!job) {
    for (uint64_t i = 0; i < chunks; ++i) body(context, i);
    return;
  }
  job->chunks = chunks;
  job->body = body;
  job->context = context;
  job->done.store(0, std::memory_order_relaxed);
  // A worker that found no chunk in an earlier job may still hold a seat, so seats are added, not set.
  int32_t helpers = static_cast<int32_t>(std::min<uint64_t>(chunks - 1, width - 1));
  job->seats.fetch_add(helpers, std::memory_order_acq_rel);
  uint64_t generation = (job->ticket.load(std::memory_order_relaxed) >> 32) + 1;
  job->ticket.store(generation << 32 | chunks, std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) {
    if (helpers == 1) {
      epoch_.notify_one();
    } else {
      epoch_.notify_all();
    }
  }
  while (ClaimAndRun(*job)) {
  }
  for (int spins = 0; job->done.load(std::memory_order_acquire) != chunks; ++spins) {
    if (spins < kWaitSpins) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
  job->seats.fetch_sub(helpers, std::memory_order_acq_rel);
  job->taken.store(false, std::memory_order_release);
}

int UsableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int threads =
      sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(std::thread::hardware_concurrency());
  double limit = std::ceil(HostProcessorLimit());
  if (limit < threads) threads = static_cast<int>(limit);
  return std::max(threads, 1);
}

}  // namespace mge
