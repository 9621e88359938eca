// SPDX-License-Identifier: Apache-2.0
// CUDA's built-in names and the GPU_ macros of port.h, implemented for a C++ compiler. Included by port.h only.
#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

namespace mge::gpu::emulation {

struct Index3 {
  uint32_t x, y, z;
};

// The state of the running thread. The emulator updates it when it switches threads.
struct State {
  Index3 thread, block, block_size, grid;
  uint32_t linear;       // index of the thread in its block
  uint32_t shared_used;  // bytes of shared memory that the thread has declared so far
  uint32_t warp;         // threads per warp
  bool whole_reductions;
};
// constinit: needs no dynamic initialisation, also when used from another library.
extern constinit thread_local State state __attribute__((tls_model("initial-exec")));

// Begins the next thread of the block on this fiber. Returns false if none is left.
bool NextThread();
void Barrier(const char* file, int line);
enum class WarpOp : uint8_t { kShuffleXor, kShuffleDown, kShuffle, kBallot };
uint64_t Warp(WarpOp op, uint64_t bits, int argument, const char* file, int line);
// Returns the memory of a static shared array. Threads must declare their arrays in the same order. SharedDynamic() returns
// the dynamic part.
void* SharedStatic(size_t bytes, const char* name);
void* SharedDynamic();
// Returns memory for the state that each thread of a phased kernel keeps between phases.
void* PhaseState(size_t bytes);
void BeginPhase(int thread);
// A block reduction has one 8-byte slot per thread and one for the result. LastOfReduction() returns whether all other
// threads wait at the barrier that follows.
uint64_t* ReductionSlots();
bool LastOfReduction();
void FlipReduction();
// A copy from memory to shared memory that a thread has begun; from = nullptr writes zeros. CommitCopies() makes those begun
// since its last call a group. EndCopy() returns a copy of a group that is not one of the `newest` ones, or with kNoGroup any
// copy, and forgets it. It returns false if there is none.
struct Copy {
  void* to;
  const void* from;
  uint64_t group = 0;
};
inline constexpr uint64_t kNoGroup = UINT64_MAX;
void BeginCopy(uint32_t thread, void* to, const void* from);
void CommitCopies(uint32_t thread);
bool EndCopy(uint32_t thread, uint64_t newest, Copy* copy);

// A kernel of this binary. The linker lists all of them.
struct Kernel {
  const char* name;
  uint32_t max_threads;
  uint32_t args_bytes;
  void (*run)(const void* args);
  bool phased;
};

template <typename T>
T Warp(WarpOp op, T v, int argument, const char* file, int line) {
  static_assert(sizeof(T) <= 8);
  uint64_t bits = 0;
  memcpy(&bits, &v, sizeof(T));
  bits = Warp(op, bits, argument, file, line);
  memcpy(&v, &bits, sizeof(T));
  return v;
}

// Atomics are real atomics, because several threads may run blocks. They are hidden from the race checker.
#define GPU_EMULATED_ATOMIC __attribute__((no_sanitize("thread"))) inline
template <typename T, typename F>
GPU_EMULATED_ATOMIC T Exchange(T* p, F next) {
  T before = *p, after;
  do after = next(before);
  while (!__atomic_compare_exchange(p, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}

}  // namespace mge::gpu::emulation

#define GPU_EMULATED 1
#define GPU_WARP static_cast<int>(::mge::gpu::emulation::state.warp)
#define threadIdx (::mge::gpu::emulation::state.thread)
#define blockIdx (::mge::gpu::emulation::state.block)
#define blockDim (::mge::gpu::emulation::state.block_size)
#define gridDim (::mge::gpu::emulation::state.grid)
#define GPU_DEVICE inline __attribute__((always_inline))
#define GPU_UNROLL _Pragma("GCC unroll 16")
#define GPU_UNROLL_REGISTERS
#define GPU_ROLLED
#define GPU_MIN_BLOCKS(count)
#define GPU_BARRIER() ::mge::gpu::emulation::Barrier(__FILE__, __LINE__)
#define GPU_SHARED(T, name, dims)    \
  using name##_shared_type = T dims; \
  name##_shared_type& name =         \
      *static_cast<name##_shared_type*>(::mge::gpu::emulation::SharedStatic(sizeof(name##_shared_type), #name))
#define GPU_DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(::mge::gpu::emulation::SharedDynamic())
#define GPU_STATE(T, name, threads, dims) \
  typedef T name##_one_thread dims;       \
  name##_one_thread* name =               \
      static_cast<name##_one_thread*>(::mge::gpu::emulation::PhaseState(sizeof(name##_one_thread) * (threads)))
#define GPU_OWN(name, thread) name[thread]
#ifdef MGE_GPU_RACES
#define GPU_BEGIN_PHASE(thread) ::mge::gpu::emulation::BeginPhase(thread)
#else
#define GPU_BEGIN_PHASE(thread) (void)0
#endif
#define GPU_PHASE(thread)                                                                            \
  for (int thread = 0, thread##_end = static_cast<int>(blockDim.x); thread < thread##_end; ++thread) \
    if (GPU_BEGIN_PHASE(thread); true)

#define GPU_WARP_PHASE(first) \
  for (int first = 0, first##_end = static_cast<int>(blockDim.x); first < first##_end; first += 32)
#define GPU_LANES(name, first) ((name) + (first))

// A pointer to each kernel is placed in its own section. The linker creates the list, so no code runs before main.
#define GPU_ENTRY(name, max_threads, Args, phased, ...)                                                                  \
  static void name##_run(const void* gpu_args) {                                                                         \
    const Args& args = *static_cast<const Args*>(gpu_args);                                                              \
    __VA_ARGS__                                                                                                          \
  }                                                                                                                      \
  static constexpr ::mge::gpu::emulation::Kernel name##_kernel = {#name, max_threads, sizeof(Args), name##_run, phased}; \
  __attribute__((section("mge_gpu_kernels"), used)) static const ::mge::gpu::emulation::Kernel* const name##_entry =     \
      &name##_kernel;
#define GPU_KERNEL(name, max_threads, Args, ...) \
  GPU_ENTRY(                                     \
      name, max_threads, Args, false, while (::mge::gpu::emulation::NextThread()) { __VA_ARGS__(args); })
#define GPU_PHASED_KERNEL(name, max_threads, Args, ...) GPU_ENTRY(name, max_threads, Args, true, __VA_ARGS__(args);)

namespace mge::gpu {

template <typename T>
GPU_DEVICE T ShuffleXor(T v, int mask, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return emulation::Warp(emulation::WarpOp::kShuffleXor, v, mask, file, line);
}
template <typename T>
GPU_DEVICE T ShuffleDown(T v, int delta, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return emulation::Warp(emulation::WarpOp::kShuffleDown, v, delta, file, line);
}
template <typename T>
GPU_DEVICE T Shuffle(T v, int lane, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return emulation::Warp(emulation::WarpOp::kShuffle, v, lane, file, line);
}
GPU_DEVICE uint64_t Ballot(bool p, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return emulation::Warp(emulation::WarpOp::kBallot, static_cast<uint64_t>(p), 0, file, line);
}

}  // namespace mge::gpu

template <typename T>
GPU_EMULATED_ATOMIC T atomicAdd(T* p, T v) {
  return ::mge::gpu::emulation::Exchange(p, [v](T old) { return static_cast<T>(old + v); });
}
GPU_EMULATED_ATOMIC uint32_t atomicCAS(uint32_t* p, uint32_t expected, uint32_t desired) {
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
