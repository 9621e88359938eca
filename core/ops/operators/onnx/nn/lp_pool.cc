// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/pool.h"

namespace mge::op_lp_pool {
namespace {

absl::Status Upgrade(Graph&, Node& node) { return UpgradeNorm(node); }

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ReadNorm(ctx.attrs()).status());
  return InferPool(ctx);
}

template <typename T>
absl::Status Pool(EvalContext& ctx, const PoolGeometry& g, int64_t p, const T* x, T* y) {
  const int64_t in_size = Elements(WindowInputs(g.window)), out_size = Elements(WindowOutputs(g.window));
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const T* in = x + plane * in_size;
    ForEachWindow(g.window, [&](int64_t output, std::span<const int64_t> offsets) {
      double sum = 0;
      for (int64_t offset : offsets) {
        sum += std::pow(std::abs(static_cast<double>(static_cast<Compute<T>>(in[offset]))), static_cast<double>(p));
      }
      y[plane * out_size + output] = static_cast<T>(static_cast<Compute<T>>(std::pow(sum, 1.0 / static_cast<double>(p))));
    });
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t p, ReadNorm(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(PoolGeometry g, ResolvePool(ctx.attrs(), x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), g.output));
  if (y->elements() == 0) return absl::OkStatus();
  absl::Status status;
  bool known = DispatchFloating(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    status = Pool<T>(ctx, g, p, x.Data<T>().data(), y->MutableData<T>().data());
  });
  return known ? status : ctx.Unsupported(std::string(DTypeName(x.dtype())));
}

}  // namespace

MGE_OP(lp_pool) = {
    .name = "LpPool",
    .doc = "The p-norm of every window.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kWindowShapeAttr, {"p", 2, "the norm"}, kPadsAttr, kStridesAttr},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .normalize = NormalizePool<>,
    .examples = {"(T[1,2,7,5]) {kernel_shape=[3,2]}"},
};

}  // namespace mge::op_lp_pool
