// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/softmax.h"

#include <algorithm>
#include <cmath>

#include "core/ops/gradient.h"

namespace mge::op_softmax {
namespace {

absl::Status Eval(EvalContext& ctx) {
  return EvalRows(ctx, [](const auto* in, auto* out, int64_t n, int64_t stride) {
    using T = std::decay_t<decltype(*out)>;
    using C = Compute<T>;
    C top = static_cast<C>(in[0]);
    for (int64_t k = 1; k < n; ++k) top = std::max(top, static_cast<C>(in[k * stride]));
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += std::exp(static_cast<C>(in[k * stride]) - top);
    for (int64_t k = 0; k < n; ++k) {
      out[k * stride] = static_cast<T>(static_cast<C>(std::exp(static_cast<C>(in[k * stride]) - top) / sum));
    }
  });
}

absl::Status Gradient(GradientContext& g) {
  const Ints axis = {g.attrs().Int("axis")};
  return g.Give(0, g.y() * (g.dy() - g.Sum(g.dy() * g.y(), axis)));
}

}  // namespace

MGE_OP(softmax) = {
    .name = "Softmax",
    .doc = "exp(x) divided by its sum along an axis.",
    .inputs = {{"input", kFloating}},
    .outputs = {{"output"}},
    .attrs = kSoftmaxAttrs,
    .infer = SoftmaxInfer,
    .eval = Eval,
    .upgrade = UpgradeSoftmax,
    .gradient = Gradient,
    .in_place = {{0, 0}},
    .examples = {"(T[3,37])", "(T[2,5,3])", "(T[2,3,4,5]) {axis=1}", "(T[1,1])", "(T[3,37]@-100:100)", "(T[257,3])",
                 "(T[2,20011])"},
};

}  // namespace mge::op_softmax
