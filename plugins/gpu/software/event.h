// SPDX-License-Identifier: Apache-2.0
// Event: a counter that streams signal and wait for. Each value has an outcome of its own: it was reached, or the work
// before its signal failed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "mge/plugin.hpp"
#include "plugins/gpu/fault.h"

namespace mge::software {

using Clock = std::chrono::steady_clock;

// The reason why work on a device was not done.
struct Failure {
  Failure(mge_code c, std::string why) : code(c), text(std::move(why)) {}
  const mge_code code;
  const std::string text;
};
using FailurePtr = std::shared_ptr<const Failure>;

// A counter. Its values are signalled in increasing order, each once, and a value can be waited for only after its signal
// was enqueued. [any]
class Event {
 public:
  Event() = default;
  ~Event();  // runs the remaining actions
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // Returns an error unless a signal of `value` may be enqueued: it must be larger than all before.
  Result CheckSignal(uint64_t value) const;
  // Returns an error if no signal of `value` has been enqueued, so that a wait for it would have no end.
  Result CheckWait(uint64_t value) const;
  // Records that a signal of `value` has been enqueued.
  void Announce(uint64_t value);

  // Sets the outcome of `value` and of all values before it that have none. `failure` may be null. `fault` is the copy of
  // the stream's fault word that was made in front of the signal; HostWait() checks it.
  void Signal(uint64_t value, const FailurePtr& failure, const gpu::Fault& fault);
  // Fails all values without an outcome, later ones too: the device is lost.
  void MarkLost(const FailurePtr& failure);
  // Blocks a host thread (UINT64_MAX: without a limit). Returns the failure of the value, the text of its fault,
  // MGE_DEADLINE_EXCEEDED, or the error of CheckWait().
  Result HostWait(uint64_t value, uint64_t timeout_ns);
  // Blocks a stream until the value has an outcome. A failure does not concern the stream.
  void Wait(uint64_t value);
  using Actions = std::list<std::pair<uint64_t, std::function<void()>>>;
  // Runs the actions when the value has an outcome, in the thread that signals it, or at once if it has one. The caller
  // allocates the list, so this function allocates nothing. It overwrites the values in the list.
  void Then(uint64_t value, Actions actions) noexcept;

 private:
  bool Over(uint64_t value) const { return value_ >= value || lost_; }
  void Finish(std::unique_lock<std::mutex> lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t announced_ = 0;
  uint64_t value_ = 0;  // all values up to this one have an outcome
  bool lost_ = false;
  FailurePtr failure_;     // the outcome of the values from failed_from_ on
  gpu::Fault fault_ = {};  // the same for a fault word
  uint64_t failed_from_ = 0, faulted_from_ = 0;
  Actions actions_;
};

}  // namespace mge::software
