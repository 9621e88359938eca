// SPDX-License-Identifier: Apache-2.0
#include "core/engine/contention.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>

namespace mge {
namespace {

constexpr int64_t kCheckIntervalNs = 2'000'000;
constexpr int64_t kSoonFactor = 20;  // contention that returns within this many probations has returned soon

// The usage of this thread when its probation began.
struct Probation {
  const Contention* owner = nullptr;
  uint64_t episode = 0;
  ThreadUsage begin;
};
thread_local Probation probation;

}  // namespace

ThreadUsage ThreadUsage::OfThisThread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return {time.tv_sec * 1'000'000'000 + time.tv_nsec, usage.ru_nivcsw};
}

bool Contention::ReportWait(int64_t waited_ns, int64_t used_ns, int64_t now_ns) {
  if (2 * used_ns >= waited_ns) return false;
  if (present_.exchange(true)) return true;
  const int64_t probation_ns = probation_ns_.load();
  const bool soon = now_ns - ended_ns_.load() < kSoonFactor * probation_ns;
  probation_ns_.store(soon ? std::min(2 * probation_ns, kMaxProbationNs) : kMinProbationNs);
  next_check_ns_.store(now_ns);
  episode_.fetch_add(1);
  return true;
}

void Contention::ReportUsage(ThreadUsage now, int64_t now_ns) {
  next_check_ns_.store(now_ns + kCheckIntervalNs, std::memory_order_relaxed);
  const uint64_t episode = episode_.load();
  const int64_t probation_ns = probation_ns_.load();
  const int64_t suspensions = now.suspensions - probation.begin.suspensions;
  if (probation.owner != this || probation.episode != episode || suspensions > probation_ns / kNsPerSuspension) {
    probation = {this, episode, now};
    return;
  }
  if (now.processor_ns - probation.begin.processor_ns < probation_ns) return;
  ended_ns_.store(now_ns);
  present_.store(false);
}

}  // namespace mge
