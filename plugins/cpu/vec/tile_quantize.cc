// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "vec/bytes.h"
#include "vec/tile.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <typename Q>
inline constexpr bool kIsByte = sizeof(Q) == 1;

template <typename Q>
MGE_INLINE VI LoadIntegers(const Q* p, int lanes) {
  if constexpr (kIsByte<Q>) return lanes == kF ? LoadBytes(p) : LoadBytesN(p, lanes);
  VI v = {};
  for (int i = 0; i < lanes; ++i) v[i] = p[i];
  return v;
}
template <typename Q>
MGE_INLINE void StoreIntegers(Q* p, VI v, int lanes) {
  if constexpr (kIsByte<Q>) return lanes == kF ? StoreBytes(p, v) : StoreBytesN(p, v, lanes);
  for (int i = 0; i < lanes; ++i) p[i] = static_cast<Q>(v[i]);
}

// Calls step(i, lanes) for n elements by vectors. `lanes` is a constant except at the end.
template <typename F>
MGE_INLINE void ForVectors(int64_t n, F step) {
  int64_t i = 0;
  for (; i + kF <= n; i += kF) step(i, kF);
  if (i < n) step(i, static_cast<int>(n - i));
}

template <typename Q, bool ZeroVectors>
void Quantize(const void* a, const void* b, const void* c, void* out, int64_t n, const float* params) {
  constexpr int32_t kLow = std::is_signed_v<Q> ? -(1 << (8 * sizeof(Q) - 1)) : 0;
  constexpr int32_t kHigh = kLow + (1 << (8 * sizeof(Q))) - 1;
  auto* x = static_cast<const float*>(a);
  auto* y = static_cast<Q*>(out);
  const VF scale = params[0] != 0 ? Splat(*static_cast<const float*>(b)) : Splat(1.0f);
  const Q* zeros = params[1] != 0 ? static_cast<const Q*>(c) : nullptr;
  const int32_t zero = zeros ? *zeros : 0;
  ForVectors(
      n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
        const VF v = lanes == kF ? Load(x + i) : LoadN(x + i, lanes);
        if constexpr (ZeroVectors) {
          const VI each = LoadIntegers(zeros + i, lanes);
          const VF low = ToVF(kLow - each), high = ToVF(kHigh - each);
          StoreIntegers(y + i, RoundToVI(MinRaw(MaxRaw(v / scale, low), high)) + each, lanes);
        } else {
          StoreIntegers(y + i, Quantized(v / scale, zero, kLow, kHigh), lanes);
        }
      });
}

template <typename Q, bool Vectors>
void Dequantize(const void* a, const void* b, const void* c, void* out, int64_t n, const float* params) {
  auto* x = static_cast<const Q*>(a);
  auto* scales = static_cast<const float*>(b);
  auto* y = static_cast<float*>(out);
  const Q* zeros = params[1] != 0 ? static_cast<const Q*>(c) : nullptr;
  const bool zero_vectors = Vectors && params[1] == 2;
  if constexpr (sizeof(Q) == 4) {  // the difference may need 33 bits
    for (int64_t i = 0; i < n; ++i) {
      const double zero = zeros ? zeros[zero_vectors ? i : 0] : 0;
      y[i] = static_cast<float>(x[i] - zero) * scales[Vectors && params[0] == 2 ? i : 0];
    }
  } else {
    const VF scale = Splat(*scales);
    const VI zero = SplatI(zeros ? *zeros : 0);
    ForVectors(
        n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
          VI z = zero;
          VF s = scale;
          if constexpr (Vectors) {
            if (zero_vectors) z = LoadIntegers(zeros + i, lanes);
            if (params[0] == 2) s = lanes == kF ? Load(scales + i) : LoadN(scales + i, lanes);
          }
          const VF v = ToVF(LoadIntegers(x + i, lanes) - z) * s;
          if (lanes == kF)
            Store(y + i, v);
          else
            StoreN(y + i, v, lanes);
        });
  }
}

template <typename F>
MGE_INLINE void DispatchQuantized(mge_dtype type, F f) {
  DispatchTo<uint8_t, int8_t>(type, f);
  if constexpr (kWithIntegers) DispatchTo<uint16_t, int16_t>(type, f);
}

TileFn FindQuantize(mge_dtype to, bool zero_vectors) {
  TileFn fn = nullptr;
  DispatchQuantized(to, [&](auto tag) {
    using Q = typename decltype(tag)::type;
    fn = zero_vectors ? Quantize<Q, true> : Quantize<Q, false>;
  });
  return fn;
}

TileFn FindDequantize(mge_dtype from, bool vectors) {
  TileFn fn = nullptr;
  auto find = [&](auto tag) {
    using Q = typename decltype(tag)::type;
    fn = vectors ? Dequantize<Q, true> : Dequantize<Q, false>;
  };
  DispatchQuantized(from, find);
  if constexpr (kWithIntegers) DispatchTo<int32_t>(from, find);
  return fn;
}

}  // namespace

extern const TileQuantizeTable kTileQuantize = {FindQuantize, FindDequantize};

}  // namespace mge::cpu::MGE_CPU_ISA
