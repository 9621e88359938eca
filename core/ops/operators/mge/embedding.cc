// SPDX-License-Identifier: Apache-2.0
#include "core/ops/function_body.h"
#include "core/ops/gradient.h"

namespace mge::op_embedding {
namespace {

absl::StatusOr<bool> Body(FunctionBody& f) {
  f.Result(0, "Gather", {f.input(0), f.input(1)});
  return true;
}

// Adds the rows of the gradient to those of zeros that were gathered, but for the indices of padding.
absl::Status Gradient(GradientContext& g) {
  const Term indices = g.Of("Unsqueeze", {g.CastTo(g.x(1), DType::kI64).id(), g.Integers({-1})});
  const ValueId padding = g.Constant(Tensor::Scalar<int64_t>(g.attrs().Int("padding_idx")));
  const Term rows = g.Where(g.Add("Equal", {indices.id(), padding}), g.Number(0), g.dy());
  const Term gradient =
      g.Of("ScatterND", {g.Fill(0, g.x()).id(), indices.id(), rows.id()}, OneAttribute("reduction", std::string("add")));
  return g.Set(0, gradient);
}

}  // namespace

MGE_OP(embedding) = {
    .name = "Embedding",
    .domain = "mge",
    .doc = "Rows of a matrix, selected by indices, as Gather. The index padding_idx adds nothing to the matrix's gradient.",
    .inputs = {{"weight", kFloating}, {"indices", kIndex}},
    .outputs = {{"output"}},
    .attrs = {{"padding_idx", AttrType::kInt, Presence::kRequired, "the row of padding; not negative"}},
    .infer = InferByBody,
    .eval = EvalByBody,
    .gradient = Gradient,
    .body = Body,
    .examples = {"(T[5,3], int64[2,2]<0,3,4,3>) {padding_idx=2}"},
};

}  // namespace mge::op_embedding
