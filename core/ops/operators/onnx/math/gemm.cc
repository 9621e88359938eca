// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/convert.h"
#include "core/ops/families/matmul.h"
#include "core/ops/gradient.h"

namespace mge::op_gemm {
namespace {

struct Sizes {
  int64_t m, k, n;
};

absl::StatusOr<Sizes> Resolve(const Node& node, std::span<const int64_t> a, std::span<const int64_t> b,
                              /*nullable*/ const Shape* c) {
  MGE_RETURN_IF_ERROR(RequireRank("A", a, 2));
  MGE_RETURN_IF_ERROR(RequireRank("B", b, 2));
  bool ta = node.attrs.Int("transA") != 0, tb = node.attrs.Int("transB") != 0;
  Sizes s{a[ta], a[!ta], b[!tb]};
  int64_t rows = b[tb];
  if (s.k == kUnknownDim) s.k = rows;
  if (rows != kUnknownDim && rows != s.k) {
    return Fail(errors::kInvalidNode, fmt::format("A {} and B {} cannot be multiplied: {} columns do not match {} rows",
                                                  ShapeText(a), ShapeText(b), s.k, rows));
  }
  if (c) {
    const int64_t out[] = {s.m, s.n};
    bool fits = c->size() <= 2;
    for (size_t d = 0; fits && d < c->size(); ++d) {
      int64_t have = (*c)[c->size() - 1 - d], want = out[1 - d];
      fits = have == 1 || have == want || have == kUnknownDim || want == kUnknownDim;
    }
    if (!fits) {
      return Fail(errors::kInvalidNode, fmt::format("C {} cannot be broadcast to {}", ShapeText(*c), ShapeText(out)));
    }
  }
  return s;
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1, 2}));
  const TensorType &a = ctx.input(0), &b = ctx.input(1);
  TensorType out = MakeType(a.dtype, {kUnknownDim, kUnknownDim});
  if (a.has_rank && b.has_rank) {
    const Shape* c = ctx.has_input(2) && ctx.input(2).has_rank ? &ctx.input(2).dims : nullptr;
    MGE_ASSIGN_OR_RETURN(Sizes s, Resolve(ctx.node(), a.dims, b.dims, c));
    out.dims = {s.m, s.n};
  }
  ctx.SetOutput(0, std::move(out));
  return absl::OkStatus();
}

// Returns op(x) in the compute type, row-major.
template <typename T>
absl::StatusOr<Tensor> Prepared(EvalContext& ctx, const Tensor& x, bool transpose) {
  using C = Compute<T>;
  int64_t rows = x.shape()[0], columns = x.shape()[1];
  MGE_ASSIGN_OR_RETURN(Tensor out, Scratch<C>(ctx, x.elements()));
  const T* in = x.Data<T>().data();
  C* to = out.MutableData<C>().data();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      to[transpose ? j * rows + i : i * columns + j] = static_cast<C>(in[i * columns + j]);
    }
  }
  return out;
}

template <typename T>
absl::Status EvalTyped(EvalContext& ctx, const Sizes& s, Tensor& y) {
  using C = Compute<T>;
  MGE_ASSIGN_OR_RETURN(Tensor a, Prepared<T>(ctx, ctx.input(0), ctx.attrs().Int("transA") != 0));
  MGE_ASSIGN_OR_RETURN(Tensor b, Prepared<T>(ctx, ctx.input(1), ctx.attrs().Int("transB") != 0));
  float alpha = ctx.attrs().Float("alpha"), beta = ctx.attrs().Float("beta");
  const bool has_c = ctx.has_input(2) && beta != 0;  // with beta 0, C is not read, so that its NaNs have no effect
  Shape strides = has_c ? BroadcastStrides(ctx.input(2).shape(), y.shape()) : Shape{0, 0};
  const T* c = has_c ? ctx.input(2).Data<T>().data() : nullptr;
  T* out = y.MutableData<T>().data();
  std::vector<ProductSum<C>> sums(s.n);
  return MultiplyMatrices(ctx, a.Data<C>().data(), b.Data<C>().data(), s.m, s.k, s.n, sums, [&](int64_t at, auto sum) {
    const T* add = has_c ? c + at / s.n * strides[0] + at % s.n * strides[1] : nullptr;
    if constexpr (kIsFloating<T>) {
      sum *= alpha;
      if (add) sum += beta * static_cast<double>(*add);
      out[at] = static_cast<T>(static_cast<C>(sum));
    } else if (alpha == 1 && beta == 1) {
      out[at] = static_cast<T>(add ? sum + static_cast<ProductSum<C>>(*add) : sum);
    } else {
      double real = static_cast<double>(static_cast<T>(sum)) * alpha;
      out[at] = FromReal<T>(add ? real + beta * static_cast<double>(*add) : real);
    }
  });
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor &a = ctx.input(0), &b = ctx.input(1);
  if (a.dtype() != b.dtype() || (ctx.has_input(2) && ctx.input(2).dtype() != a.dtype())) {
    return ctx.Invalid("inputs have different types");
  }
  MGE_ASSIGN_OR_RETURN(Sizes s,
                       Resolve(ctx.node(), a.shape(), b.shape(), ctx.has_input(2) ? &ctx.input(2).shape() : nullptr));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, a.dtype(), {s.m, s.n}));
  absl::Status status;
  bool known = DispatchNumeric(a.dtype(), [&](auto tag) { status = EvalTyped<typename decltype(tag)::type>(ctx, s, *y); });
  return known ? status : ctx.Unsupported(std::string(DTypeName(a.dtype())));
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version < 7) node.attrs.Remove("broadcast");
  return absl::OkStatus();
}

constexpr TypeSet kTypes = kFloating | TypeSet{DType::kI32, DType::kI64, DType::kU32, DType::kU64};

absl::Status Gradient(GradientContext& g) {
  const bool transposed_a = g.attrs().Int("transA") != 0, transposed_b = g.attrs().Int("transB") != 0;
  auto product = [&](const Term& a, bool t_a, const Term& b, bool t_b) {
    Attributes attrs;
    attrs.Set("alpha", g.attrs().Float("alpha"));
    attrs.Set("transA", int64_t{t_a});
    attrs.Set("transB", int64_t{t_b});
    return g.Of("Gemm", {a.id(), b.id()}, std::move(attrs));
  };
  const Term a = g.x(0), b = g.x(1), dy = g.dy();
  if (g.wants(0)) {
    MGE_RETURN_IF_ERROR(g.Set(0, transposed_a ? product(b, transposed_b, dy, true) : product(dy, false, b, !transposed_b)));
  }
  if (g.wants(1)) {
    MGE_RETURN_IF_ERROR(g.Set(1, transposed_b ? product(dy, true, a, transposed_a) : product(a, !transposed_a, dy, false)));
  }
  const double beta = g.attrs().Float("beta");
  return g.wants(2) ? g.SetSum(2, beta == 1 ? dy : dy * beta) : absl::OkStatus();
}

}  // namespace

MGE_OP(gemm) = {
    .name = "Gemm",
    .doc = "alpha * op(A) * op(B) + beta * C, where op transposes if transA or transB is set. C is broadcast.",
    .inputs = {{"A", kTypes}, {"B", kTypes}, {"C", kTypes, Arity::kOptional}},
    .outputs = {{"Y"}},
    .attrs = {{"alpha", 1.0f, "the factor of the product"},
              {"beta", 1.0f, "the factor of C"},
              {"transA", 0, "not 0: A is transposed"},
              {"transB", 0, "not 0: B is transposed"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .examples = {"(T[3,5], T[5,7])", "(T[3,5], T[5,7], T[3,7])", "(T[5,3], T[5,7]) {transA=1}",
                 "(T[3,5], T[7,5]) {transB=1}; (T[3,5], T[5,5]) {transB=1}",
                 "(T[5,3], T[7,5], T[7]) {transA=1, transB=1, alpha=0.5, beta=2.0}", "(T[33,17], T[17,65], T[33,1])",
                 "(T[3,0], T[0,5], T[5])", "(T[5,1030], T[1030,70], T[70]) once"},
};

}  // namespace mge::op_gemm
