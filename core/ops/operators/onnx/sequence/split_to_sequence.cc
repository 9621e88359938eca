// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_split_to_sequence {
namespace {

constexpr int64_t kMaxParts = 1 << 24;  // maximum number of tensors in a sequence

// Returns the lengths of the parts: 1 each, chunks of `split`, or a list.
absl::StatusOr<Ints> Parts(EvalContext& ctx, int64_t size) {
  Ints parts;
  if (!ctx.has_input(1)) {
    if (size > kMaxParts) return ctx.Invalid(fmt::format("{} parts; at most {} are supported", size, kMaxParts));
    return Ints(size, 1);
  }
  MGE_ASSIGN_OR_RETURN(parts, IntsInput(ctx, 1, kMaxParts));
  if (ctx.input(1).rank() == 0) {
    int64_t chunk = parts[0];
    if (chunk < 1) return ctx.Invalid(fmt::format("split is {}; it must be positive", chunk));
    int64_t count = size / chunk + (size % chunk != 0);
    if (count > kMaxParts) return ctx.Invalid(fmt::format("{} parts; at most {} are supported", count, kMaxParts));
    parts.assign(count, chunk);
    if (size % chunk != 0) parts.back() = size % chunk;
    return parts;
  }
  int64_t sum = 0;
  for (int64_t n : parts) {
    if (!CheckedAdd(sum, n, &sum)) return ctx.Invalid(fmt::format("split holds {}; lengths must not be negative", n));
  }
  if (sum != size) return ctx.Invalid(fmt::format("the lengths add up to {}, but the dimension has {}", sum, size));
  return parts;
}

bool DropsAxis(const Node& node) {
  bool has_split = node.inputs.size() > 1 && node.inputs[1] != kNone;
  return !has_split && node.attrs.Int("keepdims") == 0;
}

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.symbols.clear();
  if (type.has_rank) {
    MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), type.dims.size()));
    if (DropsAxis(ctx.node())) {
      type.dims.erase(type.dims.begin() + axis);
    } else {
      type.dims[axis] = ctx.has_input(1) ? kUnknownDim : 1;
    }
  }
  ctx.SetOutput(0, std::move(type), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(int64_t axis, NormalizeAxis(ctx.attrs().Int("axis"), x.rank()));
  MGE_ASSIGN_OR_RETURN(Ints parts, Parts(ctx, x.shape()[axis]));
  Shape strides = Strides(x.shape());
  HostValue out;
  out.kind = ValueKind::kSequence;
  int64_t at = 0;
  for (int64_t n : parts) {
    Shape shape = x.shape();
    shape[axis] = n;
    MGE_ASSIGN_OR_RETURN(Tensor part, Tensor::Create(x.dtype(), shape, ctx.allocator()));
    CopyStrided(x, at * strides[axis], strides, part);
    at += n;
    if (DropsAxis(ctx.node())) {
      shape.erase(shape.begin() + axis);
      part = part.Reshaped(std::move(shape));
    }
    out.sequence.push_back(std::move(part));
  }
  return ctx.SetOutput(0, std::move(out));
}

}  // namespace

MGE_OP(split_to_sequence) = {
    .name = "SplitToSequence",
    .doc = "The parts of a tensor along `axis`, as a sequence.",
    .inputs = {{"input"}, {"split", kIndex, Arity::kOptional}},
    .outputs = {{"output_sequence"}},
    .attrs = {AxisOf({"axis", 0, "the axis"}), {"keepdims", 1, "not 0: reduced axes stay with size 1"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly,
    .since = 11};

}  // namespace mge::op_split_to_sequence
