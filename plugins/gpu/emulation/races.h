// SPDX-License-Identifier: Apache-2.0
// The race checker of test builds (MGE_GPU_RACES, races.cc). Kernels are compiled with -fsanitize=thread and linked with
// this runtime instead of libtsan. It knows the blocks, threads and barriers of the emulated machine. In other builds these
// functions are empty.
//
// A race is two accesses to the same byte, at least one a write, by different threads of one launch, without a barrier (or
// an operation of their common warp) between them. Accesses by threads of different blocks always race. Atomic operations
// are not checked.
//
// Algorithm: a hash table stores for each byte the last writer and the last reader, with their block, thread and number of
// barriers passed. Each access is compared with them. The table has a fixed size; new bytes replace old ones, so a race can
// be missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mge::gpu::races {

#ifdef MGE_GPU_RACES
// Return the number of races since the last BeginLaunch, and the description of the first.
uint64_t Count();
const std::string& Text();

void BeginLaunch(uint32_t warp, const void* stack_top);  // the calling thread's stack below stack_top is private
void EndLaunch();
void BeginBlock(uint64_t block);
void Barrier();                     // all threads of the block pass it
void WarpBarrier(uint32_t thread);  // the thread's warp passes it
void Thread(uint32_t thread);       // `thread` runs from this call on
// Register shared memory, which is new in every block, and memory that is private to one thread until it is freed.
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
