// SPDX-License-Identifier: Apache-2.0
// The use of an object by one thread.
#pragma once

#include <atomic>

#include "core/base/errors.h"

namespace mge {

// Marks the object as busy while it lives. If it already was, status() is an error.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& busy) : busy_(busy), mine_(!busy.exchange(true, std::memory_order_acquire)) {}
  ~Turn() {
    if (mine_) busy_.store(false, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  absl::Status status() const {
    if (mine_) return absl::OkStatus();
    return Fail(errors::kApiMisuse, "two threads use one generator at the same time",
                {.what = "its calls share a cache", .fix = "create a generator for each thread"});
  }

 private:
  std::atomic<bool>& busy_;
  const bool mine_;
};

}  // namespace mge
