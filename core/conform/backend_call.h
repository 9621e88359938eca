// SPDX-License-Identifier: Apache-2.0
// Calls of the backend. Their names are in memory that a child process shares with its parent: after a crash or a hang, the
// parent can name the call. A call must leave the floating-point modes of its thread unchanged, which belong to the host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mge::conform {

// The calls in progress in a child process, one object per child.
class CallBoard {
 public:
  CallBoard();  // must be created in the parent before the child is forked
  ~CallBoard();
  CallBoard(const CallBoard&) = delete;
  CallBoard& operator=(const CallBoard&) = delete;
  void Serve() const;         // called in the child: its calls are recorded here
  std::string Calls() const;  // returns "launching, waiting on a queue", or "" if there are none

 private:
  friend class Within;
  struct Places;
  static Places* served_;  // the places of this process if it is a child, else NULL
  Places* places_;         // NULL if there was not enough memory; then no call is recorded
};

// The rounding direction and the handling of subnormal numbers in a thread.
struct ThreadModes {
  int rounding = 0;  // the value of fegetround()
  uint32_t sse = 0;  // control bits of MXCSR; 0 on other processors
  uint16_t x87 = 0;  // x87 control word; 0 on other processors
  bool operator==(const ThreadModes&) const = default;
};

// A scope in which this thread runs code of the backend. Allocates no memory. At its end, restores changed floating-point
// modes and records the change for TakeModeChange().
class Within {
 public:
  explicit Within(std::string_view call);
  ~Within();
  Within(const Within&) = delete;
  Within& operator=(const Within&) = delete;

 private:
  const bool before_;
  int place_ = -1;
  const std::string_view call_;
  const ThreadModes modes_;
};

// Returns whether this thread is in such a scope.
bool InBackendNow();

// Calls f(args...), which must only call the backend.
template <typename F, typename... Args>
auto InBackend(std::string_view call, F&& f, Args&&... args) {
  Within within(call);
  return f(std::forward<Args>(args)...);
}

// Returns the first change of modes since the last call, in any thread, as a sentence, or "". Thread-safe.
std::string TakeModeChange();

}  // namespace mge::conform
