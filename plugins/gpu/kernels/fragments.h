// SPDX-License-Identifier: Apache-2.0
// Moves of fragments (mma.h): from shared memory into registers, from a result into a factor, and between the threads that
// have one row. Included by kernels only.
#pragma once

#include "plugins/gpu/kernels/mma.h"

namespace mge::gpu {

// Rounds two neighbouring elements of a factor into one register.
template <typename T>
GPU_DEVICE uint32_t PackPair(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t pair;
  if constexpr (__is_same(T, bf16))
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return static_cast<uint32_t>(Narrow<T>::Of(low).bits) | static_cast<uint32_t>(Narrow<T>::Of(high).bits) << 16;
#endif
}

// Rounds raw floats of shared memory to TF32. 16-bit floats are factors as they are.
template <typename T, int kCount>
GPU_DEVICE void RoundFactors(uint32_t (&words)[kCount]) {
  if constexpr (sizeof(T) == 4) {
    GPU_UNROLL_REGISTERS for (int i = 0; i < kCount; ++i) words[i] =
        BitCast<uint32_t>(RoundToTf32(BitCast<float>(words[i])));
  }
}

// Load four registers from four matrices of 8 lines of 16 bytes in shared memory (ldmatrix, PTX ISA 8.5, section
// 9.7.14.5.15).
// place(i, line) returns the address of a line of matrix i. All threads of a warp take part, each with its lane l.
//   LoadMatrices            register i: word l % 4 of line l / 4
//   LoadMatricesTransposed  register i: element l / 4 of the lines 2 (l % 4) and, in the upper half, 2 (l % 4) + 1
template <typename Place>
GPU_DEVICE void LoadMatrices(const Place& place, int lane, uint32_t& r0, uint32_t& r1, uint32_t& r2, uint32_t& r3) {
#if defined(__CUDACC__)
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(place(lane / 8, lane % 8)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(address)
               : "memory");
#elif defined(GPU_EMULATED)
  uint32_t* const registers[] = {&r0, &r1, &r2, &r3};
  for (int i = 0; i < 4; ++i) __builtin_memcpy(registers[i], static_cast<const char*>(place(i, lane / 4)) + lane % 4 * 4, 4);
#endif
}
template <typename Place>
GPU_DEVICE void LoadMatricesTransposed(const Place& place, int lane, uint32_t& r0, uint32_t& r1, uint32_t& r2,
                                       uint32_t& r3) {
#if defined(__CUDACC__)
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(place(lane / 8, lane % 8)));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
               : "r"(address)
               : "memory");
#elif defined(GPU_EMULATED)
  uint32_t* const registers[] = {&r0, &r1, &r2, &r3};
  for (int i = 0; i < 4; ++i) {
    uint16_t half[2];
    for (int h = 0; h < 2; ++h) {
      __builtin_memcpy(&half[h], static_cast<const char*>(place(i, lane % 4 * 2 + h)) + lane / 4 * 2, 2);
    }
    *registers[i] = half[0] | static_cast<uint32_t>(half[1]) << 16;
  }
#endif
}

// The order of four matrices of 8 lines and 4 words in the registers of a thread. Both are the orders in which matrix units
// read them (mma.h), so that no register moves: a left factor has the lines first, two right factors have the words first.
enum FragmentOrder { kLeftFactor, kRightFactor };
template <FragmentOrder kOrder>
constexpr GPU_DEVICE int LinesOf(int matrix) {
  return kOrder == kLeftFactor ? matrix % 2 : matrix / 2;
}
template <FragmentOrder kOrder>
constexpr GPU_DEVICE int HalfOf(int matrix) {
  return kOrder == kLeftFactor ? matrix / 2 : matrix % 2;
}

// Loads fragments of a factor in shared memory: 16 lines from `line` on, and the words 8 `words` to 8 `words` + 7 along k.
// at(block, l, vector) returns the address of 16 bytes of line block + l, where `block` is a multiple of 8, and l < 8.
template <FragmentOrder kOrder, typename At>
GPU_DEVICE void LoadAlongK(const At& at, int line, int words, int lane, uint32_t& r0, uint32_t& r1, uint32_t& r2,
                           uint32_t& r3) {
  const auto place = [&](int i, int l) -> const void* {
    return at(line + 8 * LinesOf<kOrder>(i), l, 2 * words + HalfOf<kOrder>(i));
  };
  LoadMatrices(place, lane, r0, r1, r2, r3);
}
// Does the same for 16-bit elements whose lines are neighbours in memory. at(block, l, vector) returns the address of 16 bytes of
// the k block + l.
template <FragmentOrder kOrder, typename At>
GPU_DEVICE void LoadAcrossLines(const At& at, int line, int words, int lane, uint32_t& r0, uint32_t& r1, uint32_t& r2,
                                uint32_t& r3) {
  const auto place = [&](int i, int l) -> const void* {
    return at(16 * words + 8 * HalfOf<kOrder>(i), l, line / 8 + LinesOf<kOrder>(i));
  };
  LoadMatricesTransposed(place, lane, r0, r1, r2, r3);
}

// Joins each of the values v[i] over the four threads that have the same row of a result. All of them get it.
#if defined(__CUDACC__)
template <typename Join, int kValues>
GPU_DEVICE void JoinQuads(float (&v)[kValues]) {
  GPU_UNROLL_REGISTERS for (int i = 0; i < kValues; ++i) {
    v[i] = Join::Of(v[i], ShuffleXor(v[i], 1));
    v[i] = Join::Of(v[i], ShuffleXor(v[i], 2));
  }
}
#elif defined(GPU_EMULATED)
template <typename Join, int kValues>
GPU_DEVICE void JoinQuads(float (*v)[kValues]) {  // of 32 threads
  for (int l = 0; l < 32; l += 4) {
    for (int i = 0; i < kValues; ++i) {
      const float joined = Join::Of(Join::Of(v[l][i], v[l + 1][i]), Join::Of(v[l + 2][i], v[l + 3][i]));
      for (int k = 0; k < 4; ++k) v[l + k][i] = joined;
    }
  }
}
#endif

}  // namespace mge::gpu
