// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/ops/families/ml.h"

namespace mge::op_feature_vectorizer {
namespace {

// Returns the number of columns that each input gets: those that the attribute lists, else its own.
absl::StatusOr<Ints> Widths(const Attributes& attrs, std::span<const RowShape> inputs) {
  Ints widths = attrs.IntList("inputdimensions");
  if (widths.empty()) {
    for (const RowShape& input : inputs) widths.push_back(input.columns);
    return widths;
  }
  const bool valid = std::all_of(widths.begin(), widths.end(), [](int64_t w) { return w >= 0; });
  if (valid && widths.size() == inputs.size()) return widths;
  return BadNode(
      fmt::format("inputdimensions is {}; it must have one size for each of {} inputs", ShapeText(widths), inputs.size()));
}

absl::Status Infer(InferContext& ctx) {
  std::vector<RowShape> shapes;
  RowShape out = {kUnknownDim, 0};
  for (int i = 0; i < ctx.input_count(); ++i) {
    RowShape shape;
    if (ctx.input(i).has_rank) {
      MGE_ASSIGN_OR_RETURN(shape, RowShapeOf(ctx.input(i).dims));
    }
    if (out.rows == kUnknownDim) out.rows = shape.rows;
    MGE_RETURN_IF_ERROR(RequireSize("the number of rows", shape.rows, out.rows));
    shapes.push_back(shape);
  }
  MGE_ASSIGN_OR_RETURN(Ints widths, Widths(ctx.attrs(), shapes));
  for (int64_t width : widths) {
    if (width == kUnknownDim || out.columns == kUnknownDim) {
      out.columns = kUnknownDim;
    } else if (!CheckedAdd(out.columns, width, &out.columns)) {
      return ctx.Invalid("inputdimensions has too many columns");
    }
  }
  ctx.SetOutput(0, MakeType(DType::kF32, {out.rows, out.columns}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  std::vector<RowShape> shapes;
  for (int i = 0; i < ctx.input_count(); ++i) {
    MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(ctx.input(i).shape()));
    shapes.push_back(shape);
  }
  MGE_ASSIGN_OR_RETURN(const Ints widths, Widths(ctx.attrs(), shapes));
  const int64_t rows = shapes.empty() ? 0 : shapes[0].rows;
  int64_t columns = 0;
  for (int64_t width : widths) columns += width;
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, {rows, columns}));
  float* out = y->MutableData<float>().data();
  std::fill_n(out, y->elements(), 0.0f);
  for (size_t i = 0; i < shapes.size(); out += widths[i++]) {
    MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(static_cast<int>(i)), ctx.allocator()));
    const int64_t own = shapes[i].columns;
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(x.Data<float>().data() + row * own, std::min(own, widths[i]), out + row * columns);
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(feature_vectorizer) = {
    .name = "FeatureVectorizer",
    .domain = kMlDomain,
    .doc = "Joins the columns of its inputs. Each is cut, or filled with zeros, to its number of columns.",
    .inputs = {{"X", kMlNumbers, Arity::kVariadic}},
    .outputs = {{"Y"}},
    .attrs = {{"inputdimensions", AttrType::kInts, Presence::kOptional, "the columns of each input; absent: all of them"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[3,5], T[3,2])", "(T[4,3], int64[4,3]) {inputdimensions=[2,5]}", "(T[7])"},
};

}  // namespace mge::op_feature_vectorizer
