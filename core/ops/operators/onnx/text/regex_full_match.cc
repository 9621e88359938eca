// SPDX-License-Identifier: Apache-2.0
#include <re2/re2.h>

#include "core/ops/op_helpers.h"

namespace mge::op_regex_full_match {
namespace {

absl::StatusOr<std::unique_ptr<const RE2>> Compile(const Attributes& attrs) {
  RE2::Options options;
  options.set_log_errors(false);
  const std::string pattern = attrs.Text("pattern");
  auto regex = std::make_unique<const RE2>(pattern, options);
  if (regex->ok()) return regex;
  return Fail(
      errors::kInvalidNode,
      fmt::format("attribute pattern = '{}' is not a regular expression of RE2", EscapeControl(pattern.substr(0, 200))),
      {.what = regex->error(), .fix = "see the syntax of RE2, which has no back references and no look-around"});
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(Compile(ctx.attrs()).status());
  TensorType type = ctx.input(0);
  type.dtype = DType::kBool;
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(const auto regex, Prepared<std::unique_ptr<const RE2>>(ctx, [&] { return Compile(ctx.attrs()); }));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kBool, x.shape()));
  std::span<bool> out = y->MutableData<bool>();
  for (size_t i = 0; const std::string& text : x.Data<std::string>()) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    out[i++] = RE2::FullMatch(text, **regex);
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(regex_full_match) = {
    .name = "RegexFullMatch",
    .doc = "Whether a regular expression matches the whole string.",
    .inputs = {{"X", kStrings}},
    .outputs = {{"Y"}},
    .attrs = {{"pattern", AttrType::kText, Presence::kRequired, "the expression, in the syntax of RE2"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly,
    .since = 20};

}  // namespace mge::op_regex_full_match
