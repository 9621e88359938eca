// SPDX-License-Identifier: Apache-2.0
// Hooks of the race checker (races.cc), which is part of test builds with MGE_GPU_RACES alone; elsewhere they vanish.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mge::gpu::races {

#ifdef MGE_GPU_RACES
void BeginLaunch(uint32_t warp);
void EndLaunch();
void BeginBlock(uint64_t block);
void Barrier();                     // of the whole block
void WarpBarrier(uint32_t thread);  // of the thread's warp
void Thread(uint32_t thread);       // runs from now on
// Where shared memory lies (it is another one in every block), and what belongs to the threads alone.
void SharedMemory(const void* begin, size_t bytes);
void PrivateMemory(const void* begin, size_t bytes);
#else
inline void BeginLaunch(uint32_t) {}
inline void EndLaunch() {}
inline void BeginBlock(uint64_t) {}
inline void Barrier() {}
inline void WarpBarrier(uint32_t) {}
inline void Thread(uint32_t) {}
inline void SharedMemory(const void*, size_t) {}
inline void PrivateMemory(const void*, size_t) {}
#endif

}  // namespace mge::gpu::races
