// SPDX-License-Identifier: Apache-2.0
// How far a long piece of work is, for an application that shows it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

namespace mge {

// Receives the progress of one session: its loading and its planning. Thread-safe; calls the callback for one stage at a time.
class Progress {
 public:
  using Callback = std::function<void(std::string_view stage, uint64_t done, uint64_t total)>;
  explicit Progress(Callback callback) : callback_(std::move(callback)) {}

 private:
  friend class ProgressOfStage;
  std::mutex mutex_;
  Callback callback_;
};

// One stage of the work. Several threads may advance it.
class ProgressOfStage {
 public:
  // `to` may be nullptr: nothing is reported. Nor is a stage with nothing to do.
  ProgressOfStage(Progress* to, std::string_view stage, uint64_t total) : to_(to), stage_(stage), total_(total) {
    Advance(0);
  }
  void Advance(uint64_t by = 1) {
    if (!to_ || total_ == 0) return;
    std::lock_guard lock(to_->mutex_);
    done_ += by;
    to_->callback_(stage_, done_, total_);
  }

 private:
  Progress* const to_;
  const std::string_view stage_;
  const uint64_t total_;
  uint64_t done_ = 0;  // guarded by to_->mutex_
};

}  // namespace mge
