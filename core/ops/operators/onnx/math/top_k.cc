// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/ops/families/arg_reduce.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_top_k {
namespace {

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(x.dtype));
    ctx.SetOutput(1, UnrankedType(DType::kI64));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), static_cast<int64_t>(x.dims.size())));
  Shape dims = x.dims;
  auto k = KnownInts(ctx, 1);
  dims[axis] = k && k->size() == 1 ? (*k)[0] : kUnknownDim;
  if (k && (dims[axis] < 0 || (x.dims[axis] >= 0 && dims[axis] > x.dims[axis]))) {
    return ctx.Invalid(fmt::format("K is {}, but the axis has {} elements", dims[axis], x.dims[axis]));
  }
  ctx.SetOutput(0, MakeType(x.dtype, dims));
  ctx.SetOutput(1, MakeType(DType::kI64, std::move(dims)));
  return absl::OkStatus();
}

// Returns true if `a` is larger than `b`. NaN is the largest.
template <typename C>
bool Above(C a, C b) {
  return a > b || (a != a && b == b);
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t k, ScalarInt("K", ctx.input(1)));
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  bool largest = ctx.attrs().Int("largest") != 0;
  AxisSplit split = SplitAtAxis(x.shape(), axis);
  if (k < 0 || k > split.size) return ctx.Invalid(fmt::format("K is {}, but the axis has {} elements", k, split.size));
  Shape shape = x.shape();
  shape[axis] = k;
  MGE_ASSIGN_OR_RETURN(Tensor * values, ctx.Output(0, x.dtype(), shape));
  MGE_ASSIGN_OR_RETURN(Tensor * indices, ctx.Output(1, DType::kI64, shape));
  if (values->elements() == 0) return absl::OkStatus();
  std::vector<int64_t> order(split.size);
  DispatchNumeric(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    auto out = values->MutableData<T>();
    auto out_index = indices->MutableData<int64_t>();
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t i = 0; i < split.inner; ++i) {
        const T* row = x.Data<T>().data() + o * split.size * split.inner + i;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
          C va = static_cast<C>(row[a * split.inner]), vb = static_cast<C>(row[b * split.inner]);
          if (largest ? Above(va, vb) : Above(vb, va)) return true;
          if (largest ? Above(vb, va) : Above(va, vb)) return false;
          return a < b;
        });
        for (int64_t n = 0; n < k; ++n) {
          int64_t at = (o * k + n) * split.inner + i;
          out[at] = row[order[n] * split.inner];
          out_index[at] = order[n];
        }
      }
    }
  });
  return absl::OkStatus();
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version < 10) MoveAttributeToInput(graph, node, "k", 1);
  return absl::OkStatus();
}

absl::Status Gradient(GradientContext& g) {
  Attributes attrs = IntAttribute("axis", g.attrs().Int("axis"));
  attrs.Set("reduction", std::string("add"));
  return g.Set(0, g.Of("ScatterElements", {g.Fill(0, g.x()).id(), g.y(1).id(), g.dy().id()}, std::move(attrs)));
}

}  // namespace

MGE_OP(top_k) = {
    .name = "TopK",
    .doc = "The K largest or smallest elements along an axis, sorted, and their positions.",
    .inputs = {{"X", kNumeric}, {"K", {DType::kI64}}},
    .outputs = {{"Values"}, {"Indices", kAnyType, Arity::kOptional}},
    .attrs = {AxisOf({"axis", -1, "the axis"}),
              {"largest", 1, "not 0: the largest elements, else the smallest"},
              {"sorted", 1, "not 0: the results are sorted"}},  // always sorted
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .examples = {"(T[3,17], int64[1]<4>) -> 2", "(T[5,3], int64[1]<2>) {axis=0, largest=0} -> 2"},
};

}  // namespace mge::op_top_k
