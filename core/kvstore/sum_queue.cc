// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/sum_queue.h"

#include <chrono>

#include "core/base/exception.h"

namespace mge {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

SumQueue::~SumQueue() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void SumQueue::Submit(uint32_t key, Job job) {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = Thread([this] { Run(); });
  states_[key] = {};
  jobs_.emplace_back(key, std::move(job));
  changed_.notify_all();
}

absl::Status SumQueue::Wait(uint32_t key) {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  const State& state = states_[key];
  changed_.wait(lock, [&] { return state.ended; });
  waited_us_ += MicrosecondsSince(begin);
  return state.status;
}

std::pair<double, double> SumQueue::Times() const {
  std::lock_guard lock(mutex_);
  return {busy_us_, waited_us_};
}

void SumQueue::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || !jobs_.empty(); });
    if (stops_) return;
    const auto [key, job] = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    const auto begin = Clock::now();
    absl::Status status = NoThrow(job);
    const double took = MicrosecondsSince(begin);
    lock.lock();
    busy_us_ += took;
    states_[key] = {true, std::move(status)};
    changed_.notify_all();
  }
}

}  // namespace mge
