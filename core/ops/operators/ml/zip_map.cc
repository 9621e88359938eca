// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/ops/families/ml.h"

namespace mge::op_zip_map {
namespace {

absl::StatusOr<ClassLabels> Read(const Attributes& attrs, int64_t columns) {
  MGE_ASSIGN_OR_RETURN(ClassLabels labels, ReadLabels(attrs, "classlabels_int64s"));
  MGE_RETURN_IF_ERROR(RequireSize("the number of columns", columns, labels.count()));
  return labels;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_RETURN_IF_ERROR(Read(ctx.attrs(), shape.columns).status());
  ctx.SetOutput(0, UnrankedType(DType::kF32), ValueKind::kMapSequence);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(ctx.input(0).shape()));
  MGE_ASSIGN_OR_RETURN(const ClassLabels labels, Read(ctx.attrs(), shape.columns));
  const Tensor keys = labels.as_text() ? Tensor::Vector<std::string>(labels.texts) : Tensor::Vector<int64_t>(labels.ints);
  // The values of all maps are parts of one tensor, a copy, because the input's memory is reused.
  MGE_ASSIGN_OR_RETURN(Tensor all, Tensor::Create(DType::kF32, ctx.input(0).shape(), ctx.allocator()));
  if (all.elements() > 0) std::memcpy(all.mutable_data(), ctx.input(0).data(), static_cast<size_t>(all.bytes()));
  HostValue out;
  out.kind = ValueKind::kMapSequence;
  out.sequence.reserve(static_cast<size_t>(2 * shape.rows));
  for (int64_t row = 0; row < shape.rows; ++row) {
    out.sequence.push_back(keys);
    out.sequence.push_back(all.Within(DType::kF32, {shape.columns}, all.Data<float>().data() + row * shape.columns));
  }
  return ctx.SetOutput(0, std::move(out));
}

}  // namespace

MGE_OP(zip_map) = {
    .name = "ZipMap",
    .domain = kMlDomain,
    .doc = "A sequence of maps, one for each row, from the labels to the elements of the row.",
    .inputs = {{"X", {DType::kF32}}},
    .outputs = {{"Z"}},
    .attrs = {{"classlabels_int64s", AttrType::kInts, Presence::kOptional, "the classes; absent: the strings have them"},
              {"classlabels_strings", AttrType::kTexts, Presence::kOptional, "the classes; absent: the integers have them"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_zip_map
