// SPDX-License-Identifier: Apache-2.0
// Shape rules and evaluators that several operators share.
#pragma once

#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {

// Output 0 has the type and shape of input 0.
absl::Status SameTypeAsFirst(InferContext& ctx);

// Output 0 has input 0's element type and all inputs' broadcast shape. Element types must agree.
absl::Status BroadcastInfer(InferContext& ctx);

// The same with a bool output (comparisons, logic).
absl::Status BroadcastBoolInfer(InferContext& ctx);

// Axis attributes and axes inputs: normalised, unique, sorted. Empty optional means "all axes".
absl::StatusOr<Ints> NormalizeAxes(const Ints& axes, int64_t rank);

// Walks a broadcast: for every output index, the offset into each input. `strides` are those of the inputs,
// 0 along broadcast dimensions, aligned to the output's rank.
Shape BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> out);

// Increments a multi-index; false after the last one.
bool NextIndex(std::span<const int64_t> shape, std::span<int64_t> index);

// y[i] = f(x[i]) in T's compute type, for input 0 and output 0. `Group` picks the types (DispatchFloating...).
template <typename T, typename F>
void MapUnary(const Tensor& x, Tensor& y, F f) {
  auto in = x.Data<T>();
  auto out = y.MutableData<T>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<T>(f(static_cast<Compute<T>>(in[i])));
}

// Evaluator body for elementwise floating operators: y = f(x), f generic over float and double.
template <typename F>
absl::Status EvalUnaryFloating(EvalContext& ctx, F f) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  bool ok = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapUnary<T>(x, *y, f);
  });
  return ok ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Evaluator body for elementwise numeric operators.
template <typename F>
absl::Status EvalUnaryNumeric(EvalContext& ctx, F f) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  bool ok = DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapUnary<T>(x, *y, f);
  });
  return ok ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// out[i] = f(a[..], b[..]) with broadcasting; T in, R out.
template <typename T, typename R, typename F>
void BroadcastBinary(const Tensor& a, const Tensor& b, Tensor& out, F f) {
  auto x = a.Data<T>();
  auto y = b.Data<T>();
  auto z = out.MutableData<R>();
  if (z.empty()) return;
  if (a.shape() == b.shape()) {
    for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<R>(f(x[i], y[i]));
    return;
  }
  Shape sa = BroadcastStrides(a.shape(), out.shape());
  Shape sb = BroadcastStrides(b.shape(), out.shape());
  Shape index(out.shape().size(), 0);
  size_t i = 0;
  do {
    int64_t ia = 0, ib = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      ia += index[d] * sa[d];
      ib += index[d] * sb[d];
    }
    z[i++] = static_cast<R>(f(x[ia], y[ib]));
  } while (NextIndex(out.shape(), std::span<int64_t>(index.data(), index.size())) && i < z.size());
}

}  // namespace mge
