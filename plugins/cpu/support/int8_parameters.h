// SPDX-License-Identifier: Apache-2.0
// The scales, zero points and biases of 8-bit products and convolutions, and the arrays per column that kernels compute from
// them at the start of each run.
#pragma once

#include "mge/plugin.hpp"
#include "support/epilogue.h"
#include "support/gemm.h"
#include "support/work.h"
#include "vec/int8.h"

namespace mge::cpu {

// An operand with one number, or one per column.
struct Int8Parameter {
  int operand = -1;  // -1: absent
  mge_dtype type = MGE_DTYPE_UNDEFINED;
  bool per_column = false;
  Slot slot = {};

  bool present() const { return operand >= 0; }
  float Number(const mge_run* run, int64_t column) const;
  int32_t Integer(const mge_run* run, int64_t column) const;
};

// The parameters of a problem. Its first node is MatMulInteger, QLinearMatMul, ConvInteger or QLinearConv. After an integer
// one, these may follow: Cast, Mul by a scale, Add of a bias, QuantizeLinear.
struct Int8Parameters {
  Int8Parameter a_scale, a_zero, b_scale, b_zero, y_scale, y_zero;
  Int8Parameter start;        // int32, added to the sums
  Int8Parameter scale, bias;  // float32, of the nodes that follow
  Int8Result result = Int8Result::kInt32;
  bool a_signed = false, b_signed = false;

  void Bind(const Binding& b);
  // Returns whether another operand of the problem is a parameter too.
  bool Has(int operand) const;
};

// Reads the parameters. `columns` is the size of the output's channel dimension. Fails with the reason if the nodes are not
// supported.
Result FindInt8Parameters(const Problem& p, ChannelAxis axis, int64_t columns, Int8Parameters* out);
// The last node of a group that begins with an integer product.
enum class Int8Step { kSums, kCast, kScaled, kBiased, kQuantized };
// Returns whether the group can grow by `next`, which reads its result `value`. Then advances the step. `columns`: as above.
bool FollowsInt8(const Node& next, int32_t value, ChannelAxis axis, int64_t columns, Int8Step& step);

// The numbers of the inputs that are the two tensors.
int Int8LeftInput(const Node& n);
int Int8RightInput(const Node& n);

// The arrays of a run. An array has `padded` elements for each set of columns, such as a group.
struct Int8Columns {
  int64_t sets, n, padded;
  bool sets_differ;  // parameters have numbers for all sets

  uint64_t bytes() const { return static_cast<uint64_t>(4 * sets * padded) * 4; }
  int32_t* start(void* memory, int64_t set) const { return static_cast<int32_t*>(memory) + set * padded; }
  int32_t* zero(void* memory, int64_t set) const { return start(memory, sets + set); }
  float* scale(void* memory, int64_t set) const { return reinterpret_cast<float*>(start(memory, 2 * sets + set)); }
  float* bias(void* memory, int64_t set) const { return reinterpret_cast<float*>(start(memory, 3 * sets + set)); }
};

// Writes the arrays of a set. `sums` are the sums of B's packed bytes, which are `b_moved` more than B's. `a_moved`: the same
// for A. Sets the members of the task that the arrays and parameters give.
void WriteInt8Columns(const Int8Parameters& p, const Int8Columns& columns, const mge_run* run, int64_t set,
                      const int32_t* sums, int32_t a_moved, int32_t b_moved, void* memory, Int8Task& task);

// Returns one thread's time for the sums of products and the steps that follow.
double Int8SerialUs(const GemmSize& size, Isa isa, double copies_ns);

inline uint64_t Aligned64(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace mge::cpu
