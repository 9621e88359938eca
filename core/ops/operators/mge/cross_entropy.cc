// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/ops/function_body.h"
#include "core/ops/infer_checks.h"
#include "fmt/format.h"

namespace mge::op_cross_entropy {
namespace {

absl::Status Infer(InferContext& ctx) {
  for (int i : {0, 1}) ctx.SetOutput(i, MakeType(ctx.input(0).dtype, {}));
  return absl::OkStatus();
}

// Returns the dimension of the classes: the one that the labels lack. If several fit, it is the first of them.
absl::StatusOr<int64_t> ClassAxis(const FunctionBody& f) {
  const Shape scores = f.dims(0), labels = f.dims(1);
  for (size_t axis = 1; axis < scores.size(); ++axis) {
    Shape others = scores;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
    if (others == labels) return static_cast<int64_t>(axis);
  }
  return f.Invalid(fmt::format("labels {} do not fit scores {}; they have the dimensions of the scores without the classes",
                               ShapeText(labels), ShapeText(scores)));
}

// Counts the labels that are numbers of classes. They are compared with all classes, so that the result consists of
// elementwise operators and sums.
absl::StatusOr<bool> Body(FunctionBody& f) {
  if (!f.has_rank(0)) return false;
  const int64_t rank = f.rank(0);
  int64_t axis = f.attrs().Int("axis", rank == 2 ? 1 : 0);
  if (axis < 0) axis += rank;
  if (axis == 0) {
    if (!f.IsStatic()) return false;
    MGE_ASSIGN_OR_RETURN(axis, ClassAxis(f));
  }
  const Term log_probabilities = f.Of("LogSoftmax", {f.input(0)}, IntAttribute("axis", axis));
  const ValueId classes = f.Add("Gather", {f.ShapeOf(f.x()), f.Constant(Tensor::Scalar<int64_t>(axis))});
  ValueId numbers =
      f.Add("Range", {f.Constant(Tensor::Scalar<int64_t>(0)), classes, f.Constant(Tensor::Scalar<int64_t>(1))});
  Ints trailing;
  for (int64_t d = 1; d < rank - axis; ++d) trailing.push_back(d);
  if (!trailing.empty()) numbers = f.Add("Unsqueeze", {numbers, f.Integers(trailing)});
  const ValueId equal = f.Add("Equal", {f.Add("Unsqueeze", {f.input(1), f.Integers({axis})}), numbers});
  const Term chosen = f.CastTo({f, equal}, f.dtype(0));
  f.Result(0, "Neg", {f.SumAll(chosen * log_probabilities).id()});
  f.Result(1, "Identity", {f.SumAll(chosen).id()});
  return true;
}

}  // namespace

MGE_OP(cross_entropy) = {
    .name = "CrossEntropy",
    .domain = "mge",
    .doc =
        "The sum of -log(softmax(scores)) at the labels, numbers of classes, and their count. Other labels do not count. "
        "The "
        "classes are the dimension `axis`; 0, the default: the one that the labels lack.",
    .inputs = {{"scores", kFloating}, {"labels", {DType::kI64}}},
    .outputs = {{"sum"}, {"count"}},
    .attrs = {AxisOf({"axis", AttrType::kInt, Presence::kOptional,
                      "the axis of classes; absent: the second of a matrix, else the first"})},
    .infer = Infer,
    .eval = EvalByBody,
    .body = Body,
    .examples = {"(T[3,5], int64[3]<1,-1,4>) -> 2", "(T[2,5,3], int64[2,3]<1,0,4,-7,2,2>) -> 2",
                 "(T[2,3,5], int64[2,3]<1,0,4,-7,2,2>) -> 2", "(T[2,3,3], int64[2,3]<1,0,2,2,1,2>) {axis=-1} -> 2"},
};

}  // namespace mge::op_cross_entropy
