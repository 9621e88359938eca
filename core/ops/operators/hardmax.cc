// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/softmax.h"
#include "core/ops/gradient.h"

namespace mge::op_hardmax {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRows(ctx, [](const auto* in, auto* out, int64_t n, int64_t stride) {
    using T = std::decay_t<decltype(*out)>;
    using C = Compute<T>;
    int64_t best = 0;
    for (int64_t k = 0; k < n; ++k) {
      if (static_cast<C>(in[k * stride]) > static_cast<C>(in[best * stride])) best = k;
    }
    for (int64_t k = 0; k < n; ++k) out[k * stride] = T(k == best ? 1.0f : 0.0f);
  });
}

}  // namespace

MGE_OP(hardmax) = {
    .name = "Hardmax",
    .doc = "1 at the first largest element along an axis, 0 elsewhere.",
    .inputs = {{"input", kFloating}},
    .outputs = {{"output"}},
    .attrs = kSoftmaxAttrs,
    .infer = SoftmaxInfer,
    .eval = Eval,
    .upgrade = UpgradeSoftmax,
    .gradient = ZeroGradient,
    .in_place = {{0, 0}},
    .examples = {"(T[2,5,3])"},
};

}  // namespace mge::op_hardmax
