// SPDX-License-Identifier: Apache-2.0
// Operators of optional values.
#include "core/ops/families/control_flow.h"
#include "core/ops/op_helpers.h"

namespace mge::op_optionals {
namespace {

// Returns the type that attribute "type" names, such as "seq(tensor(float32))".
absl::StatusOr<ValueType> ContentOf(const std::string& text) {
  std::string_view rest = text;
  auto strip = [&](std::string_view prefix) {
    if (!rest.starts_with(prefix) || !rest.ends_with(")")) return false;
    rest = rest.substr(prefix.size(), rest.size() - prefix.size() - 1);
    return true;
  };
  strip("optional(");
  bool sequence = strip("seq(");
  if (strip("tensor(")) {
    for (int i = 1; i < kDTypeCount; ++i) {
      DType dtype = static_cast<DType>(i);
      if (DTypeName(dtype) == rest) {
        return ValueType{UnrankedType(dtype), sequence ? ValueKind::kOptionalSequence : ValueKind::kOptional};
      }
    }
  }
  return BadNode(
      fmt::format("attribute type = \"{}\" is not the type of a tensor or of a sequence of tensors", EscapeControl(text)));
}

absl::Status InferOptional(InferContext& ctx) {
  if (ctx.has_input(0)) {
    bool sequence = IsSequence(ctx.input_kind(0));
    ctx.SetOutput(0, ctx.input(0), sequence ? ValueKind::kOptionalSequence : ValueKind::kOptional);
    return absl::OkStatus();
  }
  if (!ctx.attrs().Has("type")) return ctx.Invalid("the node has neither an input nor attribute \"type\"");
  MGE_ASSIGN_OR_RETURN(ValueType content, ContentOf(ctx.attrs().Text("type")));
  ctx.SetOutput(0, std::move(content.type), content.kind);
  return absl::OkStatus();
}

absl::Status EvalOptional(EvalContext& ctx) {
  HostValue out;
  if (ctx.has_input(0)) {
    out = ctx.value(0);
    out.kind = IsSequence(out.kind) ? ValueKind::kOptionalSequence : ValueKind::kOptional;
  } else {
    MGE_ASSIGN_OR_RETURN(ValueType content, ContentOf(ctx.attrs().Text("type")));
    out.kind = content.kind;
    out.present = false;
  }
  return ctx.SetOutput(0, std::move(out));
}

ValueKind Content(ValueKind kind) { return IsSequence(kind) ? ValueKind::kSequence : ValueKind::kTensor; }

absl::Status InferOptionalGetElement(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0), Content(ctx.input_kind(0)));
  return absl::OkStatus();
}

absl::Status EvalOptionalGetElement(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(HostValue content, AsKind(ctx.value(0), Content(ctx.value(0).kind)));
  return ctx.SetOutput(0, std::move(content));
}

absl::Status InferOptionalHasElement(InferContext& ctx) {
  ctx.SetOutput(0, MakeType(DType::kBool, {}));
  if (!ctx.has_input(0)) ctx.SetConstant(0, Tensor::Scalar<bool>(false));
  return absl::OkStatus();
}

absl::Status EvalOptionalHasElement(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kBool, {}));
  bool has = ctx.has_input(0) && (!IsOptional(ctx.value(0).kind) || ctx.value(0).present);
  y->MutableData<bool>()[0] = has;
  return absl::OkStatus();
}

constexpr OpDef kRows[] = {
    {.name = "Optional",
     .doc = "An optional that holds the input, or an empty one of the type in attribute `type`.",
     .inputs = {{.name = "input", .arity = Arity::kOptional, .any_kind = true}},
     .outputs = {{"output"}},
     .attrs = {{"type", AttrType::kText, Presence::kOptional, "the type; absent: that of the input"}},
     .infer = InferOptional,
     .eval = EvalOptional,
     .traits = kHostOnly,
     .since = 15},
    {.name = "OptionalGetElement",
     .doc = "The content of an optional. Other inputs are returned unchanged.",
     .inputs = {{.name = "input", .any_kind = true}},
     .outputs = {{"output"}},
     .infer = InferOptionalGetElement,
     .eval = EvalOptionalGetElement,
     .traits = kHostOnly,
     .since = 15},
    {.name = "OptionalHasElement",
     .doc = "True if an optional is not empty.",
     .inputs = {{.name = "input", .arity = Arity::kOptional, .any_kind = true}},
     .outputs = {{"output"}},
     .infer = InferOptionalHasElement,
     .eval = EvalOptionalHasElement,
     .traits = kHostOnly,
     .since = 15},
};

}  // namespace

MGE_OPS(optionals) = kRows;

}  // namespace mge::op_optionals
