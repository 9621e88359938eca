// SPDX-License-Identifier: Apache-2.0
// Finds out whether other programs occupy the processors, so that loops should not be shared with other threads.
//
// If there are more runnable threads than processors, the system suspends each of them for a time slice now and then. A
// worker that is suspended inside of a chunk delays the loop by that slice, which is many times the length of a chunk.
// Algorithm:
//   - Contention begins when a caller waits for a worker and one of the two is not running: it used a processor for less than
//     half of that time.
//   - It ends when a caller has used some processor time (the probation) and was hardly suspended itself. A thread that shares
//     its processor is suspended every 3 to 6 ms. Contention does not end while the process is idle, when nothing can be
//     learned.
//   - If it returns soon, the probation doubles up to a limit, so that failed attempts cost a few percent at most.
#pragma once

#include <atomic>
#include <cstdint>

namespace mge {

// The use of a processor by one thread.
struct ThreadUsage {
  int64_t processor_ns = 0;
  int64_t suspensions = 0;  // involuntary context switches
  static ThreadUsage OfThisThread();
};

// Safe on any thread.
class Contention {
 public:
  static constexpr int64_t kMinProbationNs = 10'000'000;
  static constexpr int64_t kMaxProbationNs = 160'000'000;
  static constexpr int64_t kNsPerSuspension = 20'000'000;  // a free processor suspends a thread less often

  bool present() const { return present_.load(std::memory_order_relaxed); }

  // Reports that a caller waited for a worker for `waited_ns`, in which one of the two used a processor for `used_ns`.
  // Returns whether this shows contention.
  bool ReportWait(int64_t waited_ns, int64_t used_ns, int64_t now_ns);

  // Returns whether it is time to call ReportUsage(). Costs little.
  bool WantsUsage(int64_t now_ns) const { return now_ns >= next_check_ns_.load(std::memory_order_relaxed); }
  // Reports the usage of the calling thread, which may end the contention.
  void ReportUsage(ThreadUsage now, int64_t now_ns);

 private:
  std::atomic<bool> present_{false};
  std::atomic<int64_t> next_check_ns_{0};
  std::atomic<int64_t> ended_ns_{0};  // when contention ended last
  std::atomic<int64_t> probation_ns_{kMinProbationNs};
  std::atomic<uint64_t> episode_{0};  // number of times that contention began
};

}  // namespace mge
