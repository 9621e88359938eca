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

// Begins to copy 16 bytes from memory to shared memory, or to write zeros if `inside` is false. Both addresses are multiples
// of 16; that of memory may be any if `inside` is false. The thread must wait for the copy before it ends.
GPU_DEVICE void CopyAsync(void* to, const void* from, bool inside, [[maybe_unused]] int thread) {
#if defined(GPU_EMULATED)
  // The bytes arrive when the thread waits. Until then the place has none that may be read.
  *static_cast<CopyUnit*>(to) = {~0u, ~0u, ~0u, ~0u};
  emulation::BeginCopy(static_cast<uint32_t>(thread), to, inside ? from : nullptr);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(inside ? 16 : 0)
               : "memory");
#else
  *static_cast<CopyUnit*>(to) = inside ? *static_cast<const CopyUnit*>(from) : CopyUnit{};
#endif
}

// Makes the copies that the thread has begun since the last call a group, which may be empty.
GPU_DEVICE void CommitCopies([[maybe_unused]] int thread) {
#if defined(GPU_EMULATED)
  emulation::CommitCopies(static_cast<uint32_t>(thread));
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

#if defined(GPU_EMULATED)
GPU_DEVICE void EndCopies(int thread, uint64_t newest) {
  for (emulation::Copy copy; emulation::EndCopy(static_cast<uint32_t>(thread), newest, &copy);) {
    *static_cast<CopyUnit*>(copy.to) = copy.from ? *static_cast<const CopyUnit*>(copy.from) : CopyUnit{};
  }
}
#endif

// Wait for the copies that the thread has begun: all of them, or those of all groups but the newest kNewest ones. Other threads
// may read the bytes behind the next barrier.
GPU_DEVICE void AwaitCopies([[maybe_unused]] int thread) {
#if defined(GPU_EMULATED)
  EndCopies(thread, emulation::kNoGroup);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}
template <int kNewest>
GPU_DEVICE void AwaitCopiesBefore([[maybe_unused]] int thread) {
#if defined(GPU_EMULATED)
  EndCopies(thread, kNewest);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewest) : "memory");
#endif
}

}  // namespace mge::gpu
