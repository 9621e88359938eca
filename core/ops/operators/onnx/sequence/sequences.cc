// SPDX-License-Identifier: Apache-2.0
// Operators of sequences.
#include "core/ops/families/movement.h"

namespace mge::op_sequences {
namespace {

absl::Status InferSequenceAt(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0));
  return absl::OkStatus();
}

absl::Status EvalSequenceAt(EvalContext& ctx) {
  const std::vector<Tensor>& sequence = ctx.value(0).sequence;
  MGE_ASSIGN_OR_RETURN(int64_t at, ScalarInt("position", ctx.input(1)));
  MGE_RETURN_IF_ERROR(CheckIndex(ctx, "position", sequence.size(), &at));
  return ctx.SetOutput(0, TensorValue(sequence[at]));
}

absl::Status InferSequenceConstruct(InferContext& ctx) {
  if (!ctx.has_input(0)) return ctx.Invalid("the node has no input; use SequenceEmpty for an empty sequence");
  TensorType type = ctx.input(0);
  for (int i = 1; i < ctx.input_count(); ++i) {
    MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, i}));
    type = Common(type, ctx.input(i));
  }
  ctx.SetOutput(0, std::move(type), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status EvalSequenceConstruct(EvalContext& ctx) {
  HostValue out;
  out.kind = ValueKind::kSequence;
  for (int i = 0; i < ctx.input_count(); ++i) out.sequence.push_back(ctx.input(i));
  return ctx.SetOutput(0, std::move(out));
}

absl::Status InferSequenceEmpty(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(DType dtype, ReadDType(ctx.attrs(), "dtype", kAnyType));
  ctx.SetOutput(0, UnrankedType(dtype), ValueKind::kSequence);
  return absl::OkStatus();
}

// Not inlined: if it is, gcc 12 reports a false warning about the inline storage of a moved empty shape.
[[gnu::noinline]] HostValue EmptySequence() {
  HostValue out;
  out.kind = ValueKind::kSequence;
  return out;
}

absl::Status InferSequenceErase(InferContext& ctx) {
  ctx.SetOutput(0, ctx.input(0), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status EvalSequenceErase(EvalContext& ctx) {
  HostValue out = ctx.value(0);
  int64_t at = -1;
  if (ctx.has_input(1)) {
    MGE_ASSIGN_OR_RETURN(at, ScalarInt("position", ctx.input(1)));
  }
  MGE_RETURN_IF_ERROR(CheckIndex(ctx, "position", out.sequence.size(), &at));
  out.sequence.erase(out.sequence.begin() + at);
  return ctx.SetOutput(0, std::move(out));
}

absl::Status InferSequenceInsert(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(SameElementTypes(ctx, {0, 1}));
  ctx.SetOutput(0, Common(ctx.input(0), ctx.input(1)), ValueKind::kSequence);
  return absl::OkStatus();
}

absl::Status EvalSequenceInsert(EvalContext& ctx) {
  HostValue out = ctx.value(0);
  const int64_t size = static_cast<int64_t>(out.sequence.size());
  int64_t at = size;
  if (ctx.has_input(2)) {
    MGE_ASSIGN_OR_RETURN(at, ScalarInt("position", ctx.input(2)));
    if (at < -size || at > size) {
      return Fail(errors::kIndexOutOfRange, fmt::format("position {} is outside of [{}, {}]", at, -size, size),
                  {.where = NodePlace(ctx.node())});
    }
    if (at < 0) at += size;
  }
  if (size > 0 && out.sequence[0].dtype() != ctx.input(1).dtype()) {
    return ctx.Invalid(fmt::format("a {} tensor cannot be inserted into a sequence of {}", DTypeName(ctx.input(1).dtype()),
                                   DTypeName(out.sequence[0].dtype())));
  }
  out.sequence.insert(out.sequence.begin() + at, ctx.input(1));
  return ctx.SetOutput(0, std::move(out));
}

absl::Status InferSequenceLength(InferContext& ctx) {
  ctx.SetOutput(0, MakeType(DType::kI64, {}));
  return absl::OkStatus();
}

absl::Status EvalSequenceLength(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kI64, {}));
  y->MutableData<int64_t>()[0] = static_cast<int64_t>(ctx.value(0).sequence.size());
  return absl::OkStatus();
}

constexpr OpDef kRows[] = {
    {.name = "SequenceAt",
     .doc = "The tensor at a position of a sequence. Negative positions count from the end.",
     .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}, {"position", kIndex}},
     .outputs = {{"tensor"}},
     .infer = InferSequenceAt,
     .eval = EvalSequenceAt,
     .traits = kHostOnly,
     .since = 11},
    {.name = "SequenceConstruct",
     .doc = "A sequence of the given tensors.",
     .inputs = {{"inputs", kAnyType, Arity::kVariadic}},
     .outputs = {{"output_sequence"}},
     .infer = InferSequenceConstruct,
     .eval = EvalSequenceConstruct,
     .traits = kHostOnly,
     .since = 11},
    {.name = "SequenceEmpty",
     .doc = "An empty sequence for tensors of type `dtype`.",
     .outputs = {{"output"}},
     .attrs = {{"dtype", 1, "the element type"}},
     .infer = InferSequenceEmpty,
     .eval = [](EvalContext& ctx) { return ctx.SetOutput(0, EmptySequence()); },
     .traits = kHostOnly,
     .since = 11},
    {.name = "SequenceErase",
     .doc = "A sequence without the tensor at a position (default: the last one).",
     .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}, {"position", kIndex, Arity::kOptional}},
     .outputs = {{"output_sequence"}},
     .infer = InferSequenceErase,
     .eval = EvalSequenceErase,
     .traits = kHostOnly,
     .since = 11},
    {.name = "SequenceInsert",
     .doc = "A sequence with a tensor inserted before a position (default: at the end).",
     .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence},
                {"tensor"},
                {"position", kIndex, Arity::kOptional}},
     .outputs = {{"output_sequence"}},
     .infer = InferSequenceInsert,
     .eval = EvalSequenceInsert,
     .traits = kHostOnly,
     .since = 11},
    {.name = "SequenceLength",
     .doc = "The number of tensors in a sequence.",
     .inputs = {{.name = "input_sequence", .kind = ValueKind::kSequence}},
     .outputs = {{"length"}},
     .infer = InferSequenceLength,
     .eval = EvalSequenceLength,
     .traits = kHostOnly,
     .since = 11},
};

}  // namespace

MGE_OPS(sequences) = kRows;

}  // namespace mge::op_sequences
