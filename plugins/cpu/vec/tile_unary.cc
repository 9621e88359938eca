// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "vec/tile.h"
#include "vec/trigonometry.h"

namespace mge::cpu::MGE_CPU_ISA {
namespace {

// Applies an operator to vectors of floats. Op is a functor of V (VF or VD) and the parameters.
template <typename C, typename Op>
void MapFloat(const void* a, const void*, const void*, void* out, int64_t n, const float* params) {
  auto* x = static_cast<const C*>(a);
  auto* y = static_cast<C*>(out);
  Op op(params);
  int64_t i = 0;
  for (; i + kLanes<C> <= n; i += kLanes<C>) Store(y + i, op(Load(x + i)));
  if (i < n) StoreN(y + i, op(LoadN(x + i, static_cast<int>(n - i))), static_cast<int>(n - i));
}

// Applies an operator to single elements; the compiler vectorises it if possible.
template <typename T, typename R, typename F>
void MapEach(const void* a, void* out, int64_t n, F f) {
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<R*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

#define MGE_FLOAT_OP(Name, expression)          \
  struct Name {                                 \
    explicit Name(const float*) {}              \
    template <typename V>                       \
    MGE_INLINE_MEMBER V operator()(V x) const { \
      return expression;                        \
    }                                           \
  };
#define MGE_FLOAT_OP_2(Name, expression)                       \
  struct Name {                                                \
    explicit Name(const float* p) : alpha(p[0]), beta(p[1]) {} \
    template <typename V>                                      \
    MGE_INLINE_MEMBER V operator()(V x) const {                \
      V a = Same(x, alpha), b = Same(x, beta);                 \
      (void)b;                                                 \
      return expression;                                       \
    }                                                          \
    float alpha, beta;                                         \
  };

// Returns a parameter as a vector of x's type.
MGE_INLINE VF Same(VF, float value) { return Splat(value); }
MGE_INLINE VD Same(VD, float value) { return Splat(static_cast<double>(value)); }

// Return sqrt(1/2), sqrt(2/pi) and the cubic coefficient of GELU's approximation, in the precision of x.
MGE_INLINE float HalfRoot(VF) { return 0.707106781f; }
MGE_INLINE double HalfRoot(VD) { return 0.70710678118654752; }
MGE_INLINE float RootOfTwoOverPi(VF) { return 0.797884561f; }
MGE_INLINE double RootOfTwoOverPi(VD) { return 0.79788456080286536; }
MGE_INLINE float GeluCubic(VF) { return 0.044715f; }
MGE_INLINE double GeluCubic(VD) { return 0.044715; }

MGE_FLOAT_OP(OpAbs, Abs(x))
MGE_FLOAT_OP(OpNeg, -x)
MGE_FLOAT_OP(OpSign, (x > 0 ? Same(x, 1) : x < 0 ? Same(x, -1) : x))
MGE_FLOAT_OP(OpRelu, Max(x, Same(x, 0)))
MGE_FLOAT_OP(OpCeil, Ceil(x))
MGE_FLOAT_OP(OpFloor, Floor(x))
MGE_FLOAT_OP(OpRound, RoundEven(x))
MGE_FLOAT_OP(OpSqrt, Sqrt(x))
MGE_FLOAT_OP(OpReciprocal, 1 / x)
MGE_FLOAT_OP(OpExp, Exp(x))
MGE_FLOAT_OP(OpLog, Log(x))
MGE_FLOAT_OP(OpTanh, Tanh(x))
MGE_FLOAT_OP(OpSigmoid, Sigmoid(x))
MGE_FLOAT_OP(OpErf, Erf(x))
MGE_FLOAT_OP(OpSin, Sin(x))
MGE_FLOAT_OP(OpCos, Cos(x))
MGE_FLOAT_OP(OpTan, Tan(x))
MGE_FLOAT_OP(OpAsin, Asin(x))
MGE_FLOAT_OP(OpAcos, Acos(x))
MGE_FLOAT_OP(OpAtan, Atan(x))
MGE_FLOAT_OP(OpSinh, Sinh(x))
MGE_FLOAT_OP(OpCosh, Cosh(x))
MGE_FLOAT_OP(OpAsinh, Asinh(x))
MGE_FLOAT_OP(OpAcosh, Acosh(x))
MGE_FLOAT_OP(OpAtanh, Atanh(x))
MGE_FLOAT_OP(OpSoftplus, Softplus(x))
MGE_FLOAT_OP(OpSoftsign, x / (1 + Abs(x)))
MGE_FLOAT_OP(OpGelu, Same(x, 0.5f) * x * (1 + Erf(x * HalfRoot(x))))
MGE_FLOAT_OP(OpGeluTanh, Same(x, 0.5f) * x * (1 + Tanh(RootOfTwoOverPi(x) * (x + GeluCubic(x) * x * x * x))))
MGE_FLOAT_OP(OpMish, x* Tanh(Softplus(x)))
MGE_FLOAT_OP(OpHardSwish, x* Max(Same(x, 0), Min(Same(x, 1), x / 6 + Same(x, 0.5f))))
MGE_FLOAT_OP(OpSquare, x* x)
MGE_FLOAT_OP(OpCube, x* x* x)
MGE_FLOAT_OP(OpPowHalf, (x == -__builtin_inff() ? -x : Sqrt(x) + 0))
MGE_FLOAT_OP_2(OpLeakyRelu, (x < 0 ? x * a : x))
MGE_FLOAT_OP_2(OpElu, (x < 0 ? a * Expm1(x) : x))
MGE_FLOAT_OP_2(OpCelu, (x < 0 ? a * Expm1(x / a) : x))
MGE_FLOAT_OP_2(OpSelu, b*(x > 0 ? x : a * Expm1(x)))
MGE_FLOAT_OP_2(OpHardSigmoid, Max(Same(x, 0), Min(Same(x, 1), a* x + b)))
MGE_FLOAT_OP_2(OpThresholdedRelu, (x > a ? x : Same(x, 0)))
MGE_FLOAT_OP_2(OpShrink, (x < -a ? x + b : x > a ? x - b : Same(x, 0)))
MGE_FLOAT_OP_2(OpSwish, x* Sigmoid(a* x))
MGE_FLOAT_OP_2(OpDivideBy, x / a)

template <typename C>
TileFn FindFloat(TileOp op) {
  switch (op) {
    case TileOp::kAbs: return MapFloat<C, OpAbs>;
    case TileOp::kNeg: return MapFloat<C, OpNeg>;
    case TileOp::kSign: return MapFloat<C, OpSign>;
    case TileOp::kRelu: return MapFloat<C, OpRelu>;
    case TileOp::kCeil: return MapFloat<C, OpCeil>;
    case TileOp::kFloor: return MapFloat<C, OpFloor>;
    case TileOp::kRound: return MapFloat<C, OpRound>;
    case TileOp::kSqrt: return MapFloat<C, OpSqrt>;
    case TileOp::kReciprocal: return MapFloat<C, OpReciprocal>;
    case TileOp::kExp: return MapFloat<C, OpExp>;
    case TileOp::kLog: return MapFloat<C, OpLog>;
    case TileOp::kTanh: return MapFloat<C, OpTanh>;
    case TileOp::kSigmoid: return MapFloat<C, OpSigmoid>;
    case TileOp::kErf: return MapFloat<C, OpErf>;
    case TileOp::kSin: return MapFloat<C, OpSin>;
    case TileOp::kCos: return MapFloat<C, OpCos>;
    case TileOp::kTan: return MapFloat<C, OpTan>;
    case TileOp::kAsin: return MapFloat<C, OpAsin>;
    case TileOp::kAcos: return MapFloat<C, OpAcos>;
    case TileOp::kAtan: return MapFloat<C, OpAtan>;
    case TileOp::kSinh: return MapFloat<C, OpSinh>;
    case TileOp::kCosh: return MapFloat<C, OpCosh>;
    case TileOp::kAsinh: return MapFloat<C, OpAsinh>;
    case TileOp::kAcosh: return MapFloat<C, OpAcosh>;
    case TileOp::kAtanh: return MapFloat<C, OpAtanh>;
    case TileOp::kSoftplus: return MapFloat<C, OpSoftplus>;
    case TileOp::kSoftsign: return MapFloat<C, OpSoftsign>;
    case TileOp::kGelu: return MapFloat<C, OpGelu>;
    case TileOp::kGeluTanh: return MapFloat<C, OpGeluTanh>;
    case TileOp::kMish: return MapFloat<C, OpMish>;
    case TileOp::kHardSwish: return MapFloat<C, OpHardSwish>;
    case TileOp::kSquare: return MapFloat<C, OpSquare>;
    case TileOp::kCube: return MapFloat<C, OpCube>;
    case TileOp::kPowHalf: return MapFloat<C, OpPowHalf>;
    case TileOp::kLeakyRelu: return MapFloat<C, OpLeakyRelu>;
    case TileOp::kElu: return MapFloat<C, OpElu>;
    case TileOp::kCelu: return MapFloat<C, OpCelu>;
    case TileOp::kSelu: return MapFloat<C, OpSelu>;
    case TileOp::kHardSigmoid: return MapFloat<C, OpHardSigmoid>;
    case TileOp::kThresholdedRelu: return MapFloat<C, OpThresholdedRelu>;
    case TileOp::kShrink: return MapFloat<C, OpShrink>;
    case TileOp::kSwish: return MapFloat<C, OpSwish>;
    case TileOp::kDivideBy: return MapFloat<C, OpDivideBy>;
    case TileOp::kIsNaN:
      return [](const void* a, const void*, const void*, void* out, int64_t n, const float*) {
        MapEach<C, uint8_t>(a, out, n, [](C v) { return static_cast<uint8_t>(v != v); });
      };
    case TileOp::kIsInf:
      return [](const void* a, const void*, const void*, void* out, int64_t n, const float* p) {
        C high = p[0] != 0 ? static_cast<C>(__builtin_inf()) : static_cast<C>(__builtin_nan(""));
        C low = p[1] != 0 ? static_cast<C>(-__builtin_inf()) : static_cast<C>(__builtin_nan(""));
        MapEach<C, uint8_t>(a, out, n, [=](C v) { return static_cast<uint8_t>((v == high) | (v == low)); });
      };
    default: return nullptr;
  }
}

template <typename T>
TileFn FindInteger(TileOp op) {
#define MGE_EACH(kOp, R, expression)                                                         \
  case TileOp::kOp:                                                                          \
    return [](const void* a, const void*, const void*, void* out, int64_t n, const float*) { \
      MapEach<T, R>(a, out, n, [](T x) { return static_cast<R>(expression); });              \
    }
  // Unsigned arithmetic wraps around; negating the lowest number returns the same number.
  using U = decltype(0ull + T{});
  switch (op) {
    MGE_EACH(kAbs, T, x < 0 ? static_cast<T>(U{0} - static_cast<U>(x)) : x);
    MGE_EACH(kNeg, T, U{0} - static_cast<U>(x));
    MGE_EACH(kSign, T, (x > 0) - (x < 0));
    MGE_EACH(kRelu, T, x > 0 ? x : 0);
    MGE_EACH(kBitwiseNot, T, ~x);
    MGE_EACH(kSquare, T, static_cast<U>(x) * static_cast<U>(x));
    MGE_EACH(kCube, T, static_cast<U>(x) * static_cast<U>(x) * static_cast<U>(x));
    default: return nullptr;
  }
#undef MGE_EACH
}

template <int Size>
void Copy(const void* a, const void*, const void*, void* out, int64_t n, const float*) {
  if (a != out) memmove(out, a, static_cast<size_t>(n) * Size);
}

template <typename T>
void SplatElement(const void* a, const void*, const void*, void* out, int64_t n, const float*) {
  T x = *static_cast<const T*>(a);
  auto* y = static_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) y[i] = x;
}

// Rounds floats to the nearest values of H.
template <typename H>
void RoundTo(const void* a, const void*, const void*, void* out, int64_t n, const float*) {
  auto* x = static_cast<const float*>(a);
  auto* y = static_cast<float*>(out);
  H lanes[kF];
  int64_t i = 0;
  for (; i + kF <= n; i += kF) {
    Store(lanes, Load(x + i));
    Store(y + i, Load(lanes));
  }
  if (i >= n) return;
  Store(lanes, LoadN(x + i, static_cast<int>(n - i)));
  StoreN(y + i, Load(lanes), static_cast<int>(n - i));
}

TileFn Find(TileOp op, mge_dtype type) {
  if (op == TileOp::kRoundTo) {
    return type == MGE_DTYPE_F16 ? RoundTo<F16> : type == MGE_DTYPE_BF16 ? RoundTo<BF16> : nullptr;
  }
  if (op == TileOp::kSplat) {
    switch (SizeOf(type)) {
      case 1: return SplatElement<uint8_t>;
      case 2: return SplatElement<uint16_t>;
      case 4: return SplatElement<uint32_t>;
      case 8: return SplatElement<uint64_t>;
      default: return nullptr;
    }
  }
  if (op == TileOp::kCopy) {
    switch (SizeOf(type)) {
      case 1: return Copy<1>;
      case 2: return Copy<2>;
      case 4: return Copy<4>;
      case 8: return Copy<8>;
      default: return nullptr;
    }
  }
  if (type == MGE_DTYPE_F32) return FindFloat<float>(op);
  if (type == MGE_DTYPE_F64) return FindFloat<double>(op);
  if (type == MGE_DTYPE_BOOL && op == TileOp::kNot) {
    return [](const void* a, const void*, const void*, void* out, int64_t n, const float*) {
      MapEach<uint8_t, uint8_t>(a, out, n, [](uint8_t x) { return static_cast<uint8_t>(x == 0); });
    };
  }
  TileFn f = nullptr;
  if constexpr (kWithIntegers) DispatchInteger(type, [&](auto tag) { f = FindInteger<typename decltype(tag)::type>(op); });
  return f;
}

}  // namespace

extern const TileUnaryTable kTileUnary = {Find};

}  // namespace mge::cpu::MGE_CPU_ISA
