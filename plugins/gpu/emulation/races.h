// SPDX-License-Identifier: Apache-2.0
// The race checker of test builds (MGE_GPU_RACES, races.cc): kernels are compiled with -fsanitize=thread and linked
// with a runtime of our own, which knows blocks, threads and barriers of the emulated machine. Elsewhere these hooks
// vanish.
//
// A race: two accesses to the same byte, one of them a write, by different threads of one launch, with no barrier (or
// operation of their warp) between them; or by threads of different blocks. Atomic operations are not seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mge::gpu::races {

#ifdef MGE_GPU_RACES
// From the last BeginLaunch on; text tells of the first.
uint64_t Count();
const std::string& Text();

void BeginLaunch(uint32_t warp, const void* stack_top);  // the calling thread's stack below is its own
void EndLaunch();
void BeginBlock(uint64_t block);
void Barrier();                     // of the whole block
void WarpBarrier(uint32_t thread);  // of the thread's warp
void Thread(uint32_t thread);       // runs from now on
// Where shared memory lies (it is another one in every block), and what belongs to the threads alone until it is freed.
void SharedMemory(const void* begin, size_t bytes);
void PrivateMemory(const void* begin, size_t bytes);
void PrivateMemoryFreed(const void* begin);
#else
inline void BeginLaunch(uint32_t, const void*) {}
inline void EndLaunch() {}
inline void BeginBlock(uint64_t) {}
inline void Barrier() {}
inline void WarpBarrier(uint32_t) {}
inline void Thread(uint32_t) {}
inline void SharedMemory(const void*, size_t) {}
inline void PrivateMemory(const void*, size_t) {}
inline void PrivateMemoryFreed(const void*) {}
#endif

}  // namespace mge::gpu::races
