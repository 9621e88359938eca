// SPDX-License-Identifier: Apache-2.0
#include "vec/simd.h"
#include "vec/tile.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

template <typename T, typename F>
MGE_INLINE void MapPairs(int mode, const void* a, const void* b, void* out, int64_t n, F f) {
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  auto* z = static_cast<T*>(out);
  if (mode == kTileScalarA) {
    T s = *x;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = f(s, y[i]);
  } else if (mode == kTileScalarB) {
    T s = *y;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], s);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) z[i] = f(x[i], y[i]);
  }
}

// Finds the bitwise operators. T is unsigned.
template <typename T, int Mode>
TileFn FindBits(TileOp op) {
  constexpr T kBits = sizeof(T) * 8;
#define MGE_PAIRS(kOp, expression)                                                             \
  case TileOp::kOp:                                                                            \
    return [](const void* a, const void* b, const void*, void* out, int64_t n, const float*) { \
      MapPairs<T>(Mode, a, b, out, n, [](T x, T y) { return static_cast<T>(expression); });    \
    }
  switch (op) {
    MGE_PAIRS(kBitwiseAnd, x & y);
    MGE_PAIRS(kBitwiseOr, x | y);
    MGE_PAIRS(kBitwiseXor, x ^ y);
    MGE_PAIRS(kShiftLeft, y < kBits ? static_cast<T>(x << y) : T{0});
    MGE_PAIRS(kShiftRight, y < kBits ? static_cast<T>(x >> y) : T{0});
    default: return nullptr;
  }
}

template <int Mode>
TileFn FindLogic(TileOp op) {
  using T = uint8_t;
  switch (op) {
    MGE_PAIRS(kAnd, (x != 0) & (y != 0));
    MGE_PAIRS(kOr, (x | y) != 0);
    MGE_PAIRS(kXor, (x != 0) ^ (y != 0));
    default: return nullptr;
  }
#undef MGE_PAIRS
}

template <typename T>
void Where(const void* a, const void* b, const void* c, void* out, int64_t n, const float*) {
  auto* condition = static_cast<const uint8_t*>(a);
  auto* x = static_cast<const T*>(b);
  auto* y = static_cast<const T*>(c);
  auto* z = static_cast<T*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) z[i] = condition[i] ? x[i] : y[i];
}

template <int Mode>
TileFn FindMode(TileOp op, mge_dtype type) {
  if (type == MGE_DTYPE_BOOL) return FindLogic<Mode>(op);
  if (!IsInteger(type)) return nullptr;
  switch (SizeOf(type)) {
    case 1: return FindBits<uint8_t, Mode>(op);
    case 2: return FindBits<uint16_t, Mode>(op);
    case 4: return FindBits<uint32_t, Mode>(op);
    default: return FindBits<uint64_t, Mode>(op);
  }
}

TileFn Find(TileOp op, mge_dtype type, int mode) {
  if (op == TileOp::kWhere) {
    if (mode != kTileVectors) return nullptr;
    switch (SizeOf(type)) {
      case 1: return Where<uint8_t>;
      case 2: return Where<uint16_t>;
      case 4: return Where<uint32_t>;
      case 8: return Where<uint64_t>;
      default: return nullptr;
    }
  }
  if constexpr (kWithIntegers) {
    switch (mode) {
      case kTileVectors: return FindMode<kTileVectors>(op, type);
      case kTileScalarA: return FindMode<kTileScalarA>(op, type);
      case kTileScalarB: return FindMode<kTileScalarB>(op, type);
      default: break;
    }
  }
  return nullptr;
}

}  // namespace

extern const TileBinaryTable kTileLogic = {Find};

}  // namespace mge::cpu::MGE_CPU_ISA
