// SPDX-License-Identifier: Apache-2.0
#include "core/engine/queue_limits.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace mge {
namespace {

constexpr std::chrono::milliseconds kLookSlice{1};  // the interval at which enqueued runs are looked at

}  // namespace

bool QueueLimits::Permits::TryAcquire() {
  int taken = taken_.load();
  while (taken < limit_) {
    if (taken_.compare_exchange_weak(taken, taken + 1)) return true;
  }
  return false;
}

QueueLimits::Permits& QueueLimits::Of(const std::string& device, Kind kind) {
  std::lock_guard lock(mutex_);
  auto [at, is_new] = permits_.try_emplace(device);
  for (size_t k = 0; is_new && k < limits_.size(); ++k) at->second[k].limit_ = limits_[k];
  return at->second[kind];
}

// A run that waits first announces itself, then looks at the count. Release() does both in the other order, so one of them sees
// the other.
absl::Status QueueLimits::Acquire(Permits& permits, const StopControl& stop) {
  ++waiting_;
  absl::Cleanup end = [&] { --waiting_; };
  while (!permits.TryAcquire()) {
    MGE_RETURN_IF_ERROR(stop.CheckStop());
    std::unique_lock lock(mutex_);
    std::vector<std::shared_ptr<EnqueuedRun>> runs = Runs();
    lock.unlock();
    for (const std::shared_ptr<EnqueuedRun>& run : runs) run->EndIfOver();
    const std::chrono::milliseconds slice = runs.empty() ? kStopSlice : kLookSlice;
    runs.clear();  // without the lock: the last reference to a run ends it
    lock.lock();
    if (permits.taken_.load() >= permits.limit_) released_.wait_for(lock, slice);
  }
  return absl::OkStatus();
}

void QueueLimits::Release(Permits& permits) {
  --permits.taken_;
  if (waiting_.load() == 0) return;
  { std::lock_guard lock(mutex_); }  // after this, a run that has looked at the count waits
  released_.notify_all();
}

void QueueLimits::Add(std::weak_ptr<EnqueuedRun> run) {
  std::vector<std::shared_ptr<EnqueuedRun>> alive;  // released without the lock: the last reference to a run ends it
  std::lock_guard lock(mutex_);
  alive = Runs();  // forgets the runs that have gone
  runs_.push_back(std::move(run));
}

std::vector<std::shared_ptr<EnqueuedRun>> QueueLimits::Runs() {
  std::vector<std::shared_ptr<EnqueuedRun>> out;
  std::erase_if(runs_, [&](const std::weak_ptr<EnqueuedRun>& run) {
    std::shared_ptr<EnqueuedRun> alive = run.lock();
    if (!alive) return true;
    out.push_back(std::move(alive));
    return false;
  });
  return out;
}

QueueLimits::Kind KindOf(const PlanQueue& queue) {
  return queue.kind == MGE_QUEUE_COMPUTE ? QueueLimits::kCompute : QueueLimits::kCopy;
}

// Vector clocks, as in core/plan/segments.h: for each queue, the number of its segments that have ended.
std::vector<size_t> SharedPermits(const Plan& plan) {
  using Clock = std::vector<int>;
  const size_t count = plan.queues.size();
  auto join = [&](Clock& clock, const Clock& other) {
    for (size_t q = 0; q < count; ++q) clock[q] = std::max(clock[q], other[q]);
  };
  Clock host(count, 0), total(count, 0);
  std::vector<Clock> known(count, host), first(count);           // by queue
  std::map<std::pair<int32_t, uint64_t>, const Clock*> signals;  // the clock at a signal
  std::deque<Clock> ends;
  for (const Segment& segment : plan.segments) {
    for (const FencePoint& point : segment.host_waits) join(host, *signals.at({point.queue, point.value}));
    if (segment.queue == kCallingThread) continue;
    const auto q = static_cast<size_t>(segment.queue);
    join(known[q], host);
    for (const FencePoint& point : segment.waits) join(known[q], *signals.at({point.queue, point.value}));
    if (total[q] == 0) first[q] = known[q];
    known[q][q] = ++total[q];
    if (segment.signal) signals[{segment.queue, segment.signal}] = &ends.emplace_back(known[q]);
  }
  std::vector<size_t> out(count), latest(count);  // latest: by queue, the last one that uses its permit
  for (size_t q = 0; q < count; ++q) {
    out[q] = latest[q] = q;
    for (size_t other = 0; other < q && out[q] == q; ++other) {
      const PlanQueue &a = plan.queues[other], &b = plan.queues[q];
      const size_t before = latest[other];
      const bool same = out[other] == other && a.device == b.device && KindOf(a) == KindOf(b);
      if (!same || first[q].empty() || first[q][before] < total[before]) continue;
      out[q] = other;
      latest[other] = q;
    }
  }
  return out;
}

}  // namespace mge
