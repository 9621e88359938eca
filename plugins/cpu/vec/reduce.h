// SPDX-License-Identifier: Apache-2.0
// Reductions over any dimensions, and ArgMax and ArgMin.
#pragma once

#include "types.h"
#include "vec/dispatch.h"

namespace mge::cpu {

enum class ReduceOp : uint8_t { kSum, kMean, kMax, kMin, kProd, kL1, kL2, kLogSum, kLogSumExp, kSumSquare };
inline constexpr int kReduceOps = 10;

inline constexpr int kMaxReduceDims = 8;

// Dimensions outermost first, with strides of x in elements. y is dense over the kept dimensions. One dimension has stride 1
// in x and is described by `inner` instead of the lists. It is the innermost reduced dimension (inner_reduced) or the
// innermost kept one.
struct ReduceSpec {
  int32_t kept = 0, reduced = 0;
  bool inner_reduced = false;
  int64_t inner = 1;
  int64_t count = 1;  // elements per result
  int64_t kept_dims[kMaxReduceDims] = {}, kept_strides[kMaxReduceDims] = {};
  int64_t reduced_dims[kMaxReduceDims] = {}, reduced_strides[kMaxReduceDims] = {};
};

// Columns of y per unit if the innermost dimension is kept.
inline constexpr int64_t kReduceColumns = 64;

// Computes units [begin, end): elements of y, or blocks of kReduceColumns of its innermost dimension.
using ReduceFn = void (*)(const ReduceSpec& s, const void* x, void* y, int64_t begin, int64_t end);

// A search along an axis of n > 0 elements, `inner` apart. Units are the results, numbered over the other dimensions.
struct ArgSpec {
  int64_t n, inner;
  bool minimum, last;  // last: of equal elements, return the last
};
// Computes units [begin, end) into y[0], y[1]...: the position of the extreme element. NaN is larger, and smaller, than every
// number.
using ArgFn = void (*)(const ArgSpec& s, const void* x, int64_t* y, int64_t begin, int64_t end);

struct ReduceTable {
  ReduceFn (*find)(ReduceOp op, mge_dtype type);  // returns null for an unsupported type
  ArgFn (*arg)(mge_dtype type);
};

MGE_CPU_DISPATCH(ReduceTable, Reduce)

// Return the kernel for an instruction set. Integers have one kernel for all sets.
inline ReduceFn FindReduce(Isa isa, ReduceOp op, mge_dtype type) {
  ReduceFn f = Reduce(isa).find(op, type);
  return f ? f : Reduce(Isa::kPortable).find(op, type);
}
inline ArgFn FindArg(Isa isa, mge_dtype type) {
  ArgFn f = Reduce(isa).arg(type);
  return f ? f : Reduce(Isa::kPortable).arg(type);
}

}  // namespace mge::cpu
