// SPDX-License-Identifier: Apache-2.0
// The common subset of CUDA and HIP C++: the only platform header of a kernel. It has a branch for nvcc, for hipcc, and for
// any C++ compiler with the emulation.
//
// Rules for kernels
// - Put GPU_SHARED at the kernel's top level, in the same order in all threads. Blocks are multiples of 64 threads.
// - All threads of a warp must execute its operations. Lane masks have 64 bits. The warp size is GPU_WARP.
// - 16-bit floats are for storage only: compute in float.
// - A kernel has one argument, a plain struct that begins with its pointers (kernels/*.h).
// - In a phased kernel, put code between barriers into GPU_PHASE, and variables that a thread keeps into GPU_STATE. The
//   emulation then runs loops instead of fibers. GPU_WARP_PHASE is for operations of 32 threads together: GPU_LANES gives
//   them the states of these threads.
// - GPU_UNROLL unrolls a loop for speed. GPU_UNROLL_REGISTERS does so only on a GPU, where the indices of arrays must be
//   constants for them to be registers; the emulation compiles faster without. GPU_ROLLED keeps a loop small that runs
//   seldom.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__) || defined(__HIP__)
#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define GPU_WARP 32
#define GPU_BY_VALUE const __grid_constant__
#else
#include <hip/hip_runtime.h>
#if defined(__AMDGCN_WAVEFRONT_SIZE)
#define GPU_WARP __AMDGCN_WAVEFRONT_SIZE
#elif defined(__HIP_DEVICE_COMPILE__)
#error "the compiler does not define __AMDGCN_WAVEFRONT_SIZE, without which reductions would be wrong"
#else
#define GPU_WARP 64  // the compilation for the host
#endif
#define GPU_BY_VALUE const
#endif
#define GPU_DEVICE __device__ __forceinline__
#define GPU_UNROLL _Pragma("unroll")
#define GPU_UNROLL_REGISTERS _Pragma("unroll")
#define GPU_ROLLED _Pragma("unroll 1")
#define GPU_BARRIER() __syncthreads()
#define GPU_SHARED(T, name, dims) __shared__ T name dims
#define GPU_DYNAMIC_SHARED(T, name)                                  \
  extern __shared__ __align__(16) unsigned char gpu_dynamic_bytes[]; \
  T* name = reinterpret_cast<T*>(gpu_dynamic_bytes)
#define GPU_STATE(T, name, threads, dims) T name dims
#define GPU_OWN(name, thread) name
#define GPU_PHASE(thread) if ([[maybe_unused]] const int thread = threadIdx.x; true)
#define GPU_WARP_PHASE(first) if ([[maybe_unused]] const int first = 0; true)
#define GPU_LANES(name, first) name
// Behind max_threads of a kernel: the compiler leaves registers for so many blocks on a multiprocessor.
#define GPU_MIN_BLOCKS(count) , count
#define GPU_KERNEL(name, max_threads, Args, ...) \
  extern "C" __global__ void __launch_bounds__(max_threads) name(GPU_BY_VALUE Args args) { __VA_ARGS__(args); }
#define GPU_PHASED_KERNEL GPU_KERNEL
#else
#include "mge/float16_bits.hpp"
#include "plugins/gpu/emulation/device.h"
#endif

namespace mge::gpu {

// Storage of 16-bit floats, the same for all three compilers.
struct f16 {
  uint16_t bits;
};
struct bf16 {
  uint16_t bits;
};

template <typename To, typename From>
GPU_DEVICE To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  union {
    From from;
    To to;
  } u;
  u.from = from;
  return u.to;
}

GPU_DEVICE float Widen(float x) { return x; }
GPU_DEVICE double Widen(double x) { return x; }
GPU_DEVICE float Widen(bf16 x) { return BitCast<float>(static_cast<uint32_t>(x.bits) << 16); }
GPU_DEVICE bf16 NarrowToBf16(float x) {  // round to nearest, ties to even
  uint32_t bits = BitCast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
#if defined(__CUDACC__)
GPU_DEVICE float Widen(f16 x) { return __half2float(__ushort_as_half(x.bits)); }
GPU_DEVICE f16 NarrowToF16(float x) { return {__half_as_ushort(__float2half_rn(x))}; }
#elif defined(__HIP__)
GPU_DEVICE float Widen(f16 x) { return static_cast<float>(BitCast<_Float16>(x.bits)); }
GPU_DEVICE f16 NarrowToF16(float x) { return {BitCast<uint16_t>(static_cast<_Float16>(x))}; }
#else
GPU_DEVICE float Widen(f16 x) { return HalfBitsToFloat(x.bits); }
GPU_DEVICE f16 NarrowToF16(float x) { return {FloatToHalfBits(x)}; }
#endif

// The type used to compute with T. Narrow<T> converts back.
template <typename T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<f16> {
  using type = float;
};
template <>
struct ComputeOf<bf16> {
  using type = float;
};
template <typename T>
using Compute = typename ComputeOf<T>::type;

template <typename T>
GPU_DEVICE T Widen(T x) {
  return x;
}
template <typename T>
struct Narrow {
  template <typename C>
  static GPU_DEVICE T Of(C x) {
    return static_cast<T>(x);
  }
};
template <>
struct Narrow<f16> {
  template <typename C>
  static GPU_DEVICE f16 Of(C x) {
    return NarrowToF16(static_cast<float>(x));
  }
};
template <>
struct Narrow<bf16> {
  template <typename C>
  static GPU_DEVICE bf16 Of(C x) {
    return NarrowToBf16(static_cast<float>(x));
  }
};

// Returns sum + the products of the signed bytes of a and b. Sums wrap around.
GPU_DEVICE int32_t DotOfBytes(uint32_t a, uint32_t b, int32_t sum) {
#if defined(__CUDA_ARCH__)
  return __dp4a(static_cast<int32_t>(a), static_cast<int32_t>(b), sum);
#elif defined(__gfx906__) || defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx1030__)
  return __builtin_amdgcn_sdot4(static_cast<int32_t>(a), static_cast<int32_t>(b), sum, false);
#else
  auto total = static_cast<uint32_t>(sum);
  for (int shift = 0; shift < 32; shift += 8) {
    total += static_cast<uint32_t>(static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift));
  }
  return static_cast<int32_t>(total);
#endif
}

// Returns the upper half of the product.
GPU_DEVICE uint32_t MultiplyHigh(uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __umulhi(a, b);
#else
  return static_cast<uint32_t>(static_cast<uint64_t>(a) * b >> 32);
#endif
}

// Return the thread's index in the grid and the grid's number of threads, in one dimension.
GPU_DEVICE int64_t GridThread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
GPU_DEVICE int64_t GridThreads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

#if defined(__CUDACC__)
template <typename T>
GPU_DEVICE T ShuffleXor(T v, int mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}
template <typename T>
GPU_DEVICE T ShuffleDown(T v, int delta) {
  return __shfl_down_sync(0xffffffffu, v, delta);
}
template <typename T>
GPU_DEVICE T Shuffle(T v, int lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
GPU_DEVICE uint64_t Ballot(bool p) { return __ballot_sync(0xffffffffu, p); }
#elif defined(__HIP__)
template <typename T>
GPU_DEVICE T ShuffleXor(T v, int mask) {
  return __shfl_xor(v, mask, GPU_WARP);
}
template <typename T>
GPU_DEVICE T ShuffleDown(T v, int delta) {
  return __shfl_down(v, delta, GPU_WARP);
}
template <typename T>
GPU_DEVICE T Shuffle(T v, int lane) {
  return __shfl(v, lane, GPU_WARP);
}
GPU_DEVICE uint64_t Ballot(bool p) { return __ballot(p); }
#endif

}  // namespace mge::gpu
