// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/cast.h"

#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"

namespace mge::op_cast {
namespace {

constexpr TypeSet kTypes = kFixedSize | kStrings;

absl::StatusOr<DType> Target(const Node& node) {
  int64_t to = node.attrs.Int("to");
  if (to > 0 && to < kDTypeCount && kTypes.Contains(static_cast<DType>(to))) return static_cast<DType>(to);
  return Fail(errors::kUnsupportedType, fmt::format("Cast: attribute 'to' is {}, not an element type to cast to", to),
              {.where = NodePlace(node)});
}

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(type.dtype, Target(ctx.node()));
  MGE_RETURN_IF_ERROR(CheckRoundMode(ctx.attrs()));
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType to, Target(ctx.node()));
  MGE_ASSIGN_OR_RETURN(Tensor y, CastTensor(ctx.input(0), to, ctx.allocator()));
  return ctx.SetOutput(0, TensorValue(std::move(y)));
}

absl::Status Upgrade(Graph&, Node& node) {
  if (node.version >= 6) return absl::OkStatus();
  // The target type was a name such as "FLOAT".
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"FLOAT", DType::kF32},    {"DOUBLE", DType::kF64}, {"FLOAT16", DType::kF16}, {"INT8", DType::kI8},
      {"INT16", DType::kI16},    {"INT32", DType::kI32},  {"INT64", DType::kI64},   {"UINT8", DType::kU8},
      {"UINT16", DType::kU16},   {"UINT32", DType::kU32}, {"UINT64", DType::kU64},  {"BOOL", DType::kBool},
      {"STRING", DType::kString}};
  const AttributeValue* to = node.attrs.Find("to");
  const std::string* name = to ? std::get_if<std::string>(to) : nullptr;
  if (!name) return absl::OkStatus();  // absent, or already a number
  for (auto [known, dtype] : kNames) {
    if (known == *name) {
      node.attrs.Set("to", static_cast<int64_t>(dtype));
      return absl::OkStatus();
    }
  }
  return Fail(errors::kInvalidNode, fmt::format("Cast: attribute 'to' is '{}', not an element type", *name),
              {.where = NodePlace(node)});
}

absl::Status Gradient(GradientContext& g) { return g.Give(0, g.CastTo(g.dy(), g.type(0).dtype)); }

}  // namespace

MGE_OP(cast) = {
    .name = "Cast",
    .doc =
        "Converts every element to another type. Reals are truncated and saturated to integers, NaN becomes 0. ONNX leaves "
        "undefined what reals outside of the integer type become; other runtimes wrap around.",
    .inputs = {{"input", kTypes}},
    .outputs = {{"output"}},
    .attrs = {{"to", AttrType::kInt, Presence::kRequired, "the element type of the result"},
              {"saturate", 1, "of float8, which is not supported"},
              {"round_mode", "up", "of float8, which is not supported"}},
    .infer = Infer,
    .eval = Eval,
    .upgrade = Upgrade,
    .gradient = Gradient,
    .traits = kElementwise,
    .examples = {"(T[3,37]@0:3) {to=1}", "(T[70001]@0:3) {to=1}", "(T[67]@special) {to=11}", "(T[41]) {to=7}",
                 "(T[41]@0:4) {to=10}", "(T[67]@special) {to=10}", "(T[5,3]) {to=9}", "(T[67]@special) {to=9}",
                 "(T[19]@0:9) {to=2}"},
};

}  // namespace mge::op_cast
