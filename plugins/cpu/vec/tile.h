// SPDX-License-Identifier: Apache-2.0
// Micro-kernels for a tile: a few hundred to a few thousand contiguous elements. Elementwise operators, single or fused, are
// programs that call them.
#pragma once

#include "mge/plugin/elementwise_functions.hpp"
#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

// Computes out[i] = f(a[i], b[i], c[i]) for i < n. `out` may be an operand of the same type (hence `ivdep` on the loops).
// Operators with parameters read them from params.
using TileFn = void (*)(const void* a, const void* b, const void* c, void* out, int64_t n, const float* params);

enum class TileOp : uint8_t {
  kNone,
  kCopy,
  kSplat,    // a is one element
  kRoundTo,  // a and out are float32; rounds to the 16-bit type passed to FindTile()
  kSquare,
  kCube,
  kPowHalf,
  kDivideBy,    // x / the first parameter
  kWhere,       // three operands: a is bool
  kCast,        // by FindCast()
  kQuantize,    // by FindQuantize()
  kDequantize,  // by FindDequantize()
// The functions of elementwise operators.
#define MGE_TILE_OP(Name, name) k##Name,
  MGE_ELEMENTWISE_FUNCTIONS(MGE_TILE_OP)
#undef MGE_TILE_OP
};

// The form of the operands. One operand of a binary kernel may be a single element.
enum TileMode { kTileVectors = 0, kTileScalarA = 1, kTileScalarB = 2 };

struct TileUnaryTable {
  // Returns null if the operator does not exist for the type. 16-bit floats are computed in float: only kCopy, kSplat and
  // kRoundTo accept them.
  TileFn (*find)(TileOp op, mge_dtype type);
};
struct TileBinaryTable {
  TileFn (*find)(TileOp op, mge_dtype type, int mode);  // operands have `type`; comparisons return bool
};
struct TileCastTable {
  TileFn (*find)(mge_dtype from, mge_dtype to);
};

// Instructions between float32 (a of quantize) and integers. b is the scale, c the zero point, of the integers' type. The first
// parameter is 0 if there is no scale, 1 for one, 2 for one per element; the second is the same for the zero point.
struct TileQuantizeTable {
  // out = saturate(round(a / scale) + zero point). At most one scale. NaN gives the lowest integer.
  TileFn (*quantize)(mge_dtype to, bool zero_per_element);
  // out = (a - zero point) * scale. `per_element`: whether scales or zero points are.
  TileFn (*dequantize)(mge_dtype from, bool per_element);
};

MGE_CPU_DISPATCH(TileUnaryTable, TileUnary)
MGE_CPU_DISPATCH(TileBinaryTable, TileBinary)
MGE_CPU_DISPATCH(TileBinaryTable, TileLogic)
MGE_CPU_DISPATCH(TileCastTable, TileCast)
MGE_CPU_DISPATCH(TileQuantizeTable, TileQuantize)

// Returns the micro-kernel for an instruction set, or the portable one (integers have no other). For kWhere, `type` is the
// type of the second operand.
inline TileFn FindTile(Isa isa, TileOp op, mge_dtype type, int mode) {
  for (Isa i : {isa, Isa::kPortable}) {
    if (mode == kTileVectors) {
      if (TileFn f = TileUnary(i).find(op, type)) return f;
    }
    if (TileFn f = TileBinary(i).find(op, type, mode)) return f;
    if (TileFn f = TileLogic(i).find(op, type, mode)) return f;
  }
  return nullptr;
}
inline TileFn FindCast(Isa isa, mge_dtype from, mge_dtype to) {
  TileFn f = TileCast(isa).find(from, to);
  return f ? f : TileCast(Isa::kPortable).find(from, to);
}

inline TileFn FindQuantize(Isa isa, mge_dtype to, bool zero_per_element) {
  TileFn f = TileQuantize(isa).quantize(to, zero_per_element);
  return f ? f : TileQuantize(Isa::kPortable).quantize(to, zero_per_element);
}
inline TileFn FindDequantize(Isa isa, mge_dtype from, bool per_element) {
  TileFn f = TileQuantize(isa).dequantize(from, per_element);
  return f ? f : TileQuantize(Isa::kPortable).dequantize(from, per_element);
}

}  // namespace mge::cpu
