// SPDX-License-Identifier: Apache-2.0
#include "support/int8_parameters.h"

#include <algorithm>

#include "mge/plugin/problems/quantize.hpp"
#include "support/kernel.h"

namespace mge::cpu {
namespace {

bool IsByte(mge_dtype t) { return t == MGE_DTYPE_U8 || t == MGE_DTYPE_I8; }

// Reads an operand with one number. With `columns`, it may have one per column.
Result Find(const Problem& p, const Node& n, int input, int64_t columns, Int8Parameter* out) {
  if (!n.has_input(input)) return {};
  Value v = n.input(input);
  const auto elements = static_cast<int64_t>(v.elements());
  out->per_column = elements != 1;
  if (out->per_column && (elements != columns || v.rank() < 1 || v.dim(-1) != columns)) {
    return {MGE_UNIMPLEMENTED, "scales and zero points: only one, or one per column of the right operand"};
  }
  out->operand = p.operand(n.input_id(input));
  out->type = v.dtype();
  return {};
}

// Returns the input of a Mul or Add that is not `value`, or -1 if both are or none is.
int OtherInput(const Node& n, int32_t value) {
  if ((n.input_id(0) == value) == (n.input_id(1) == value)) return -1;
  return n.input_id(0) == value ? 1 : 0;
}

// Returns whether the float32 value is one number, or one per column of y.
bool IsPerColumn(const Value& v, const Value& y, ChannelAxis axis, int64_t columns) {
  if (v.dtype() != MGE_DTYPE_F32 || !v.is_static() || v.rank() > y.rank()) return false;
  const int channel = axis == ChannelAxis::kLast ? y.rank() - 1 : 1;
  for (int i = 1; i <= v.rank(); ++i) {
    if (v.dim(-i) != 1 && (y.rank() - i != channel || v.dim(-i) != columns)) return false;
  }
  return true;
}

Result FindFollowing(const Problem& p, ChannelAxis axis, int64_t columns, Int8Parameters* out) {
  Int8Step step = Int8Step::kSums;
  auto take = [&](const Node& n, int input) {
    return Int8Parameter{p.operand(n.input_id(input)), n.input(input).dtype(), n.input(input).elements() != 1, {}};
  };
  for (int i = 1; i < p.node_count(); ++i) {
    Node n = p.node(i);
    const int32_t value = p.node(i - 1).output_id(0);
    if (!FollowsInt8(n, value, axis, columns, step)) return {MGE_UNIMPLEMENTED, "unsupported nodes after the integer sums"};
    switch (step) {
      case Int8Step::kScaled: out->scale = take(n, OtherInput(n, value)); break;
      case Int8Step::kBiased: out->bias = take(n, OtherInput(n, value)); break;
      case Int8Step::kQuantized:
        out->y_scale = take(n, 1);
        if (n.has_input(2)) out->y_zero = take(n, 2);
        break;
      default: break;
    }
  }
  if (step == Int8Step::kQuantized) {
    out->result = p.last().output(0).dtype() == MGE_DTYPE_I8 ? Int8Result::kInt8 : Int8Result::kUint8;
  } else if (step != Int8Step::kSums) {
    out->result = Int8Result::kFloat;
  }
  const mge_graph& g = *p.raw()->graph;
  if (g.output_count != 1 || g.outputs[0] != p.last().output_id(0)) return {MGE_UNIMPLEMENTED, "another output"};
  return {};
}

}  // namespace

bool FollowsInt8(const Node& next, int32_t value, ChannelAxis axis, int64_t columns, Int8Step& step) {
  if (HasOwnMeaning(next) || next.output_count() != 1 || !next.has_output(0) || !next.output(0).is_static()) return false;
  Value y = next.output(0);
  auto grow = [&](bool fits, Int8Step to) {
    if (fits) step = to;
    return fits;
  };
  if (step == Int8Step::kSums) {
    return grow(next.Is("Cast") && next.input_id(0) == value && y.dtype() == MGE_DTYPE_F32, Int8Step::kCast);
  }
  const bool scales = step == Int8Step::kCast && next.Is("Mul"), adds = step == Int8Step::kScaled && next.Is("Add");
  if (scales || adds) {
    const int other = OtherInput(next, value);
    const bool fits = other >= 0 && IsPerColumn(next.input(other), y, axis, columns) &&
                      std::ranges::equal(next.input(1 - other).dims(), y.dims());
    return grow(fits, scales ? Int8Step::kScaled : Int8Step::kBiased);
  }
  if ((step == Int8Step::kScaled || step == Int8Step::kBiased) && next.Is("QuantizeLinear")) {
    auto is_one = [&](int input, mge_dtype type) {
      return next.input(input).dtype() == type && next.input(input).is_static() && next.input(input).elements() == 1;
    };
    const bool fits = next.input_id(0) == value && IsByte(y.dtype()) && is_one(1, MGE_DTYPE_F32) &&
                      (!next.has_input(2) || is_one(2, y.dtype())) && ReadQuantization(next).block == 0 &&
                      ReadQuantization(next).division == MGE_DTYPE_F32;
    return grow(fits, Int8Step::kQuantized);
  }
  return false;
}

int Int8LeftInput(const Node& n) { return IntegerInputsOf(n).a; }
int Int8RightInput(const Node& n) { return IntegerInputsOf(n).b; }

float Int8Parameter::Number(const mge_run* run, int64_t column) const {
  if (!per_column) column = 0;
  switch (type) {
    case MGE_DTYPE_F16: return ToFloat(At<F16>(run, slot)[column]);
    case MGE_DTYPE_BF16: return ToFloat(At<BF16>(run, slot)[column]);
    default: return At<float>(run, slot)[column];
  }
}

int32_t Int8Parameter::Integer(const mge_run* run, int64_t column) const {
  if (!per_column) column = 0;
  switch (type) {
    case MGE_DTYPE_U8: return At<uint8_t>(run, slot)[column];
    case MGE_DTYPE_I8: return At<int8_t>(run, slot)[column];
    default: return At<int32_t>(run, slot)[column];
  }
}

void Int8Parameters::Bind(const Binding& b) {
  for (Int8Parameter* p : {&a_scale, &a_zero, &b_scale, &b_zero, &y_scale, &y_zero, &start, &scale, &bias}) {
    if (p->present()) p->slot = b.input(p->operand);
  }
}

bool Int8Parameters::Has(int operand) const {
  const Int8Parameter* all[] = {&a_scale, &a_zero, &b_scale, &b_zero, &y_scale, &y_zero, &start, &scale, &bias};
  return std::ranges::any_of(all, [&](const Int8Parameter* p) { return p->operand == operand; });
}

Result FindInt8Parameters(const Problem& p, ChannelAxis axis, int64_t columns, Int8Parameters* out) {
  Node n = p.node();
  const IntegerInputs at = IntegerInputsOf(n);
  Value a = n.input(at.a), b = n.input(at.b);
  if (!IsByte(a.dtype()) || !IsByte(b.dtype())) return {MGE_UNIMPLEMENTED, "only 8-bit operands"};
  out->a_signed = a.dtype() == MGE_DTYPE_I8;
  out->b_signed = b.dtype() == MGE_DTYPE_I8;
  struct Row {
    int input;
    bool per_column;
    Int8Parameter* out;
  };
  const Row rows[] = {{at.a_scale, false, &out->a_scale}, {at.a_zero, false, &out->a_zero},
                      {at.b_scale, true, &out->b_scale},  {at.b_zero, true, &out->b_zero},
                      {at.y_scale, false, &out->y_scale}, {at.y_zero, false, &out->y_zero},
                      {at.start, true, &out->start}};
  for (const Row& row : rows) {
    if (Result r = Find(p, n, row.input, row.per_column ? columns : 1, row.out); !r.ok()) return r;
  }
  if (out->a_zero.present() && out->a_zero.type != a.dtype()) return {MGE_INVALID_ARGUMENT, "a zero point of another type"};
  if (out->b_zero.present() && out->b_zero.type != b.dtype()) return {MGE_INVALID_ARGUMENT, "a zero point of another type"};
  if (at.y_scale >= 0) {
    out->result = n.output(0).dtype() == MGE_DTYPE_I8 ? Int8Result::kInt8 : Int8Result::kUint8;
    return p.node_count() == 1 ? Result() : Result(MGE_UNIMPLEMENTED, "computes one node, not a group");
  }
  return FindFollowing(p, axis, columns, out);
}

void WriteInt8Columns(const Int8Parameters& p, const Int8Columns& columns, const mge_run* run, int64_t set,
                      const int32_t* sums, int32_t a_moved, int32_t b_moved, void* memory, Int8Task& task) {
  int32_t* start = columns.start(memory, set);
  int32_t* zero = columns.zero(memory, set);
  float* scale = columns.scale(memory, set);
  float* bias = columns.bias(memory, set);
  const int64_t first = columns.sets_differ ? set * columns.n : 0;
  const auto a_zero = static_cast<uint32_t>((p.a_zero.present() ? p.a_zero.Integer(run, 0) : 0) + a_moved);
  const auto k = static_cast<uint32_t>(task.k);
  const float a_scale = p.a_scale.present() ? p.a_scale.Number(run, 0) : 1;
  const float y_scale = p.y_scale.present() ? p.y_scale.Number(run, 0) : 1;
  const int32_t first_zero = (p.b_zero.present() ? p.b_zero.Integer(run, first) : 0) + b_moved;
  bool one_zero = true;
  for (int64_t i = 0; i < columns.padded; ++i) {
    const bool real = i < columns.n;
    const int64_t column = first + (real ? i : 0);
    const int32_t b_zero = real ? (p.b_zero.present() ? p.b_zero.Integer(run, column) : 0) + b_moved : 0;
    const uint32_t own = real && p.start.present() ? static_cast<uint32_t>(p.start.Integer(run, column)) : 0;
    start[i] = static_cast<int32_t>(own - a_zero * (static_cast<uint32_t>(sums[i]) - k * static_cast<uint32_t>(b_zero)));
    zero[i] = b_zero;
    one_zero &= !real || b_zero == first_zero;
    if (p.b_scale.present()) {
      scale[i] = a_scale * p.b_scale.Number(run, column) / y_scale;  // as QLinearConv is defined
    } else {
      scale[i] = p.scale.present() ? p.scale.Number(run, column) : 1;
    }
    bias[i] = p.bias.present() ? p.bias.Number(run, column) : 0;
  }
  task.start = start;
  // The start contains a_zero's part of the product of both zero points.
  task.a_zero = 0;
  task.b_zero = one_zero ? nullptr : zero;
  task.b_one_zero = one_zero ? first_zero : 0;
  task.result = p.result;
  task.scale = p.result == Int8Result::kInt32 ? nullptr : scale;
  task.a_scale = 1;
  task.divisor = p.b_scale.present() ? 1 : y_scale;
  task.bias = p.bias.present() ? bias : nullptr;
  task.y_zero = p.y_zero.present() ? p.y_zero.Integer(run, 0) : 0;
}

double Int8SerialUs(const GemmSize& s, Isa isa, double copies_ns) {
  const bool vnni = AllowsVnni(isa);
  const double per_us = isa == Isa::kAvx512 && vnni ? 700e3
                        : vnni                      ? 300e3
                        : isa == Isa::kPortable     ? 30e3
                        : isa == Isa::kAvx2         ? 110e3
                                                    : 200e3;
  const double m = static_cast<double>(s.m), n = static_cast<double>(Int8Panels(s.n) * kInt8Columns),
               k = static_cast<double>(s.k);
  const double rows = std::max(m, std::min(4.0, 64.0 / n));
  const double arithmetic = 2.0 * rows * n * k / per_us, weights = StreamUs(k * n);
  const double finish_ns = isa == Isa::kAvx512 ? 0.05 : isa == Isa::kAvx2 ? 0.1 : 0.5;
  const double rest = StreamUs(m * n) + 1e-3 * (finish_ns * m * n + copies_ns * m * k);
  return static_cast<double>(s.batch) * (0.03 + std::max(arithmetic, weights) + rest);
}

}  // namespace mge::cpu
