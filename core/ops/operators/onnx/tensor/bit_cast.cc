// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_bit_cast {
namespace {

constexpr TypeSet kTypes = kFixedSize | kComplex;

absl::StatusOr<DType> Target(const Node& node, DType from) {
  MGE_ASSIGN_OR_RETURN(DType to, ReadDType(node.attrs, "to", kTypes));
  if (from == DType::kUndefined || ElementBytes(from) == ElementBytes(to)) return to;
  return BadNode(fmt::format("elements of {} have {} bytes, those of {} {}", DTypeName(from), ElementBytes(from),
                             DTypeName(to), ElementBytes(to)));
}

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(type.dtype, Target(ctx.node(), type.dtype));
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(DType to, Target(ctx.node(), x.dtype()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, to, x.shape()));
  auto* bytes = static_cast<uint8_t*>(y->mutable_data());
  if (x.elements() > 0) std::memmove(bytes, x.data(), static_cast<size_t>(x.bytes()));
  if (to == DType::kBool) std::transform(bytes, bytes + x.bytes(), bytes, [](uint8_t b) { return b != 0; });
  return absl::OkStatus();
}

}  // namespace

MGE_OP(bit_cast) = {
    .name = "BitCast",
    .doc = "The same bits as elements of another type of the same size. For bool, bytes other than 0 become true.",
    .inputs = {{"input", kTypes}},
    .outputs = {{"output"}},
    .attrs = {{"to", AttrType::kInt, Presence::kRequired, "the element type of the result"}},
    .infer = Infer,
    .eval = Eval,
    .in_place = {{0, 0}},
    .since = 26,
    .examples = {"(T[3,37]) {to=6}", "(T[41]) {to=1}", "(T[67]@special) {to=12}", "(T[70001]) {to=3}", "(T[3,5]) {to=5}",
                 "(T[5,7]) {to=7}"},
};

}  // namespace mge::op_bit_cast
