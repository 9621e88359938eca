// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_is_inf {
namespace {

absl::Status Eval(EvalContext& ctx) {
  bool negative = ctx.attrs().Int("detect_negative") != 0;
  bool positive = ctx.attrs().Int("detect_positive") != 0;
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kBool, x.shape()));
  DispatchFloating(x.dtype(), [&](auto tag) {
    auto in = x.Data<typename decltype(tag)::type>();
    auto out = y->MutableData<bool>();
    for (size_t i = 0; i < in.size(); ++i) {
      double v = static_cast<double>(in[i]);
      out[i] = std::isinf(v) && (v < 0 ? negative : positive);
    }
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(is_inf) = {
    .name = "IsInf",
    .doc = "True if an element is infinite with a sign that the attributes select.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .attrs = {{"detect_negative", 1, "not 0: finds -inf"}, {"detect_positive", 1, "not 0: finds +inf"}},
    .infer = BoolOfFirst,
    .eval = Eval,
    .traits = kElementwise,
    .since = 10,
    .examples = {"(T[3,7])", "(T[67]@special)", "(T[67]@special) {detect_negative=0}", "(T[67]@special) {detect_positive=0}",
                 "(T[70001])"},
};

}  // namespace mge::op_is_inf
