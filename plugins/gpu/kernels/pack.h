// SPDX-License-Identifier: Apache-2.0
// Neighbouring elements that one access reads or writes. Included by kernels only.
#pragma once

#include "plugins/gpu/port.h"

namespace mge::gpu {

// N neighbouring elements.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Pack {
  T at[N];
};

constexpr int kWidestAccess = 16;  // bytes

// The number of elements that one access can move.
template <typename T>
constexpr int kWidest = kWidestAccess / static_cast<int>(sizeof(T));

// Returns whether an address permits the widest access.
GPU_DEVICE bool IsAligned(const void* p) { return reinterpret_cast<uint64_t>(p) % kWidestAccess == 0; }

// Read or write elements from `at` on, which is a multiple of N elements from an aligned address. N = 1 needs no alignment.
template <int N, typename T>
GPU_DEVICE Pack<T, N> ReadPack(const T* at) {
  return *reinterpret_cast<const Pack<T, N>*>(at);
}
template <int N, typename T>
GPU_DEVICE void WritePack(T* at, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(at) = pack;
}

}  // namespace mge::gpu
