// SPDX-License-Identifier: Apache-2.0
// Threads with a stack of fixed size. The size of other threads is that of the user's limit (`ulimit -s`), which may be
// too small for nested models.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace mge {

inline constexpr size_t kStackBytes = size_t{8} << 20;

// A thread, as std::thread, with a stack of kStackBytes.
class Thread {
 public:
  Thread() = default;
  // Starts the thread, which calls body(). Throws std::system_error if the system refuses it.
  explicit Thread(absl::AnyInvocable<void()> body);
  Thread(Thread&& other) noexcept { *this = std::move(other); }
  Thread& operator=(Thread&& other) noexcept;  // this thread must not be joinable
  ~Thread();                                   // it must not be joinable

  bool joinable() const { return running_; }
  bool IsCurrent() const { return running_ && pthread_equal(handle_, pthread_self()); }  // true in the thread itself
  void join();
  void detach();

 private:
  pthread_t handle_ = {};
  bool running_ = false;
};

// Calls main(argc, argv) and returns its result. If the stack of the calling thread is limited to less than kStackBytes / 4,
// makes the call on a Thread.
int CallOnLargeStack(int (*main)(int argc, char** argv), int argc, char** argv);

}  // namespace mge
