// SPDX-License-Identifier: Apache-2.0
// A lock for work of some nanoseconds, of which there is one per variable and per pool.
#pragma once

#include <atomic>
#include <thread>

namespace mge {

// A mutex of one byte (BasicLockable). A thread that does not get it looks again at once: to sleep and to be woken takes
// longer than the work of the thread that holds it. After some looks it lets other threads run, one of which may hold it.
class SpinLock {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      for (int i = 0; locked_.load(std::memory_order_relaxed); ++i) {
        if (i >= kLooks) std::this_thread::yield();
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      }
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kLooks = 100;
  std::atomic<bool> locked_{false};
};

}  // namespace mge
