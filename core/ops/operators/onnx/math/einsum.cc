// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/einsum.h"

#include <algorithm>
#include <vector>

#include "core/ops/families/reduce.h"
#include "core/ops/gradient.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_einsum {
namespace {

absl::Status Infer(InferContext& ctx) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.input(i).dtype != ctx.input(0).dtype && ctx.input(i).dtype != DType::kUndefined &&
        ctx.input(0).dtype != DType::kUndefined) {
      return ctx.Invalid("inputs have different types");
    }
    if (!ctx.input(i).has_rank) {
      ctx.SetOutput(0, UnrankedType(ctx.input(0).dtype));
      return absl::OkStatus();
    }
    shapes.push_back(ctx.input(i).dims);
  }
  MGE_ASSIGN_OR_RETURN(EinsumEquation eq, ParseEinsum(ctx.attrs().Text("equation"), shapes));
  Shape out;
  for (int label : eq.output) out.push_back(eq.size[label]);
  ctx.SetOutput(0, MakeType(ctx.input(0).dtype, std::move(out)));
  return absl::OkStatus();
}

// A factor with a label for each dimension. Labels may repeat (diagonals).
template <typename A>
struct Factor {
  Tensor data;  // element type A
  Labels labels;
  Shape shape;
};

// Returns the strides of a factor along `labels`: 0 for labels that it does not have or broadcasts.
template <typename A>
Shape StridesAlong(const Factor<A>& f, const Labels& labels) {
  Shape own = Strides(f.shape), out(labels.size(), 0);
  for (size_t d = 0; d < f.labels.size(); ++d) {
    auto at = std::find(labels.begin(), labels.end(), f.labels[d]);
    if (at != labels.end() && f.shape[d] != 1) out[at - labels.begin()] += own[d];
  }
  return out;
}

// Returns the product of two factors, summed over labels that are not in `keep`. The time is the product of all sizes
// involved.
template <typename A>
absl::StatusOr<Factor<A>> Contract(EvalContext& ctx, EinsumEquation& eq, const Factor<A>& x, const Factor<A>& y,
                                   const Labels& keep) {
  Factor<A> out;
  for (int label : keep) {
    if (std::count(x.labels.begin(), x.labels.end(), label) || std::count(y.labels.begin(), y.labels.end(), label)) {
      out.labels.push_back(label);
      out.shape.push_back(eq.size[label]);
    }
  }
  Labels labels = out.labels;  // followed by the labels that are summed over
  for (const Labels* from : {&x.labels, &y.labels}) {
    for (int label : *from) {
      if (!std::count(labels.begin(), labels.end(), label)) labels.push_back(label);
    }
  }
  MGE_ASSIGN_OR_RETURN(out.data, Tensor::Create(kDTypeOf<A>, out.shape, ctx.allocator()));
  Shape sx = StridesAlong(x, labels), sy = StridesAlong(y, labels);
  Shape sizes, index(labels.size(), 0);
  for (int label : labels) sizes.push_back(eq.size[label]);
  size_t kept = out.labels.size();
  std::span<const int64_t> outer(sizes.data(), kept), inner(sizes.data() + kept, sizes.size() - kept);
  std::span<int64_t> outer_index(index.data(), kept), inner_index(index.data() + kept, inner.size());
  bool empty = std::find(inner.begin(), inner.end(), 0) != inner.end();
  const A *a = x.data.template Data<A>().data(), *b = y.data.template Data<A>().data();
  int64_t n = 0;
  for (A& result : out.data.template MutableData<A>()) {
    if (n++ % 4096 == 0) MGE_RETURN_IF_ERROR(ctx.CheckStop());
    int64_t ax = 0, by = 0;
    for (size_t d = 0; d < kept; ++d) {
      ax += index[d] * sx[d];
      by += index[d] * sy[d];
    }
    A sum = 0;
    if (!empty) {
      do {
        int64_t i = ax, j = by;
        for (size_t d = 0; d < inner.size(); ++d) {
          i += inner_index[d] * sx[kept + d];
          j += inner_index[d] * sy[kept + d];
        }
        sum = AddWrapping(sum, MulWrapping(a[i], b[j]));
      } while (NextIndex(inner, inner_index));
    }
    result = sum;
    NextIndex(outer, outer_index);
  }
  return out;
}

template <typename T>
absl::Status EvalTyped(EvalContext& ctx, EinsumEquation& eq, Tensor& y) {
  using A = Accumulator<T>;
  std::vector<Factor<A>> factors;
  for (int i = 0; i < ctx.input_count(); ++i) {
    Factor<A> f = {{}, eq.terms[i], ctx.input(i).shape()};
    MGE_ASSIGN_OR_RETURN(f.data, Tensor::Create(kDTypeOf<A>, f.shape, ctx.allocator()));
    auto in = ctx.input(i).Data<T>();
    auto to = f.data.template MutableData<A>();
    for (size_t k = 0; k < in.size(); ++k) to[k] = static_cast<A>(in[k]);
    factors.push_back(std::move(f));
  }
  Factor<A> result;
  result.data = Tensor::Scalar<A>(1);
  for (size_t i = 0; i < factors.size(); ++i) {
    Labels keep = eq.output;
    for (size_t later = i + 1; later < factors.size(); ++later) {
      for (int label : factors[later].labels) {
        if (!std::count(keep.begin(), keep.end(), label)) keep.push_back(label);
      }
    }
    MGE_ASSIGN_OR_RETURN(result, Contract(ctx, eq, result, factors[i], keep));
  }
  auto from = result.data.template Data<A>();
  auto out = y.MutableData<T>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = Convert<T>(from[i]);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.input(i).dtype() != ctx.input(0).dtype()) return ctx.Invalid("inputs have different types");
    shapes.push_back(ctx.input(i).shape());
  }
  MGE_ASSIGN_OR_RETURN(EinsumEquation eq, ParseEinsum(ctx.attrs().Text("equation"), shapes));
  Shape shape;
  for (int label : eq.output) shape.push_back(eq.size[label]);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, ctx.input(0).dtype(), std::move(shape)));
  absl::Status status;
  DispatchNumeric(ctx.input(0).dtype(), [&](auto tag) { status = EvalTyped<typename decltype(tag)::type>(ctx, eq, *y); });
  return status;
}

}  // namespace

MGE_OP(einsum) = {
    .name = "Einsum",
    .doc = "Einstein summation: products of the inputs, summed over the labels that are absent from the output.",
    .inputs = {{"Input", kNumeric}, {"Inputs", kNumeric, Arity::kVariadic}},
    .outputs = {{"Output"}},
    .attrs = {{"equation", AttrType::kText, Presence::kRequired, "the equation"}},
    .infer = Infer,
    .eval = Eval,
    .gradient = ReplacementGradient,
    .since = 12,
    .examples = {"(T[3,5], T[5,7]) {equation=\"ij,jk->ik\"}", "(T[2,3,5]) {equation=\"bij->bji\"}"},
};

}  // namespace mge::op_einsum
