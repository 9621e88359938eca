// SPDX-License-Identifier: Apache-2.0
// Shape rules and evaluators that several operators share.
#pragma once

#include <string>
#include <type_traits>

#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {

// Returns a kInvalidNode error without a place. The caller of the rule adds the node's name.
absl::Status BadNode(std::string what);

// Sets output 0 to the type and shape of input 0.
absl::Status SameTypeAsFirst(InferContext& ctx);

// Sets output 0 to input 0's element type and the broadcast shape of all inputs. Fails if element types differ.
absl::Status BroadcastInfer(InferContext& ctx);

// Does the same with a bool output, for comparisons and logic.
absl::Status BroadcastBoolInfer(InferContext& ctx);

// Returns the axes as sorted indices in [0, rank), each once. An empty list means all axes. Fails if an axis is out of range.
absl::StatusOr<Ints> NormalizeAxes(const Ints& axes, int64_t rank);

// Returns make(), of type absl::StatusOr<T>. If the step keeps data, calls it only in the first run. It may use only the node:
// the types and shapes of the inputs may differ in the next run.
template <typename T, typename F>
absl::StatusOr<std::shared_ptr<const T>> Prepared(EvalContext& ctx, F make) {
  auto create = [&]() -> absl::StatusOr<std::shared_ptr<const T>> {
    absl::StatusOr<T> made = make();
    if (!made.ok()) return made.status();
    return std::make_shared<const T>(*std::move(made));
  };
  PreparedData* kept = ctx.prepared();
  if (!kept) return create();
  std::lock_guard lock(kept->mutex);
  if (!kept->data) {
    MGE_ASSIGN_OR_RETURN(kept->data, create());
  }
  return std::static_pointer_cast<const T>(kept->data);
}

// Returns the stride of each output dimension in an input of shape `shape`, in elements. Dimensions that are broadcast
// have stride 0. The rank of `out` must not be smaller than that of `shape`.
Shape BroadcastStrides(std::span<const int64_t> shape, std::span<const int64_t> out);

// Advances a multi-index in row-major order. Returns false after the last one, with all indices 0 again.
bool NextIndex(std::span<const int64_t> shape, std::span<int64_t> index);

// Sets y[i] = f(x[i]) for all elements. `f` computes in T's compute type. R is the element type of y.
template <typename T, typename R = T, typename F>
void MapUnary(const Tensor& x, Tensor& y, F f) {
  auto in = x.Data<T>();
  auto out = y.MutableData<R>();
  for (size_t i = 0; i < in.size(); ++i) out[i] = static_cast<R>(f(static_cast<Compute<T>>(in[i])));
}

// Dispatchers as function objects.
inline constexpr auto kForFloating = [](DType d, auto&& f) { return DispatchFloating(d, f); };
inline constexpr auto kForInteger = [](DType d, auto&& f) { return DispatchInteger(d, f); };
inline constexpr auto kForNumeric = [](DType d, auto&& f) { return DispatchNumeric(d, f); };
inline constexpr auto kForFixedSize = [](DType d, auto&& f) { return DispatchFixedSize(d, f); };
inline constexpr auto kForString = [](DType d, auto&& f) {
  if (d == DType::kString) f(TypeTag<std::string>{});
  return d == DType::kString;
};
inline constexpr auto kForBool = [](DType d, auto&& f) {
  if (d == DType::kBool) f(TypeTag<bool>{});
  return d == DType::kBool;
};

// Computes y = f(x) for the types of `dispatch`, or y = f(x, a) or f(x, a, b), where a and b are the first attributes of the
// operator, of type float. `f` computes in Compute<T>. R is the output's element type; void means that of the input.
template <typename R = void, typename Dispatch, typename F>
absl::Status EvalUnary(EvalContext& ctx, Dispatch dispatch, F f) {
  const Tensor& x = ctx.input(0);
  DType type = x.dtype();
  if constexpr (!std::is_void_v<R>) type = kDTypeOf<R>;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, type, x.shape()));
  const bool known = dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    using Out = std::conditional_t<std::is_void_v<R>, T, R>;
    auto parameter = [&](int i) { return static_cast<C>(ctx.attrs().Float(ctx.node().def->attrs[i].name)); };
    if constexpr (std::is_invocable_v<F, C>) {
      MapUnary<T, Out>(x, *y, f);
    } else if constexpr (std::is_invocable_v<F, C, C>) {
      MapUnary<T, Out>(x, *y, [&f, a = parameter(0)](C v) { return f(v, a); });
    } else {
      MapUnary<T, Out>(x, *y, [&f, a = parameter(0), b = parameter(1)](C v) { return f(v, a, b); });
    }
  });
  return known ? absl::OkStatus() : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

// Sets out[i] = f(a[..], b[..]) with broadcasting. T is the inputs' element type, R that of the output.
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
