// SPDX-License-Identifier: Apache-2.0
// Translates the steps of a chain to expressions of a builder (functions.h).
//
// The builder also has Load(value), which reads an operand: floats of 16 bits widened to float32, bytes as integers, bool as truth
// values.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "compilers/compiler.h"
#include "compilers/functions.h"

namespace mge::jit {

// A chain that a compiler cannot translate, with the reason.
struct ChainError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline TileOp OpNamed(const std::string& name) {
  for (int op = 0; op <= static_cast<int>(TileOp::kXor); ++op) {
    if (name == cpu::NameOf(static_cast<TileOp>(op))) return static_cast<TileOp>(op);
  }
  throw ChainError("unknown instruction " + name);
}

inline bool IsHalfType(uint32_t type) { return type == MGE_DTYPE_F16 || type == MGE_DTYPE_BF16; }
inline bool IsByteType(uint32_t type) { return type == MGE_DTYPE_I8 || type == MGE_DTYPE_U8; }

template <typename B>
class Steps {
 public:
  using V = typename B::Value;

  Steps(const mge_jit_chain& chain, B* builder) : chain_(chain), b(*builder), f_(builder), values_(chain.value_count) {}

  // Returns the expression of every stored value, by its index; the others are absent.
  std::vector<std::optional<V>> Run() {
    for (uint32_t i = 0; i < chain_.step_count; ++i) {
      const mge_jit_step& s = chain_.steps[i];
      const V result = Compute(s);
      values_[static_cast<size_t>(s.out)] = result;
    }
    std::vector<std::optional<V>> stored(values_.size());
    for (size_t i = 0; i < values_.size(); ++i) {
      if (chain_.values[i].flags & MGE_JIT_STORED) stored[i] = values_[i];
    }
    return stored;
  }

 private:
  uint32_t TypeOf(int value) const { return chain_.values[value].type; }

  V Of(int value) {
    std::optional<V>& known = values_[static_cast<size_t>(value)];
    if (!known) {
      const mge_jit_value& v = chain_.values[value];
      known = v.flags & MGE_JIT_CONSTANT ? b.Number(v.number) : b.Load(v);
    }
    return *known;
  }

  V Compute(const mge_jit_step& s) {
    const TileOp op = OpNamed(s.op);
    switch (op) {
      case TileOp::kCopy:
      case TileOp::kSplat: return Of(s.a);
      case TileOp::kRoundTo: return f_.RoundTo(static_cast<mge_dtype>(s.half), Of(s.a));
      case TileOp::kCast: return Cast(Of(s.a), TypeOf(s.a), TypeOf(s.out));
      case TileOp::kWhere: return b.Select(Of(s.a), Of(s.b), Of(s.c));
      case TileOp::kNot: return b.Not(Of(s.a));
      case TileOp::kAnd: return b.And(Of(s.a), Of(s.b));
      case TileOp::kOr: return b.Or(Of(s.a), Of(s.b));
      case TileOp::kXor: return b.Xor(Of(s.a), Of(s.b));
      case TileOp::kQuantize: return Quantize(s);
      case TileOp::kDequantize: {
        const V difference = s.c < 0 ? Of(s.a) : b.IntSub(Of(s.a), Of(s.c));
        return b.Mul(b.ToFloat(difference), Of(s.b));
      }
      default: return s.b < 0 ? f_.Unary(op, Of(s.a), s.params) : f_.Binary(op, Of(s.a), Of(s.b));
    }
  }

  V Cast(const V& x, uint32_t from, uint32_t to) {
    V number = x;
    if (from == MGE_DTYPE_BOOL) {
      if (to == MGE_DTYPE_BOOL) return x;
      number = b.Select(x, b.Number(1), b.Number(0));
    } else if (IsByteType(from)) {
      number = b.ToFloat(x);
    }
    if (to == MGE_DTYPE_BOOL) return b.Not(b.Equal(number, b.Number(0)));
    return IsHalfType(to) ? f_.RoundTo(static_cast<mge_dtype>(to), number) : number;
  }

  V Quantize(const mge_jit_step& s) {
    const V x = s.b < 0 ? Of(s.a) : b.Div(Of(s.a), Of(s.b));
    const int low = TypeOf(s.out) == MGE_DTYPE_I8 ? -128 : 0;
    if (s.c < 0) return f_.Quantize(x, nullptr, low);
    const V zero = Of(s.c);
    return f_.Quantize(x, &zero, low);
  }

  const mge_jit_chain& chain_;
  B& b;
  Functions<B> f_;
  std::vector<std::optional<V>> values_;
};

}  // namespace mge::jit
