// SPDX-License-Identifier: Apache-2.0
// Random numbers by Philox 4x32-10, one block of four numbers per thread and step.
#include "plugins/gpu/kernels/random.h"
#include "plugins/gpu/kernels/unary_functions.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

struct PhiloxBlock {
  uint32_t x[4];
};

GPU_DEVICE PhiloxBlock Philox(uint64_t key, uint64_t counter) {
  PhiloxBlock c = {{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c.x[0], p1 = uint64_t{0xCD9E8D57u} * c.x[2];
    c = {{static_cast<uint32_t>(p1 >> 32) ^ c.x[1] ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c.x[3] ^ k1, static_cast<uint32_t>(p0)}};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// Returns a number of [0, 1) with 24 bits.
GPU_DEVICE float UnitOf(uint32_t bits) { return static_cast<float>(bits >> 8) * 5.9604644775390625e-8f; }

// Returns number `k` of a block as a standard normal number (Box-Muller): numbers 0 and 1 make a pair, and 2 and 3.
GPU_DEVICE float NormalOf(const PhiloxBlock& block, int k) {
  const float u = 1.0f - UnitOf(block.x[k & 2]);  // never 0
  const float angle = 6.283185307179586f * UnitOf(block.x[(k & 2) + 1]);
  const float length = Sqrt::Of<float>(-2.0f * Log::Of<float>(u, 0.0f, 0.0f), 0.0f, 0.0f);
  return length * ((k & 1) != 0 ? Sin::Of<float>(angle, 0.0f, 0.0f) : Cos::Of<float>(angle, 0.0f, 0.0f));
}

template <typename T, bool Normal>
GPU_DEVICE void Random(const RandomArgs& args) {
  using C = Compute<T>;
  T* y = static_cast<T*>(args.y);
  for (int64_t b = GridThread(); b * 4 < args.n; b += GridThreads()) {
    const PhiloxBlock block = Philox(args.state->key, args.state->counter + static_cast<uint64_t>(b));
    for (int k = 0; k < 4 && b * 4 + k < args.n; ++k) {
      const C value = static_cast<C>(Normal ? NormalOf(block, k) : UnitOf(block.x[k]));
      y[b * 4 + k] = Narrow<T>::Of(static_cast<C>(args.a) + static_cast<C>(args.b) * value);
    }
  }
}

template <typename T>
GPU_DEVICE void Dropout(const DropoutArgs& args) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(args.x);
  T* y = static_cast<T*>(args.y);  // may be x
  const C keep = static_cast<C>(1 - args.ratio);
  for (int64_t b = GridThread(); b * 4 < args.n; b += GridThreads()) {
    const PhiloxBlock block = Philox(args.state->key, args.state->counter + static_cast<uint64_t>(b));
    for (int k = 0; k < 4 && b * 4 + k < args.n; ++k) {
      const int64_t i = b * 4 + k;
      const bool kept = UnitOf(block.x[k]) >= static_cast<float>(args.ratio);
      y[i] = Narrow<T>::Of(kept ? Widen(x[i]) / keep : C(0));
      if (args.mask) args.mask[i] = kept;
    }
  }
}

#define GPU_RANDOM(type, T)                                              \
  GPU_KERNEL(random_uniform_##type, 256, RandomArgs, (Random<T, false>)) \
  GPU_KERNEL(random_normal_##type, 256, RandomArgs, (Random<T, true>))   \
  GPU_KERNEL(dropout_##type, 256, DropoutArgs, (Dropout<T>))
GPU_RANDOM(f32, float)
GPU_RANDOM(f64, double)
GPU_RANDOM(f16, f16)
GPU_RANDOM(bf16, bf16)

}  // namespace mge::gpu
