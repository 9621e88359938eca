// SPDX-License-Identifier: Apache-2.0
// The operators that exchange tensors between ranks. Their evaluators serve a group of one rank.
#pragma once

#include "core/ops/effects.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {

// Sets the type of each output to that of the input with its number.
inline absl::Status CollectiveInfer(InferContext& ctx) {
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
inline absl::Status EvalOneRank(EvalContext& ctx) {
  for (int i = 0; i < ctx.output_count(); ++i) MGE_RETURN_IF_ERROR(ctx.SetOutput(i, ctx.value(i)));
  return absl::OkStatus();
}

}  // namespace mge
