// SPDX-License-Identifier: Apache-2.0
// The threads of one run on several replicas.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/base/thread.h"
#include "core/plugin/stop.h"
#include "fmt/format.h"

namespace mge {

// The threads of one run, one per replica.
class Crew {
 public:
  explicit Crew(size_t replicas) : results_(replicas) {}
  ~Crew() { Join(); }

  // Starts the thread of the next replica.
  void Start(std::function<absl::Status()> run) {
    const size_t replica = threads_.size();
    threads_.emplace_back([this, replica, run = std::move(run)] { End(replica, NoThrow(run)); });
  }
  // Waits until all replicas have called it, or one has ended before. Returns whether all have.
  bool AllReady() {
    std::unique_lock lock(mutex_);
    ++ready_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ready_ == results_.size() || ended_ > 0 || stopped_; });
    return ready_ == results_.size();
  }
  // Ends the waits of AllReady().
  void Stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  // Waits for the next end of a replica, but not longer than kStopSlice. Returns whether replicas are left.
  bool Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kStopSlice, [&] { return ended_ == results_.size() || failed(); });
    return ended_ < results_.size();
  }
  void Join() {
    for (Thread& thread : threads_) thread.join();
    threads_.clear();
  }
  bool HasFailed() {
    std::lock_guard lock(mutex_);
    return failed();
  }
  // Returns the first failure that is not a consequence of another one. Only after Join().
  absl::Status Failure(const std::vector<std::string>& devices) const {
    if (failures_.empty()) return absl::OkStatus();
    // A rank that is stopped, or that waits for one that has failed.
    auto follows = [&](size_t r) {
      return absl::IsCancelled(results_[r]) || ErrorId(results_[r]) == errors::kDeviceUnusable.id;
    };
    const auto cause = std::ranges::find_if_not(failures_, follows);
    const size_t replica = cause == failures_.end() ? failures_.front() : *cause;
    return AddWhere(results_[replica], fmt::format("replica {} on {}", replica, devices[replica]));
  }

 private:
  bool failed() const { return !failures_.empty(); }
  void End(size_t replica, absl::Status status) {
    std::lock_guard lock(mutex_);
    if (!status.ok()) failures_.push_back(replica);
    results_[replica] = std::move(status);
    ++ended_;
    changed_.notify_all();
  }

  std::vector<Thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t ready_ = 0, ended_ = 0;  // guarded by mutex_, as all below
  bool stopped_ = false;
  std::vector<absl::Status> results_;  // by replica
  std::vector<size_t> failures_;       // in the order of time
};

}  // namespace mge
