// SPDX-License-Identifier: Apache-2.0
// Conversions of element types.
#include "core/ops/families/cast.h"
#include "core/ops/families/movement.h"
#include "core/ops/gradient.h"
#include "core/ops/op_helpers.h"

namespace mge::op_casts {
namespace {

constexpr TypeSet kBitCastTypes = kFixedSize | kComplex;

absl::StatusOr<DType> TargetBitCast(const Node& node, DType from) {
  MGE_ASSIGN_OR_RETURN(DType to, ReadDType(node.attrs, "to", kBitCastTypes));
  if (from == DType::kUndefined || ElementBytes(from) == ElementBytes(to)) return to;
  return BadNode(fmt::format("elements of {} have {} bytes, those of {} {}", DTypeName(from), ElementBytes(from),
                             DTypeName(to), ElementBytes(to)));
}

absl::Status InferBitCast(InferContext& ctx) {
  TensorType type = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(type.dtype, TargetBitCast(ctx.node(), type.dtype));
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status EvalBitCast(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(DType to, TargetBitCast(ctx.node(), x.dtype()));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, to, x.shape()));
  auto* bytes = static_cast<uint8_t*>(y->mutable_data());
  if (x.elements() > 0) std::memmove(bytes, x.data(), static_cast<size_t>(x.bytes()));
  if (to == DType::kBool) std::transform(bytes, bytes + x.bytes(), bytes, [](uint8_t b) { return b != 0; });
  return absl::OkStatus();
}

constexpr TypeSet kCastTypes = kFixedSize | kStrings | kNarrow;

absl::StatusOr<DType> TargetCast(const Node& node) {
  int64_t to = node.attrs.Int("to");
  if (to > 0 && to < kDTypeCount && kCastTypes.Contains(static_cast<DType>(to))) return static_cast<DType>(to);
  return Fail(errors::kUnsupportedType, fmt::format("Cast: attribute 'to' is {}, not an element type to cast to", to),
              {.where = NodePlace(node)});
}

absl::Status InferCast(InferContext& ctx) {
  TensorType type = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(type.dtype, TargetCast(ctx.node()));
  MGE_RETURN_IF_ERROR(ReadNarrowRule(ctx.attrs()).status());
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status EvalCast(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType to, TargetCast(ctx.node()));
  MGE_ASSIGN_OR_RETURN(const NarrowRule rule, ReadNarrowRule(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Tensor y, CastTensor(ctx.input(0), to, ctx.allocator(), rule));
  return ctx.SetOutput(0, TensorValue(std::move(y)));
}

absl::Status UpgradeCast(Graph&, Node& node) {
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

absl::Status InferCastLike(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.dtype = ctx.input(1).dtype;
  MGE_RETURN_IF_ERROR(ReadNarrowRule(ctx.attrs()).status());
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status EvalCastLike(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(const NarrowRule rule, ReadNarrowRule(ctx.attrs()));
  MGE_ASSIGN_OR_RETURN(Tensor y, CastTensor(ctx.input(0), ctx.input(1).dtype(), ctx.allocator(), rule));
  return ctx.SetOutput(0, TensorValue(std::move(y)));
}

constexpr OpDef kRows[] = {
    {.name = "BitCast",
     .doc = "The same bits as elements of another type of the same size. For bool, bytes other than 0 become true.",
     .inputs = {{"input", kBitCastTypes}},
     .outputs = {{"output"}},
     .attrs = {{"to", AttrType::kInt, Presence::kRequired, "the element type of the result"}},
     .infer = InferBitCast,
     .eval = EvalBitCast,
     .in_place = {{0, 0}},
     .since = 26,
     .examples = {"(T[3,37]) {to=6}", "(T[41]) {to=1}", "(T[67]@special) {to=12}", "(T[70001]) {to=3}", "(T[3,5]) {to=5}",
                  "(T[5,7]) {to=7}"}},
    {.name = "Cast",
     .doc =
         "Converts every element to another type. Reals are truncated and saturated to integers, NaN becomes 0. ONNX leaves "
         "undefined what reals outside of the integer type become; other runtimes wrap around, as the setting numerics.cast "
         "can make it here. To integers of 4 and 2 bits, reals are truncated and keep their lowest bits.",
     .inputs = {{"input", kCastTypes}},
     .outputs = {{"output"}},
     .attrs = {{"to", AttrType::kInt, Presence::kRequired, "the element type of the result"},
               {"saturate", 1, "to float8: numbers beyond the range become the nearest limit"},
               {"round_mode", "up", "to float8e8m0: up, down or nearest"}},
     .infer = InferCast,
     .eval = EvalCast,
     .upgrade = UpgradeCast,
     .gradient = [](GradientContext& g) { return g.Set(0, g.CastTo(g.dy(), g.type(0).dtype)); },
     .traits = kElementwise,
     .examples = {"(T[3,37]@0:3) {to=1}", "(T[70001]@0:3) {to=1}", "(T[67]@special) {to=11}", "(T[41]) {to=7}",
                  "(T[41]@0:4) {to=10}", "(T[67]@special) {to=10}", "(T[5,3]) {to=9}", "(T[67]@special) {to=9}",
                  "(T[19]@0:9) {to=2}"}},
    {.name = "CastLike",
     .doc = "Converts every element to the type of the second input. The elements of that input are ignored.",
     .inputs = {{"input", kCastTypes}, {"target_type", kCastTypes}},
     .outputs = {{"output"}},
     .attrs = {{"saturate", 1, "to float8: numbers beyond the range become the nearest limit"},
               {"round_mode", "up", "to float8e8m0: up, down or nearest"}},
     .infer = InferCastLike,
     .eval = EvalCastLike,
     .gradient = [](GradientContext& g) { return g.Set(0, g.CastTo(g.dy(), g.type(0).dtype)); },
     .since = 15,
     .examples = {"(T[3,37]@0:3, float32[1])", "(T[9]@0:4, int32[1])"}},
};

}  // namespace

MGE_OPS(casts) = kRows;

}  // namespace mge::op_casts
