// SPDX-License-Identifier: Apache-2.0
// A fiber: a thread of execution with its own stack. The program switches between fibers explicitly.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace mge::gpu {

// A fiber. One thread at a time uses it.
class Fiber {
 public:
  // Represents the calling thread. Use it as `from` in the first switch.
  Fiber() = default;
  // Creates a fiber that calls entry() on [stack, stack + bytes). entry() must not return. Does not own the stack.
  Fiber(char* stack, size_t bytes, void (*entry)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Switches from the running fiber `from` to `to`. Returns when another switch goes back to `from`.
  static void Switch(Fiber& from, Fiber& to);
  // Must be the first call in a fiber's entry().
  static void Entered();

 private:
#if defined(__x86_64__)
  void* top_ = nullptr;
#else
  ucontext_t context_ = {};
#endif
  // Data for the sanitizers.
  const void* stack_ = nullptr;
  size_t bytes_ = 0;
  void* shadow_ = nullptr;
};

}  // namespace mge::gpu
