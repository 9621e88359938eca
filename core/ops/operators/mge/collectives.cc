// SPDX-License-Identifier: Apache-2.0
// Exchanges of tensors between ranks.
#include "core/ops/effects.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge::op_collectives {
namespace {

// Sets the type of each output to that of the input with its number.
absl::Status CollectiveInfer(InferContext& ctx) {
  if (ctx.input_count() != ctx.output_count()) {
    return ctx.Invalid(fmt::format("it has {} inputs and {} outputs; expected as many outputs as inputs", ctx.input_count(),
                                   ctx.output_count()));
  }
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} is absent", i));
    if (!ctx.has_output(i)) return ctx.Invalid(fmt::format("output {} is absent", i));
    ctx.SetOutput(i, ctx.input(i));
  }
  return absl::OkStatus();
}

// Copies the inputs to the outputs.
absl::Status EvalOneRank(EvalContext& ctx) {
  for (int i = 0; i < ctx.output_count(); ++i) MGE_RETURN_IF_ERROR(ctx.SetOutput(i, ctx.value(i)));
  return absl::OkStatus();
}

absl::Status InferAllReduce(InferContext& ctx) {
  const std::string reduction = ctx.attrs().Text("reduction");
  if (reduction != "sum" && reduction != "product" && reduction != "min" && reduction != "max") {
    return ctx.Invalid(fmt::format("reduction is '{}', expected sum, product, min or max", reduction));
  }
  return CollectiveInfer(ctx);
}

absl::Status InferBroadcast(InferContext& ctx) {
  if (const int64_t root = ctx.attrs().Int("root"); root < 0) {
    return ctx.Invalid(fmt::format("root is {}, expected a rank, counted from 0", root));
  }
  return CollectiveInfer(ctx);
}

absl::Status InferExchange(InferContext& ctx) {
  const Ints to = ctx.attrs().IntList("to"), to_key = ctx.attrs().IntList("to_key");
  const Ints from = ctx.attrs().IntList("from"), from_key = ctx.attrs().IntList("from_key");
  const Ints like = ctx.attrs().IntList("like");
  const auto inputs = static_cast<size_t>(ctx.input_count()), outputs = static_cast<size_t>(ctx.output_count());
  if (to.size() != inputs || to_key.size() != inputs) {
    return ctx.Invalid(fmt::format("it has {} inputs; expected as many numbers in 'to' and 'to_key'", inputs));
  }
  if (from.size() != outputs || from_key.size() != outputs || like.size() != outputs) {
    return ctx.Invalid(fmt::format("it has {} outputs; expected as many numbers in 'from', 'from_key' and 'like'", outputs));
  }
  for (size_t i = 0; i < outputs; ++i) {
    if (!ctx.has_output(static_cast<int>(i))) return ctx.Invalid(fmt::format("output {} is absent", i));
    if (like[i] < 0 || like[i] >= static_cast<int64_t>(inputs)) {
      return ctx.Invalid(fmt::format("like[{}] is {}, expected the number of an input", i, like[i]));
    }
    ctx.SetOutput(static_cast<int>(i), ctx.input(static_cast<int>(like[i])));
  }
  return absl::OkStatus();
}

// Sums are in one part per bucket. The token of a bucket is an int64 scalar, which orders the nodes.
absl::Status InferStartSum(InferContext& ctx) {
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} is absent", i));
  }
  ctx.SetOutput(0, ctx.input(0));
  return absl::OkStatus();
}

absl::Status InferEndSum(InferContext& ctx) {
  const Ints elements = ctx.attrs().IntList("elements"), types = ctx.attrs().IntList("types");
  if (std::ssize(elements) != ctx.output_count() || types.size() != elements.size()) {
    return ctx.Invalid(fmt::format("it has {} outputs, {} numbers in 'elements' and {} in 'types'; expected as many of each",
                                   ctx.output_count(), elements.size(), types.size()));
  }
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (!ctx.has_output(i)) return ctx.Invalid(fmt::format("output {} is absent", i));
    const int64_t count = elements[static_cast<size_t>(i)], type = types[static_cast<size_t>(i)];
    if (count < 0) return ctx.Invalid(fmt::format("elements[{}] is {}, expected the size of output {}", i, count, i));
    if (type < 0 || type > UINT8_MAX || !kNumeric.Contains(static_cast<DType>(type))) {
      return ctx.Invalid(fmt::format("types[{}] is {}, expected the number of a numeric element type", i, type));
    }
    ctx.SetOutput(i, {.dtype = static_cast<DType>(type), .has_rank = true, .dims = {count}});
  }
  return absl::OkStatus();
}

absl::Status InferAllGather(InferContext& ctx) {
  const Ints elements = ctx.attrs().IntList("elements");
  if (ctx.input_count() != ctx.output_count() || std::ssize(elements) + 1 != ctx.input_count()) {
    return ctx.Invalid(
        fmt::format("it has {} inputs, {} outputs and {} numbers in 'elements'; expected a token, then as many of each",
                    ctx.input_count(), ctx.output_count(), elements.size()));
  }
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) return ctx.Invalid(fmt::format("input {} is absent", i));
    if (!ctx.has_output(i)) return ctx.Invalid(fmt::format("output {} is absent", i));
  }
  ctx.SetOutput(0, ctx.input(0));
  for (int i = 0; i < std::ssize(elements); ++i) {
    const int64_t count = elements[static_cast<size_t>(i)];
    if (count < 0) return ctx.Invalid(fmt::format("elements[{}] is {}, expected the size of output {}", i, count, i + 1));
    ctx.SetOutput(i + 1, {.dtype = ctx.input(i + 1).dtype, .has_rank = true, .dims = {count}});
  }
  return absl::OkStatus();
}

constexpr OpDef kRows[] = {
    {.name = "AllReduce",
     .domain = "mge",
     .doc = "Each input, combined element by element over all ranks (settings collective.*): the sum, product, min or max.",
     .inputs = {{"X", kNumeric, Arity::kVariadic}},
     .outputs = {{"Y", kAnyType, Arity::kVariadic}},
     .attrs = {{"reduction", "sum", "sum, mean, max or min"}},
     .infer = InferAllReduce,
     .eval = EvalOneRank,
     .traits = kAllReduce},
    {.name = "Broadcast",
     .domain = "mge",
     .doc = "Each input as the rank `root` has it (settings collective.*). The other ranks' inputs only have its shape.",
     .inputs = {{"X", kFixedSize, Arity::kVariadic}},
     .outputs = {{"Y", kAnyType, Arity::kVariadic}},
     .attrs = {{"root", 0, "the rank that sends"}},
     .infer = InferBroadcast,
     .eval = EvalOneRank,
     .traits = kBroadcast},
    {.name = "Exchange",
     .domain = "mge",
     .doc =
         "Copies between the replicas of a session that trains. Input i goes to the replica to[i] under the key to_key[i]; "
         "-1: it "
         "is not sent. Output i, of the type of the input like[i], comes from the replica from[i] under from_key[i]; -1: it "
         "is undefined.",
     .inputs = {{"X", kFixedSize, Arity::kVariadic}},
     .outputs = {{"Y", kAnyType, Arity::kVariadic}},
     .attrs = {{"to", AttrType::kInts, Presence::kRequired, "receiving ranks"},
               {"to_key", AttrType::kInts, Presence::kRequired, "names of the transfers"},
               {"from", AttrType::kInts, Presence::kRequired, "sending ranks"},
               {"from_key", AttrType::kInts, Presence::kRequired, "names of the transfers"},
               {"like", AttrType::kInts, Presence::kRequired, "outputs with the type of an input"}},
     .infer = InferExchange,
     .eval = [](EvalContext& ctx) { return ctx.Unsupported("it needs the other replicas of a session that trains"); },
     .traits = kExchange},
    {.name = "StartSum",
     .domain = "mge",
     .doc =
         "Begins the sum of each input over all ranks of a session that trains, and does not wait for it. `EndSum` with the "
         "same bucket does. The output is a token that orders the nodes and has no meaning; the numbers of the buckets of a "
         "graph count "
         "from 0 along the tokens. With parts=1, each rank gets its part of each sum, as of `AllGather`.",
     .inputs = {{"token", TypeSet({DType::kI64})}, {"X", kNumeric, Arity::kVariadic}},
     .outputs = {{"next_token", kAnyType}},
     .attrs = {{"bucket", AttrType::kInt, Presence::kRequired, "the number of the sum"},
               {"parts", 0, "1: each rank needs only its part"}},
     .infer = InferStartSum,
     .eval = [](EvalContext& ctx) { return ctx.SetOutput(0, ctx.value(0)); },
     .traits = kStartsSum},
    {.name = "EndSum",
     .domain = "mge",
     .doc =
         "Waits for the sum that `StartSum` with this bucket began. Output i is the sum of its input X[i], or this rank's "
         "part, as a vector. The token is that of the last bucket, so that a rank begins all sums before it waits.",
     .inputs = {{"token", TypeSet({DType::kI64})}},
     .outputs = {{"Y", kAnyType, Arity::kVariadic}},
     .attrs = {{"bucket", AttrType::kInt, Presence::kRequired, "the number of the sum"},
               {"elements", AttrType::kInts, Presence::kRequired, "the size of each output"},
               {"types", AttrType::kInts, Presence::kRequired, "the element type of each output, as ONNX numbers it"}},
     .infer = InferEndSum,
     .eval = [](EvalContext& ctx) { return ctx.Unsupported("it needs the other replicas of a session that trains"); },
     .traits = kEndsSum},
    {.name = "AllGather",
     .domain = "mge",
     .doc =
         "Joins the parts of an array that the ranks of a session that trains have, in their order. Rank r has elements/n "
         "of the elements, rounded down, and one more if r is below the rest. The tokens order the nodes.",
     .inputs = {{"token", TypeSet({DType::kI64})}, {"X", kFixedSize, Arity::kVariadic}},
     .outputs = {{"next_token", kAnyType}, {"Y", kAnyType, Arity::kVariadic}},
     .attrs = {{"elements", AttrType::kInts, Presence::kRequired, "the size of each array, a vector"}},
     .infer = InferAllGather,
     .eval =
         [](EvalContext& ctx) {
           const Ints elements = ctx.attrs().IntList("elements");
           for (int i = 0; i < ctx.output_count(); ++i) {
             if (i > 0 && ctx.input(i).elements() != elements[static_cast<size_t>(i) - 1]) {
               return ctx.Unsupported("it needs the other replicas of a session that trains");
             }
             MGE_RETURN_IF_ERROR(ctx.SetOutput(i, ctx.value(i)));
           }
           return absl::OkStatus();
         },
     .traits = kGathers},
};

}  // namespace

MGE_OPS(collectives) = kRows;

}  // namespace mge::op_collectives
