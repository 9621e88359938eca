// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/support/integer_product.h"

#include <algorithm>
#include <vector>

#include "mge/plugin/problems/product.hpp"
#include "mge/plugin/problems/quantize.hpp"
#include "plugins/gpu/support/epilogue.h"
#include "plugins/gpu/support/product.h"
#include "plugins/gpu/support/row.h"

namespace mge::gpu {
namespace {

// A scale or a zero point of a factor: one number, a vector with a number per line, or a tensor that broadcasts to the factor
// and has the size 1 along k.
struct Parameter {
  int input;
  LineParameter* of;
};

// Finds the strides of a parameter along the `lines` lines of a matrix and along the batch.
Result Find(const Value& v, const Value& matrix, bool of_rows, int64_t lines, int batch_rank, LineParameter* of) {
  const auto wrong = [] { return Refusal("a scale or a zero point that differs within a line"); };
  if (v.elements() == 1 && v.rank() <= 1) return {};
  if (v.rank() == 1) {
    of->line = 1;
    return v.dim(0) == lines ? Result() : wrong();
  }
  const int64_t along = v.dim(of_rows ? -2 : -1);
  if (v.dim(of_rows ? -1 : -2) != 1 || (along != 1 && along != lines) || v.rank() > matrix.rank()) return wrong();
  of->line = along == 1 ? 0 : 1;
  int64_t step = along;
  for (int i = 3; i <= v.rank(); ++i) {
    if (v.dim(-i) != 1 && v.dim(-i) != matrix.dim(-i)) return wrong();
    of->batch[batch_rank - (i - 2)] = v.dim(-i) == 1 ? 0 : step;
    step *= v.dim(-i);
  }
  return {};
}

// The nodes behind a MatMulInteger. Values are ids in the graph; -1: absent.
struct IntegerEpilogue {
  int32_t output = -1, scale = -1, bias = -1;
  bool casts = false;
};

// Adds `next`, which reads b->output. Returns false if it does not fit.
bool Absorb(const Graph& graph, const Node& next, IntegerEpilogue* b) {
  if (HasOwnMeaning(next) || next.output_count() != 1 || !next.has_output(0)) return false;
  const Value y = next.output(0);
  if (!y.is_static() || y.dtype() != MGE_DTYPE_F32 || !std::ranges::equal(y.dims(), graph.value(b->output).dims()))
    return false;
  if (!b->casts) {
    b->casts = next.Is("Cast");
  } else {
    int32_t* operand = b->scale < 0 ? &b->scale : &b->bias;
    if (*operand >= 0 || !next.Is(operand == &b->scale ? "Mul" : "Add")) return false;
    *operand = next.input_id(next.input_id(0) == b->output ? 1 : 0);
    const Value v = graph.value(*operand);
    if (*operand == b->output || !v.is_static() || v.dtype() != MGE_DTYPE_F32) return false;
    const bool one = v.elements() == 1 && v.rank() <= y.rank();
    if (!one && !IsPerChannel(v, y, ChannelAxis::kLast)) return false;
  }
  b->output = next.output_id(0);
  return b->casts;
}

// Returns whether the columns of the product are the last dimension of the result.
bool HasColumns(const Node& n) { return n.input(0).rank() >= 2 && n.input(1).rank() >= 2; }

}  // namespace

void OfferIntegerProducts(const Pattern& pattern, ClaimList& claims) {
  for (int i = 0; i < pattern.graph().node_count(); ++i) {
    const Node n = pattern.node(i);
    if (!n.Is("MatMulInteger") || !n.has_output(0) || !n.output(0).is_static() || HasOwnMeaning(n)) continue;
    if (!n.input(0).is_static() || !n.input(1).is_static() || !HasColumns(n) || n.output(0).elements() == 0) continue;
    IntegerEpilogue epilogue = {.output = n.output_id(0)};
    std::vector<int32_t> nodes = {i};
    double saved = 0;
    for (int next = pattern.Next(i); next >= 0; next = pattern.Next(next)) {
      if (!Absorb(pattern.graph(), pattern.node(next), &epilogue)) break;
      nodes.push_back(next);
      saved += GpuUs(kAverageRoofs, 2.0 * static_cast<double>(n.output(0).bytes()));
      if (epilogue.scale >= 0) claims.Offer("integer_product", nodes, saved);
    }
  }
}

Result FindIntegerProduct(const Problem& p, IntegerProduct* out) {
  const Node n = p.node();
  const IntegerInputs at = IntegerInputsOf(n);
  const Value a = n.input(at.a), b = n.input(at.b);
  MatrixProduct sizes;
  if (Result r = ReadMatMul(a, b, &sizes); !r.ok()) return Refusal(r.text());
  IntegerMatMulArgs& args = out->args;
  const Parameter of_a[] = {{at.a_zero, &args.a_zero_of}, {at.a_scale, &args.a_scale_of}},
                  of_b[] = {{at.b_zero, &args.b_zero_of}, {at.b_scale, &args.b_scale_of}};
  const auto absent = [&](const Parameter& parameter) { return !n.has_input(parameter.input); };
  // The parameters of the rows of all batches are neighbours, or one.
  const bool merges = std::ranges::all_of(of_a, [&](const Parameter& parameter) {
    if (absent(parameter)) return true;
    const auto count = static_cast<int64_t>(n.input(parameter.input).elements());
    return count == 1 || count == sizes.batch * sizes.m;
  });
  const int64_t rows = sizes.m;
  const int batch_rank = static_cast<int>(sizes.axes.size());
  const bool merged = merges && sizes.MergeBatch();
  for (const Parameter& parameter : of_a) {
    if (absent(parameter)) continue;
    if (Result r = Find(n.input(parameter.input), a, true, rows, batch_rank, parameter.of); !r.ok()) return r;
    if (merged) *parameter.of = {n.input(parameter.input).elements() == 1 ? 0 : 1, {}};
  }
  for (const Parameter& parameter : of_b) {
    if (absent(parameter)) continue;
    if (Result r = Find(n.input(parameter.input), b, false, sizes.n, batch_rank, parameter.of); !r.ok()) return r;
  }
  args.m = sizes.m;
  args.n = sizes.n;
  args.k = sizes.k;
  args.batch = sizes.batch;
  args.batch_rank = static_cast<int32_t>(sizes.axes.size());
  for (size_t d = 0; d < sizes.axes.size(); ++d) {
    args.batch_dims[d] = sizes.axes[d].size;
    args.a_batch[d] = sizes.axes[d].a;
    args.b_batch[d] = sizes.axes[d].b;
  }
  args.a_signed = a.dtype() == MGE_DTYPE_I8;
  args.b_signed = b.dtype() == MGE_DTYPE_I8;
  out->b_matrices = static_cast<int64_t>(b.elements()) / std::max<int64_t>(1, args.k * args.n);
  const auto number = [&](int input) { return n.has_input(input) ? InputOf(p, input) : -1; };
  if (p.node_count() > 1) {
    IntegerEpilogue epilogue = {.output = n.output_id(0)};
    bool fits = n.Is("MatMulInteger") && HasColumns(n) && p.output_count() == 1;
    for (int i = 1; i < p.node_count(); ++i) fits = fits && Absorb(p.graph(), p.node(i), &epilogue);
    if (!fits || epilogue.scale < 0 || OutputNumber(p, epilogue.output) != 0) return Refusal("unsupported epilogue");
    out->result = IntegerResult::kReals;
    out->b_scale = p.operand(epilogue.scale);
    args.b_scale_of.line = p.input(out->b_scale).elements() == 1 ? 0 : 1;
    args.scale_type = static_cast<int32_t>(MGE_DTYPE_F32);
    if (epilogue.bias >= 0) {
      out->bias = p.operand(epilogue.bias);
      args.bias_step = p.input(out->bias).elements() == 1 ? 0 : 1;
    }
  }
  out->a = number(at.a);
  out->b = number(at.b);
  out->a_zero = number(at.a_zero);
  out->b_zero = number(at.b_zero);
  if (!at.quantizes()) return {};
  out->result = IntegerResult::kQuantized;
  out->a_scale = number(at.a_scale);
  out->b_scale = number(at.b_scale);
  out->y_scale = number(at.y_scale);
  out->y_zero = number(at.y_zero);
  args.y_signed = n.output(0).dtype() == MGE_DTYPE_I8;
  args.scale_type = static_cast<int32_t>(n.input(at.y_scale).dtype());
  return {};
}

}  // namespace mge::gpu
