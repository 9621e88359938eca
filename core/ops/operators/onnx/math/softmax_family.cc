// SPDX-License-Identifier: Apache-2.0
// Softmax and its kin along an axis.
#include <algorithm>
#include <cmath>

#include "core/ops/families/softmax.h"
#include "core/ops/gradient.h"

namespace mge::op_softmax_family {
namespace {

absl::Status EvalHardmax(EvalContext& ctx) {
  return EvalRows(ctx, [](const auto* in, auto* out, int64_t n, int64_t stride) {
    using T = std::decay_t<decltype(*out)>;
    using C = Compute<T>;
    int64_t best = 0;
    C top = static_cast<C>(in[0]);
    for (int64_t k = 1; k < n && top == top; ++k) {
      const C x = static_cast<C>(in[k * stride]);
      if (x <= top) continue;
      top = x;
      best = k;
    }
    for (int64_t k = 0; k < n; ++k) out[k * stride] = T(k == best ? 1.0f : 0.0f);
  });
}

// Sets each element to finish(sum)(x - top), where top is the largest element of its row, and sum that of all exp(x - top).
template <typename Finish>
absl::Status EvalExponentials(EvalContext& ctx, Finish finish) {
  return EvalRows(ctx, [&](const auto* in, auto* out, int64_t n, int64_t stride) {
    using T = std::decay_t<decltype(*out)>;
    using C = Compute<T>;
    C top = static_cast<C>(in[0]);
    for (int64_t k = 1; k < n; ++k) top = std::max(top, static_cast<C>(in[k * stride]));
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += std::exp(static_cast<C>(in[k * stride]) - top);
    const auto f = finish(sum);
    for (int64_t k = 0; k < n; ++k)
      out[k * stride] = static_cast<T>(static_cast<C>(f(static_cast<C>(in[k * stride]) - top)));
  });
}

absl::Status EvalLogSoftmax(EvalContext& ctx) {
  return EvalExponentials(
      ctx, [](double sum) { return [shift = std::log(sum)](auto x) { return x - static_cast<decltype(x)>(shift); }; });
}

absl::Status EvalSoftmax(EvalContext& ctx) {
  return EvalExponentials(ctx, [](double sum) { return [sum](auto x) { return std::exp(x) / sum; }; });
}

absl::Status LogSoftmaxGradient(GradientContext& g) {
  const Ints axis = {g.attrs().Int("axis")};
  return g.Set(0, g.dy() - Unary("Exp", g.y()) * g.Sum(g.dy(), axis));
}

absl::Status SoftmaxGradient(GradientContext& g) {
  const Ints axis = {g.attrs().Int("axis")};
  return g.Set(0, g.y() * (g.dy() - g.Sum(g.dy() * g.y(), axis)));
}

constexpr OpDef Row(std::string_view name, std::string_view doc, EvalFn eval, GradientFn gradient,
                    Few<std::string_view, 12> examples) {
  return {.name = name,
          .doc = doc,
          .inputs = {{"input", kFloating}},
          .outputs = {{"output"}},
          .attrs = kSoftmaxAttrs,
          .infer = SoftmaxInfer,
          .eval = eval,
          .upgrade = UpgradeSoftmax,
          .gradient = gradient,
          .in_place = {{0, 0}},
          .examples = examples};
}

constexpr OpDef kRows[] = {
    Row("Hardmax", "1 at the first largest element along an axis, 0 elsewhere. NaN is the largest.", EvalHardmax,
        ZeroGradient, {"(T[2,5,3])"}),
    Row("LogSoftmax", "Logarithm of the softmax along an axis.", EvalLogSoftmax, LogSoftmaxGradient,
        {"(T[3,37])", "(T[2,5,3])", "(T[2,3,4,5]) {axis=1}", "(T[3,37]@-100:100)", "(T[257,3])", "(T[9,7]@rare)"}),
    Row("Softmax", "exp(x) divided by its sum along an axis.", EvalSoftmax, SoftmaxGradient,
        {"(T[3,37])", "(T[2,5,3])", "(T[2,3,4,5]) {axis=1}", "(T[1,1])", "(T[3,37]@-100:100)", "(T[257,3])", "(T[2,20011])",
         "(T[2,3,131]) {axis=1}", "(T[9,7]@rare)"}),
};

}  // namespace

MGE_OPS(softmax_family) = kRows;

}  // namespace mge::op_softmax_family
