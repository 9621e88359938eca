// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/ml.h"

namespace mge::op_category_mapper {
namespace {

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  if (type.dtype != DType::kUndefined) type.dtype = type.dtype == DType::kString ? DType::kI64 : DType::kString;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::StatusOr<LookupTable> TableFor(const Attributes& attrs, DType x) {
  const Tensor texts = Tensor::Vector<std::string>(attrs.TextList("cats_strings"));
  const Tensor ints = Tensor::Vector<int64_t>(attrs.IntList("cats_int64s"));
  if (x == DType::kString) return LookupTable{texts, ints, Tensor::Scalar(attrs.Int("default_int64"))};
  return LookupTable{ints, texts, Tensor::Scalar(attrs.Text("default_string"))};
}

absl::Status Eval(EvalContext& ctx) {
  return EvalLookup(ctx, [&] { return TableFor(ctx.attrs(), ctx.input(0).dtype()); });
}

}  // namespace

MGE_OP(category_mapper) = {.name = "CategoryMapper",
                           .domain = kMlDomain,
                           .doc = "Replaces strings by integers, or integers by strings.",
                           .inputs = {{"X", {DType::kString, DType::kI64}}},
                           .outputs = {{"Y"}},
                           .attrs = {{"cats_int64s", AttrType::kInts, Presence::kRequired, "the categories"},
                                     {"cats_strings", AttrType::kTexts, Presence::kRequired, "the categories"},
                                     {"default_int64", -1, "the value of an unknown key"},
                                     {"default_string", "_Unused", "the value of an unknown key"}},
                           .infer = Infer,
                           .eval = Eval,
                           .traits = kHostOnly};

}  // namespace mge::op_category_mapper
