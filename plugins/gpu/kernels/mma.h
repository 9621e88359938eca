// SPDX-License-Identifier: Apache-2.0
// Products by matrix units: the instructions mma.sync.m16n8k8 and m16n8k16 with 16-bit or TF32 factors and float sums, and
// m16n8k32 with signed bytes and int32 sums, which wrap around
// (PTX ISA 8.5, section 9.7.14, "Warp Level Matrix Multiply-Accumulate Instructions"). Included by kernels only.
//
// 32 threads compute d (16 x 8) += a (16 x 16) b (16 x 8) together. Each holds fragments. For thread l, with g = l / 4 and
// t = l % 4, a register of a or b has two neighbours along k, the lower one in the lower half:
//   a[0]: row g,     k 2t, 2t + 1    a[1]: row g + 8, same k     a[2], a[3]: the same rows, k + 8
//   b[0]: column g,  k 2t, 2t + 1    b[1]: column g, k + 8
//   d[0], d[1]: row g, columns 2t, 2t + 1                        d[2], d[3]: row g + 8, same columns
// Devices of capability 7.5 have float16 and 8 steps along k only: their fragments are the halves of these.
//
// T = float multiplies TF32: floats rounded to 10 bits of mantissa (RoundToTf32). A register has one of them, so a is 16 x 8
// and b is 8 x 8:
//   a[0]: row g, k t    a[1]: row g + 8, k t    a[2], a[3]: the same rows, k t + 4
//   b[0]: column g, k t    b[1]: column g, k t + 4
// In 32-bit words along k, these are the places of the 16-bit factors, and of bytes, of which a register has four. Devices of
// capability 7.5 multiply bytes in quarters of the fragments (m8n8k16).
#pragma once

#include "plugins/gpu/port.h"

namespace mge::gpu {

// Rounds to the nearest TF32, ties away from zero. Units ignore the other bits.
GPU_DEVICE float RoundToTf32(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return BitCast<float>(rounded);
#else
  const uint32_t bits = BitCast<uint32_t>(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits & 0x7fffffu ? BitCast<float>(bits | 0x400000u) : x;
  return BitCast<float>((bits + 0x1000u) & 0xffffe000u);
#endif
}

#if defined(__CUDACC__)

// Adds the product of fragments a[i] and b[j] to d[i][j].
template <typename T, int kDown, int kAcross>
GPU_DEVICE void MultiplyFragments(float (&d)[kDown][kAcross][4], const uint32_t (&a)[kDown][4],
                                  const uint32_t (&b)[kAcross][2], int i, int j) {
  float(&s)[4] = d[i][j];
#if __CUDA_ARCH__ >= 800
  if constexpr (__is_same(T, float)) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
  } else if constexpr (__is_same(T, bf16)) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
  } else {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
  }
#else
  GPU_UNROLL for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                 : "r"(a[i][2 * half]), "r"(a[i][2 * half + 1]), "r"(b[j][half]));
  }
#endif
}

template <typename T, int kDown, int kAcross>
GPU_DEVICE void MultiplyFragments(int32_t (&d)[kDown][kAcross][4], const uint32_t (&a)[kDown][4],
                                  const uint32_t (&b)[kAcross][2], int i, int j) {
  int32_t(&s)[4] = d[i][j];
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3])
               : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "r"(b[j][0]), "r"(b[j][1]));
#else
  GPU_UNROLL for (int half = 0; half < 2; ++half) {
    GPU_UNROLL for (int k = 0; k < 2; ++k) {
      asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+r"(s[2 * half]), "+r"(s[2 * half + 1])
                   : "r"(a[i][half + 2 * k]), "r"(b[j][k]));
    }
  }
#endif
}

#elif defined(GPU_EMULATED)

// Does the same for the fragments of 32 threads. Not inlined: kernels call it in unrolled loops.
template <typename T, int kDown, int kAcross>
[[gnu::noinline]] void MultiplyFragments(float (*d)[kDown][kAcross][4], const uint32_t (*a)[kDown][4],
                                         const uint32_t (*b)[kAcross][2], int i, int j) {
  constexpr int kEach = 4 / sizeof(T), kSteps = 8 * kEach;  // elements of a register, and along k
  float left[16][kSteps], right[8][kSteps];
  auto part = [](uint32_t word, int which) {
    if constexpr (kEach == 1) {
      return BitCast<float>(word & 0xffffe000u);
    } else {
      return Widen(T{static_cast<uint16_t>(word >> (16 * which))});
    }
  };
  for (int l = 0; l < 32; ++l) {
    for (int h = 0; h < kEach; ++h) {
      for (int r = 0; r < 4; ++r) left[l / 4 + 8 * (r % 2)][kEach * (l % 4 + 4 * (r / 2)) + h] = part(a[l][i][r], h);
      for (int r = 0; r < 2; ++r) right[l / 4][kEach * (l % 4 + 4 * r) + h] = part(b[l][j][r], h);
    }
  }
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < 4; ++r) {
      const float *row = left[l / 4 + 8 * (r / 2)], *column = right[2 * (l % 4) + r % 2];
      float sum = d[l][i][j][r];
      for (int k = 0; k < kSteps; ++k) sum += row[k] * column[k];
      d[l][i][j][r] = sum;
    }
  }
}

template <typename T, int kDown, int kAcross>
[[gnu::noinline]] void MultiplyFragments(int32_t (*d)[kDown][kAcross][4], const uint32_t (*a)[kDown][4],
                                         const uint32_t (*b)[kAcross][2], int i, int j) {
  uint32_t left[16][8], right[8][8];  // words along k
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < 4; ++r) left[l / 4 + 8 * (r % 2)][l % 4 + 4 * (r / 2)] = a[l][i][r];
    for (int r = 0; r < 2; ++r) right[l / 4][l % 4 + 4 * r] = b[l][j][r];
  }
  for (int l = 0; l < 32; ++l) {
    for (int r = 0; r < 4; ++r) {
      int32_t& sum = d[l][i][j][r];
      for (int k = 0; k < 8; ++k) sum = DotOfBytes(left[l / 4 + 8 * (r / 2)][k], right[2 * (l % 4) + r % 2][k], sum);
    }
  }
}

#endif

}  // namespace mge::gpu
