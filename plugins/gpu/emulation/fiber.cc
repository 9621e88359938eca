// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/emulation/fiber.h"

#include <cstdint>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// Saves the registers that a function must preserve, except floating-point control words, which kernels never change.
extern "C" void mge_gpu_switch_stack(void** save, void* to);
asm(R"(
.text
.hidden mge_gpu_switch_stack
.globl mge_gpu_switch_stack
.type mge_gpu_switch_stack,@function
mge_gpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mge_gpu_switch_stack,.-mge_gpu_switch_stack
)");
#endif

namespace mge::gpu {

Fiber::Fiber(char* stack, size_t bytes, void (*entry)()) : stack_(stack), bytes_(bytes) {
#if defined(__x86_64__)
  auto** top = reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t{15});
  *--top = nullptr;  // keeps the stack aligned as after a call
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  top_ = top;
#else
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack;
  context_.uc_stack.ss_size = bytes;
  makecontext(&context_, entry, 0);
#endif
#if defined(__SANITIZE_THREAD__)
  shadow_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(__SANITIZE_THREAD__)
  if (stack_) __tsan_destroy_fiber(shadow_);
#endif
}

#if defined(__SANITIZE_ADDRESS__)
namespace {
thread_local Fiber* left = nullptr;  // the fiber that this thread left in its last switch

// Completes a switch for the sanitizer. Records the stack of the calling thread when it is left for the first time.
void Finish(void* shadow, const void*& stack, size_t& bytes) {
  const void* old_stack;
  size_t old_bytes;
  __sanitizer_finish_switch_fiber(shadow, &old_stack, &old_bytes);
  if (!stack) {
    stack = old_stack;
    bytes = old_bytes;
  }
}
}  // namespace
#endif

void Fiber::Switch(Fiber& from, Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
  left = &from;
  __sanitizer_start_switch_fiber(&from.shadow_, to.stack_, to.bytes_);
#elif defined(__SANITIZE_THREAD__)
  from.shadow_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(to.shadow_, 0);
#endif
#if defined(__x86_64__)
  mge_gpu_switch_stack(&from.top_, to.top_);
#else
  swapcontext(&from.context_, &to.context_);
#endif
#if defined(__SANITIZE_ADDRESS__)
  Finish(from.shadow_, left->stack_, left->bytes_);
#endif
}

void Fiber::Entered() {
#if defined(__SANITIZE_ADDRESS__)
  Finish(nullptr, left->stack_, left->bytes_);
#endif
}

}  // namespace mge::gpu
