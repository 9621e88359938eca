// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_reshape {
namespace {

// Returns the output shape. `in` is null if the rank is unknown. Dimensions copied by a 0 are divided out before -1 is
// computed, so that {0,-1} maps [0,5] to [0,5].
absl::StatusOr<Shape> Target(/*nullable*/ const Shape* in, const Ints& wanted, bool allow_zero) {
  if (static_cast<int64_t>(wanted.size()) > kMaxRank) {
    return BadNode(fmt::format("the target has {} dimensions; at most {} are supported", wanted.size(), kMaxRank));
  }
  Shape out(wanted.begin(), wanted.end());
  std::vector<bool> copied(in ? in->size() : 0, false);
  int64_t product = 1;
  std::optional<size_t> inferred;
  bool uncertain = !in;
  for (size_t i = 0; i < out.size(); ++i) {
    if (wanted[i] == -1) {
      if (inferred) return BadNode(fmt::format("the target {} has more than one -1", ShapeText(wanted)));
      inferred = i;
    } else if (wanted[i] < 0) {
      return BadNode(fmt::format("the target {} has the negative size {}", ShapeText(wanted), wanted[i]));
    } else if (wanted[i] == 0 && !allow_zero) {
      if (!in) {
        out[i] = kUnknownDim;
        continue;
      }
      if (i >= in->size()) {
        return BadNode(fmt::format("target {}: dimension {} is 0 (\"copy\"), but the input {} has only {}",
                                   ShapeText(wanted), i, ShapeText(*in), in->size()));
      }
      out[i] = (*in)[i];
      copied[i] = true;
      if (out[i] <= 0) uncertain = true;
    } else if (!CheckedMul(product, wanted[i], &product)) {
      return BadNode(fmt::format("size overflow: target {}", ShapeText(wanted)));
    }
  }
  if (inferred && allow_zero && std::find(wanted.begin(), wanted.end(), 0) != wanted.end()) {
    return BadNode(fmt::format("target {}: 0 and -1 must not be combined if allowzero is set", ShapeText(wanted)));
  }
  if (!in) return out;
  int64_t rest = 1;
  for (size_t i = 0; i < in->size(); ++i) {
    if (copied[i]) continue;
    if ((*in)[i] == kUnknownDim) {
      if (inferred) out[*inferred] = kUnknownDim;
      return out;
    }
    if (!CheckedMul(rest, (*in)[i], &rest)) return BadNode(fmt::format("size overflow: {}", ShapeText(*in)));
  }
  if (inferred) {
    if (product == 0 || rest % product != 0) {
      return BadNode(fmt::format("{} cannot become {}: no size is valid for -1", ShapeText(*in), ShapeText(wanted)));
    }
    out[*inferred] = rest / product;
  } else if (rest != product && !uncertain) {
    return BadNode(fmt::format("{} cannot become {}: the numbers of elements differ", ShapeText(*in), ShapeText(wanted)));
  }
  return out;
}

absl::Status Infer(InferContext& ctx) {
  const TensorType& x = ctx.input(0);
  if (auto wanted = KnownInts(ctx, 1)) {
    MGE_ASSIGN_OR_RETURN(Shape out, Target(x.has_rank ? &x.dims : nullptr, *wanted, ctx.attrs().Int("allowzero") != 0));
    ctx.SetOutput(0, MakeType(x.dtype, std::move(out)));
    return absl::OkStatus();
  }
  const TensorType& shape = ctx.input(1);
  bool rank_known = shape.has_rank && shape.dims.size() == 1 && shape.dims[0] >= 0 && shape.dims[0] <= kMaxRank;
  ctx.SetOutput(0, rank_known ? RankedType(x.dtype, shape.dims[0]) : UnrankedType(x.dtype));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Ints wanted, IntsInput(ctx, 1));
  MGE_ASSIGN_OR_RETURN(Shape out, Target(&x.shape(), wanted, ctx.attrs().Int("allowzero") != 0));
  MGE_ASSIGN_OR_RETURN(int64_t n, NumElements(out));
  if (n != x.elements()) {
    return ctx.Invalid(
        fmt::format("{} cannot become {}: the numbers of elements differ", ShapeText(x.shape()), ShapeText(out)));
  }
  return ctx.SetOutput(0, TensorValue(x.Reshaped(std::move(out))));
}

absl::Status Upgrade(Graph& graph, Node& node) {
  if (node.version < 5) {
    MoveAttributeToInput(graph, node, "shape", 1);
    node.attrs.Remove("consumed_inputs");  // a hint of operator set 1, ignored
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(reshape) = {.name = "Reshape",
                   .doc = "The same elements with another shape. A size of 0 copies the input's, a size of -1 is computed.",
                   .inputs = {{"data"}, {"shape", {DType::kI64}}},
                   .outputs = {{"reshaped"}},
                   .attrs = {{"allowzero", 0, "not 0: a size of 0 is 0, else a copy of the input's size"}},
                   .infer = Infer,
                   .eval = Eval,
                   .upgrade = Upgrade,
                   .gradient = SameElementsGradient,
                   .in_place = {{0, 0}},
                   .traits = kView,
                   .examples = {"(T[3,5,7], int64[2]<7,-1>)"}};

}  // namespace mge::op_reshape
