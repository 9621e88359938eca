// SPDX-License-Identifier: Apache-2.0
// Event: a counter that streams raise and wait for, and that carries the failure of the work before it.
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

// Why work on a device did not happen. One failure travels from stream to stream through events.
struct Failure {
  Failure(mge_code c, std::string why) : code(c), text(std::move(why)) {}
  const mge_code code;
  const std::string text;
  // When a host thread was first told of it. A stream begins anew with what was enqueued after that.
  std::atomic<Clock::rep> told{Clock::duration::max().count()};
};
using FailurePtr = std::shared_ptr<Failure>;

// A failed event stays failed: values that it had reached stay reached, every other answers the failure. [any]
class Event {
 public:
  // How a wait ended: reached, failed (`failure` is set), or neither.
  struct Answer {
    bool reached = false;
    FailurePtr failure = nullptr;
  };

  Event() = default;
  ~Event();  // what was to be done then is done now
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  bool IsOver(uint64_t value) const;  // reached or failed
  void Signal(uint64_t value);
  void Fail(const FailurePtr& failure);  // the first failure stays
  // Blocks a host thread, UINT64_MAX for ever, and notes that the host was told of the failure.
  Answer HostWait(uint64_t value, uint64_t timeout_ns);
  // Blocks a stream until the event is reached or failed or `give_up` is set, after which Wake() is called.
  Answer Wait(uint64_t value, const std::atomic<bool>& give_up);
  void Wake();
  using Actions = std::list<std::pair<uint64_t, std::function<void()>>>;
  // Does them when the event is reached or failed, in the thread that raises it; at once if it is already. The list is made
  // beforehand, and this takes no memory; the values in it are replaced.
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
