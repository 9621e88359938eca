// SPDX-License-Identifier: Apache-2.0
// Calls of the backend. Their names are in memory that a child process shares with its parent: after a crash or a hang, the
// parent can name the call. A call must leave the floating-point modes of its thread unchanged, which belong to the host.
#pragma once

#include <cfenv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace mge::conform {

// The calls in progress in a child process, in memory that it shares with its parent.
struct CallBoard {
  static std::shared_ptr<CallBoard> Create();  // must be called in the parent before the child is forked
  std::string Calls() const;                   // returns "launching, waiting on a queue", or "" if there are none

  static constexpr unsigned kThreads = 16;  // threads that call at the same time
  char calls[kThreads][100];                // "": the thread is not in the backend
};

// Records the calls of this process on the board.
void RecordCallsOn(CallBoard& board);

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
  const std::string_view call_;
  std::fenv_t modes_;
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
