// SPDX-License-Identifier: Apache-2.0
// Copies from memory to shared memory that run while the thread computes: cp.async of devices of capability 8.0 (PTX ISA
// 8.5, section 9.7.9.25, "Asynchronous copy"). Older devices copy at once. Included by kernels only.
#pragma once

#include "plugins/gpu/port.h"

namespace mge::gpu {

// 16 bytes of any type.
struct alignas(16) [[gnu::may_alias]] CopyUnit {
  uint32_t words[4];
};

#if defined(GPU_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
constexpr bool kCopiesRun = true;  // whether copies run in the background
#else
constexpr bool kCopiesRun = false;
#endif

// Begins to copy 16 bytes from memory to shared memory. Both addresses are multiples of 16. The thread must wait for the
// copy before it ends.
GPU_DEVICE void CopyAsync(void* to, const void* from, [[maybe_unused]] int thread) {
#if defined(GPU_EMULATED)
  // The bytes arrive when the thread waits. Until then the place has none that may be read.
  *static_cast<CopyUnit*>(to) = {~0u, ~0u, ~0u, ~0u};
  emulation::BeginCopy(static_cast<uint32_t>(thread), to, from);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
#else
  *static_cast<CopyUnit*>(to) = *static_cast<const CopyUnit*>(from);
#endif
}

// Waits for the copies that the thread has begun. Other threads may read the bytes behind the next barrier.
GPU_DEVICE void AwaitCopies([[maybe_unused]] int thread) {
#if defined(GPU_EMULATED)
  for (emulation::Copy copy; emulation::EndCopy(static_cast<uint32_t>(thread), &copy);) {
    *static_cast<CopyUnit*>(copy.to) = *static_cast<const CopyUnit*>(copy.from);
  }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace mge::gpu
