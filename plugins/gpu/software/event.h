// SPDX-License-Identifier: Apache-2.0
// Event: a counter that streams signal and wait for. It carries the failure of the work before the signal.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "mge/types.h"

namespace mge::software {

using Clock = std::chrono::steady_clock;

// The reason why work on a device was not done. Events pass it from stream to stream.
struct Failure {
  Failure(mge_code c, std::string why) : code(c), text(std::move(why)) {}
  const mge_code code;
  const std::string text;
  // The time when a host thread first received the failure. Work enqueued on a stream after that runs again.
  std::atomic<Clock::rep> told{Clock::duration::max().count()};
};
using FailurePtr = std::shared_ptr<Failure>;

// A counter that may fail. A failed event stays failed: values that it had reached stay reached, all others return the
// failure. [any]
class Event {
 public:
  // The result of a wait: reached, failed (`failure` is set), or neither.
  struct Answer {
    bool reached = false;
    FailurePtr failure = nullptr;
  };

  Event() = default;
  ~Event();  // runs the remaining actions
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool IsOver(uint64_t value) const;  // reached or failed
  void Signal(uint64_t value);
  void Fail(const FailurePtr& failure);  // only the first failure is stored
  // Blocks a host thread (UINT64_MAX: without a limit). If it returns a failure, marks the failure as received by the host.
  Answer HostWait(uint64_t value, uint64_t timeout_ns);
  // Blocks a stream until the event is reached or failed, or `give_up` is set and Wake() is called.
  Answer Wait(uint64_t value, const std::atomic<bool>& give_up);
  void Wake();
  using Actions = std::list<std::pair<uint64_t, std::function<void()>>>;
  // Runs the actions when the event is reached or failed, in the thread that signals it, or at once if it already is. The
  // caller allocates the list, so this function allocates nothing. It overwrites the values in the list.
  void Then(uint64_t value, Actions actions) noexcept;

 private:
  bool Over(uint64_t value) const { return value_ >= value || failure_; }
  Actions TakeDue();
  Answer Now(uint64_t value) const { return value_ >= value ? Answer{true} : Answer{false, failure_}; }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_ = 0;
  FailurePtr failure_;
  Actions actions_;
};

}  // namespace mge::software
