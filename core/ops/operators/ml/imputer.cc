// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"

namespace mge::op_imputer {
namespace {

// Returns the value of each feature, or one for all.
template <typename T>
std::vector<T> Imputed(const Attributes& attrs) {
  if constexpr (std::is_floating_point_v<T>) {
    const Floats list = attrs.FloatList("imputed_value_floats");
    return {list.begin(), list.end()};
  } else {
    const Ints list = attrs.IntList("imputed_value_int64s");
    std::vector<T> out;
    for (int64_t v : list) out.push_back(static_cast<T>(v));
    return out;
  }
}

template <typename T>
absl::Status Replace(EvalContext& ctx, int64_t columns, const Tensor& x, Tensor& y) {
  const std::vector<T> imputed = Imputed<T>(ctx.attrs());
  const size_t count = imputed.size();
  if (count != 1 && static_cast<int64_t>(count) != columns) {
    return ctx.Invalid(fmt::format("{} imputed values for {} features; give 1, or one for each", count, columns));
  }
  T replaced;
  if constexpr (std::is_floating_point_v<T>) {
    replaced = static_cast<T>(ctx.attrs().Float("replaced_value_float"));
  } else {
    replaced = static_cast<T>(ctx.attrs().Int("replaced_value_int64"));
  }
  const bool nan = replaced != replaced;
  std::span<const T> in = x.Data<T>();
  std::span<T> out = y.MutableData<T>();
  for (size_t i = 0; i < in.size(); ++i) {
    const bool missing = nan ? in[i] != in[i] : in[i] == replaced;
    out[i] = missing ? imputed[i % count] : in[i];
  }
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, x.dtype(), x.shape()));
  switch (x.dtype()) {
    case DType::kF32: return Replace<float>(ctx, shape.columns, x, *y);
    case DType::kF64: return Replace<double>(ctx, shape.columns, x, *y);
    case DType::kI64: return Replace<int64_t>(ctx, shape.columns, x, *y);
    default: return Replace<int32_t>(ctx, shape.columns, x, *y);
  }
}

}  // namespace

MGE_OP(imputer) = {
    .name = "Imputer",
    .domain = kMlDomain,
    .doc = "Replaces each element equal to replaced_value by the imputed value of its feature.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}},
    .attrs = {{"imputed_value_floats", AttrType::kFloats, Presence::kOptional,
               "the new values, one or one per feature; absent: those of integers"},
              {"imputed_value_int64s", AttrType::kInts, Presence::kOptional,
               "the new values, one or one per feature; absent: those of floats"},
              {"replaced_value_float", 0.0f, "the value to replace"},
              {"replaced_value_int64", 0, "the value to replace"}},
    .infer = SameTypeAsFirst,
    .eval = Eval,
    .in_place = {{0, 0}},
    .examples = {"(T[5,3]@0:2) {imputed_value_floats=[1.5,2.5,3.5], imputed_value_int64s=[7,8,9], "
                 "replaced_value_float=1.0, replaced_value_int64=1}",
                 "(T[67]) {imputed_value_floats=[0.5], imputed_value_int64s=[3]}"},
};

}  // namespace mge::op_imputer
