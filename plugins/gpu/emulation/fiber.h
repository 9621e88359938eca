// SPDX-License-Identifier: Apache-2.0
// A thread of execution with a stack of its own, switched to by hand.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace mge::gpu {

class Fiber {
 public:
  // The calling thread itself, before its first switch away.
  Fiber() = default;
  // Will call entry(), which never returns, on [stack, stack + bytes).
  Fiber(char* stack, size_t bytes, void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves `from`, which runs now, for `to`; returns when somebody switches back.
  static void Switch(Fiber& from, Fiber& to);
  // To be called first by a fiber's entry.
  static void Entered();

 private:
#if defined(__x86_64__)
  void* top_ = nullptr;
#else
  ucontext_t context_ = {};
#endif
  // For the sanitizers.
  const void* stack_ = nullptr;
  size_t bytes_ = 0;
  void* shadow_ = nullptr;
};

}  // namespace mge::gpu
