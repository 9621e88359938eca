// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/control_flow.h"
#include "core/ops/op_helpers.h"

namespace mge::op_optional {
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

absl::Status Infer(InferContext& ctx) {
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

absl::Status Eval(EvalContext& ctx) {
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

}  // namespace

MGE_OP(optional) = {.name = "Optional",
                    .doc = "An optional that holds the input, or an empty one of the type in attribute `type`.",
                    .inputs = {{.name = "input", .arity = Arity::kOptional, .any_kind = true}},
                    .outputs = {{"output"}},
                    .attrs = {{"type", AttrType::kText, Presence::kOptional, "the type; absent: that of the input"}},
                    .infer = Infer,
                    .eval = Eval,
                    .traits = kHostOnly,
                    .since = 15};

}  // namespace mge::op_optional
