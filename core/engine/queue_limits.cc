// SPDX-License-Identifier: Apache-2.0
#include "core/engine/queue_limits.h"

#include <utility>

namespace mge {
namespace {

constexpr std::chrono::milliseconds kLookSlice{1};  // the interval at which enqueued runs are looked at

}  // namespace

bool QueueLimits::TryTake(const std::string& device, Kind kind) {
  std::lock_guard lock(mutex_);
  int& taken = taken_[device][kind];
  if (taken >= limits_[kind]) return false;
  ++taken;
  return true;
}

absl::Status QueueLimits::Take(const std::string& device, Kind kind, const StopControl& stop) {
  while (!TryTake(device, kind)) {
    MGE_RETURN_IF_ERROR(stop.CheckStop());
    std::unique_lock lock(mutex_);
    std::vector<std::shared_ptr<EnqueuedRun>> runs = Runs();
    lock.unlock();
    for (const std::shared_ptr<EnqueuedRun>& run : runs) run->EndIfOver();
    const std::chrono::milliseconds slice = runs.empty() ? kStopSlice : kLookSlice;
    runs.clear();  // without the lock: the last reference to a run ends it
    lock.lock();
    if (taken_[device][kind] >= limits_[kind]) given_.wait_for(lock, slice);
  }
  return absl::OkStatus();
}

void QueueLimits::Give(const std::string& device, Kind kind) {
  {
    std::lock_guard lock(mutex_);
    --taken_[device][kind];
  }
  given_.notify_all();
}

void QueueLimits::Add(std::weak_ptr<EnqueuedRun> run) {
  std::lock_guard lock(mutex_);
  (void)Runs();  // forgets the runs that have gone
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

}  // namespace mge
