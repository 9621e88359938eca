// SPDX-License-Identifier: Apache-2.0
#include "core/engine/compute_pool.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "mge/plugin/host_limits.hpp"

namespace mge {
namespace {

constexpr int kSpins = 4000;             // tries of an idle worker before it sleeps, about 100 us
constexpr int kWaitSpins = 2000;         // tries of a caller that waits for claimed chunks before it yields
constexpr int64_t kMinWaitNs = 500'000;  // a shorter wait for a worker is not examined
constexpr uint64_t kMaxChunks = 0xffffffffu;

thread_local uint32_t this_thread = 0;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int64_t NowNs() { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int64_t Read(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
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
  for (Thread& t : workers_) t.join();
  for (Worker* worker = first_worker_; worker != nullptr;) delete std::exchange(worker, worker->next);
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
      workers_.emplace_back([this, i, self = std::make_unique<Worker>()]() mutable {
        this_thread = static_cast<uint32_t>(i) + 1;
        Work(std::move(self));
      });
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

bool ComputePool::HelpSomebody(Worker& self) {
  bool helped = false;
  for (Job& job : jobs_) {
    if ((job.ticket.load(std::memory_order_relaxed) & 0xffffffffu) == 0) continue;
    if (job.seats.fetch_sub(1, std::memory_order_acq_rel) <= 0) {
      job.seats.fetch_add(1, std::memory_order_acq_rel);
      continue;
    }
    self.job.store(&job, std::memory_order_relaxed);
    while (ClaimAndRun(job)) helped = true;
    self.job.store(nullptr, std::memory_order_relaxed);
    job.seats.fetch_add(1, std::memory_order_acq_rel);
  }
  return helped;
}

uint32_t ComputePool::ThisThread() { return this_thread; }

void ComputePool::Work(std::unique_ptr<Worker> owned) {
  Worker& self = *owned;
  pthread_getcpuclockid(pthread_self(), &self.processor_time);
  self.next = first_worker_.load();
  while (!first_worker_.compare_exchange_weak(self.next, &self)) {
  }
  owned.release();  // the list owns it
  int idle = 0;
  while (!stop_.load(std::memory_order_relaxed)) {
    uint32_t epoch = epoch_.load(std::memory_order_acquire);
    if (HelpSomebody(self)) {
      idle = 0;
      continue;
    }
    if (++idle < kSpins && !contention_.present()) {
      Pause();
      continue;
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (epoch_.load(std::memory_order_seq_cst) == epoch && !stop_.load()) epoch_.wait(epoch);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    idle = 0;
  }
}

const ComputePool::Worker* ComputePool::WorkerOf(const Job& job) const {
  for (const Worker* worker = first_worker_.load(std::memory_order_acquire); worker; worker = worker->next) {
    if (worker->job.load(std::memory_order_relaxed) == &job) return worker;
  }
  return nullptr;
}

void ComputePool::WaitForWorkers(const Job& job) {
  auto ended = [&] { return job.done.load(std::memory_order_acquire) == job.chunks; };
  for (int spins = 0; spins < kWaitSpins; ++spins) {
    if (ended()) return;
    Pause();
  }
  // Compares the time that has passed with the processor time of this thread, and of one worker after the other.
  struct Span {
    int64_t begin_ns = 0, begin_used_ns = 0;
  };
  const auto begin_at = [](int64_t now_ns, clockid_t clock) { return Span{now_ns, Read(clock)}; };
  const auto report = [this](const Span& span, int64_t now_ns, clockid_t clock) {
    contention_.ReportWait(now_ns - span.begin_ns, Read(clock) - span.begin_used_ns, now_ns);
  };
  const Span self = begin_at(NowNs(), CLOCK_THREAD_CPUTIME_ID);
  const Worker* worker = nullptr;
  Span other;
  while (!ended()) {
    std::this_thread::yield();
    if (contention_.present()) continue;
    const int64_t now_ns = NowNs();
    if (const Worker* found = WorkerOf(job); found != worker) {
      worker = found;
      if (worker) other = begin_at(now_ns, worker->processor_time);
    } else if (worker && now_ns - other.begin_ns >= kMinWaitNs) {
      report(other, now_ns, worker->processor_time);
      other = begin_at(now_ns, worker->processor_time);
    }
  }
  if (const int64_t now_ns = NowNs(); now_ns - self.begin_ns >= kMinWaitNs) report(self, now_ns, CLOCK_THREAD_CPUTIME_ID);
}

bool ComputePool::MayShare() {
  if (!contention_.present()) return true;
  if (const int64_t now_ns = NowNs(); contention_.WantsUsage(now_ns)) {
    contention_.ReportUsage(ThreadUsage::OfThisThread(), now_ns);
  }
  return !contention_.present();
}

void ComputePool::ParallelFor(uint64_t chunks, uint32_t width, Body body, void* context) noexcept {
  Job* job = nullptr;
  if (chunks > 1 && chunks <= kMaxChunks && width > 1 && workers_wanted_.load(std::memory_order_relaxed) > 0 && MayShare()) {
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
  WaitForWorkers(*job);
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
