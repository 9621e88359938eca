// SPDX-License-Identifier: Apache-2.0
// The compute pool: the threads that share the work of kernels. A process has one, with counted references.
//
// If each session had a pool, there would be more threads than processors. If each worker had a fixed share of a loop, the
// loop would wait for workers that the system does not run. Algorithm:
//   - A job is a loop of chunks. Its ticket, an atomic counter, holds the number of chunks that no thread has claimed. The
//     caller and the workers decrement it to claim one chunk after the other, so fast threads do more chunks.
//   - The caller works too, and then waits only for chunks that workers have claimed. A worker that has claimed nothing
//     delays nobody. On a busy machine the call takes about as long as on one thread.
//   - A generation number in the ticket keeps a late worker from claiming a chunk of the next job in the same slot.
//   - A worker without work spins for about 100 us, then sleeps until the next job.
//   - A worker that the system suspends inside of a chunk delays its caller by a time slice. If this happens, loops run on
//     their caller alone until the processors are free again (contention.h).
// Chunk boundaries are the caller's, so results do not depend on the number of threads.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/base/thread.h"
#include "core/engine/contention.h"

namespace mge {

// Safe on any thread.
class ComputePool {
 public:
  using Body = void (*)(void* context, uint64_t chunk);

  // Returns the process's pool. The first call creates it, and its last owner destroys it. A forked child gets a new one.
  static std::shared_ptr<ComputePool> Shared();

  // Creates a separate pool, for tests. Workers start at the first ParallelFor() that can use them. If the system refuses a
  // thread, the pool has fewer workers.
  explicit ComputePool(int workers);
  ~ComputePool();  // waits for the workers; no call of ParallelFor() may be running
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Calls body(context, i) for every i < chunks, in any order, on at most `width` threads including this one. Returns when
  // all calls have ended. A body may call ParallelFor(). A body must not throw; it stores its errors in its context.
  void ParallelFor(uint64_t chunks, uint32_t width, Body body, void* context) noexcept;

  // Lets loops of up to `threads` threads, the caller included, have that many. Missing workers start at the next
  // ParallelFor() that can use them, and stay until the pool is destroyed. Does not change thread_count().
  void Reserve(uint32_t threads);

  // Returns the number of the calling thread: 1 and up for workers of a pool, 0 for any other thread.
  static uint32_t ThisThread();

  // Returns the number of threads that loops use by default, the caller included.
  uint32_t thread_count() const { return static_cast<uint32_t>(default_workers_) + 1; }
  // Returns the number of threads that can work on one loop, the caller included. ThisThread() is below it.
  uint32_t reserved_count() const { return static_cast<uint32_t>(workers_wanted_.load(std::memory_order_relaxed)) + 1; }

 private:
  // A loop that threads share.
  struct alignas(64) Job {
    std::atomic<uint64_t> ticket{0};  // generation << 32 | number of chunks that are not claimed
    std::atomic<uint32_t> done{0};    // chunks that have ended
    std::atomic<int32_t> seats{0};    // number of workers that may still join
    std::atomic<bool> taken{false};   // true while a caller uses the slot
    uint64_t chunks = 0;
    Body body = nullptr;
    void* context = nullptr;
  };
  static constexpr int kJobs = 16;  // loops at the same time; a further loop runs in its caller alone
  // A thread of the pool, as callers see it. Exists until the pool is destroyed.
  struct Worker {
    std::atomic<const Job*> job{nullptr};  // the loop whose chunks it claims
    clockid_t processor_time = 0;          // its clock
    Worker* next = nullptr;
  };

  void StartWorkers();
  void Work(std::unique_ptr<Worker> self);
  // Runs chunks of all jobs that have some. Returns false if there were none.
  bool HelpSomebody(Worker& self);
  // Returns whether loops may have several threads now.
  bool MayShare();
  // Waits until all chunks of the job have ended.
  void WaitForWorkers(const Job& job);
  // Returns a worker that runs or claims chunks of the job, or null.
  const Worker* WorkerOf(const Job& job) const;
  // Claims one chunk and runs it. Returns false if all are claimed.
  static bool ClaimAndRun(Job& job);

  const int default_workers_;
  std::atomic<int> workers_wanted_;
  std::atomic<int> started_{0};  // workers that were started, or that the system refused
  std::mutex start_mutex_;       // guards workers_
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> epoch_{0};  // grows with every published job
  std::atomic<int32_t> sleepers_{0};
  Job jobs_[kJobs];
  Contention contention_;
  std::atomic<Worker*> first_worker_{nullptr};  // a list that only grows
  std::vector<Thread> workers_;
};

// Returns the number of threads that this process may use: the lower of its CPU affinity and its control group's CPU quota,
// at least 1.
int UsableThreads();

}  // namespace mge
