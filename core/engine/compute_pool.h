// SPDX-License-Identifier: Apache-2.0
// The compute pool: the threads that share the work of kernels. One in the process, by counted references.
//
// Work is claimed chunk by chunk, and the caller helps: nobody ever waits for a thread that has claimed nothing, so a busy
// machine costs no more than running alone. Idle threads spin for a short while after work, then sleep.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace mge {

class ComputePool {
 public:
  using Body = void (*)(void* context, uint64_t chunk);

  // The process's pool, made at first use and gone with its last owner. After a fork the child gets a fresh one.
  static std::shared_ptr<ComputePool> Shared();

  // A pool of its own, for tests. Workers start at the first call that can use them.
  explicit ComputePool(int workers);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  // Calls body(context, i) for every i < chunks, in any order, on at most `width` threads, this one among them. Returns
  // when all are done. Safe from any thread, also from within a body. A body does not throw: it keeps what it caught in its
  // context.
  void ParallelFor(uint64_t chunks, uint32_t width, Body body, void* context) noexcept;

  // The calling thread's number: 1 and up for the pool's workers, 0 for any other thread.
  static uint32_t ThisThread();

  // Threads that can work at once, a caller included.
  uint32_t thread_count() const { return static_cast<uint32_t>(workers_wanted_) + 1; }

 private:
  struct alignas(64) Job {
    std::atomic<uint64_t> ticket{0};  // generation << 32 | chunks not yet claimed
    std::atomic<uint32_t> done{0};
    std::atomic<int32_t> seats{0};    // workers that may still join
    std::atomic<bool> taken{false};   // by a caller
    uint64_t chunks = 0;
    Body body = nullptr;
    void* context = nullptr;
  };
  static constexpr int kJobs = 16;

  void StartWorkers();
  void Work(uint32_t number);
  bool HelpSomebody();
  static bool ClaimAndRun(Job& job);

  const int workers_wanted_;
  std::atomic<bool> started_{false};
  std::atomic<bool> stop_{false};
  std::atomic<uint32_t> epoch_{0};     // grows with every published job
  std::atomic<int32_t> sleepers_{0};
  Job jobs_[kJobs];
  std::vector<std::thread> workers_;
};

// Threads that this process may use: its affinity within its control group's quota; at least 1.
int UsableThreads();

}  // namespace mge
