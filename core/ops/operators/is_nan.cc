// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/ops/families/unary.h"

namespace mge::op_is_nan {
namespace {

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kBool, x.shape()));
  DispatchFloating(x.dtype(), [&](auto tag) {
    auto in = x.Data<typename decltype(tag)::type>();
    auto out = y->MutableData<bool>();
    for (size_t i = 0; i < in.size(); ++i) out[i] = std::isnan(static_cast<double>(in[i]));
  });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(is_nan) = {
    .name = "IsNaN",
    .doc = "True if an element is NaN.",
    .inputs = {{"X", kFloating}},
    .outputs = {{"Y"}},
    .infer = BoolOfFirst,
    .eval = Eval,
    .traits = kElementwise,
    .since = 9,
};

}  // namespace mge::op_is_nan
