// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/movement.h"

namespace mge::op_string_split {
namespace {

constexpr std::string_view kBlanks = " \t\n\v\f\r";

// Splits like Python's str.split. Without a delimiter, runs of blanks separate parts, and blanks at the ends are
// ignored.
std::vector<std::string_view> SplitText(std::string_view text, std::string_view delimiter, int64_t max_splits) {
  std::vector<std::string_view> parts;
  const bool blanks = delimiter.empty();
  auto skip = [&] {
    if (blanks) text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  };
  skip();
  while (!(blanks && text.empty())) {
    size_t at = blanks ? text.find_first_of(kBlanks) : text.find(delimiter);
    if (at == std::string_view::npos || static_cast<int64_t>(parts.size()) >= max_splits) {
      parts.push_back(text);
      break;
    }
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + (blanks ? 0 : delimiter.size()));
    skip();
  }
  return parts;
}

absl::Status Infer(InferContext& ctx) {
  TensorType type = ctx.input(0);
  type.dtype = DType::kI64;
  ctx.SetOutput(1, type);
  type.dtype = DType::kString;
  type.symbols.clear();
  if (type.has_rank) type.dims.push_back(kUnknownDim);
  ctx.SetOutput(0, std::move(type));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::string delimiter = ctx.attrs().Text("delimiter");
  const int64_t limit = ctx.attrs().Has("maxsplit") ? ctx.attrs().Int("maxsplit") : INT64_MAX;
  if (limit < 0) return ctx.Invalid(fmt::format("maxsplit is {}; it must not be negative", limit));
  std::span<const std::string> in = x.Data<std::string>();
  int64_t most = 0;
  for (const std::string& text : in) {
    most = std::max(most, static_cast<int64_t>(SplitText(text, delimiter, limit).size()));
  }
  Shape shape = x.shape();
  shape.push_back(most);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kString, std::move(shape)));
  MGE_ASSIGN_OR_RETURN(Tensor * counts, ctx.Output(1, DType::kI64, x.shape()));
  for (size_t i = 0; i < in.size(); ++i) {
    std::vector<std::string_view> parts = SplitText(in[i], delimiter, limit);
    std::copy(parts.begin(), parts.end(), y->MutableData<std::string>().begin() + static_cast<int64_t>(i) * most);
    counts->MutableData<int64_t>()[i] = static_cast<int64_t>(parts.size());
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(string_split) = {.name = "StringSplit",
                        .doc = "Splits strings at a delimiter or at blanks. Rows are padded with empty strings.",
                        .inputs = {{"X", kStrings}},
                        .outputs = {{"Y"}, {"Z", {}, Arity::kOptional}},
                        .attrs = {{"delimiter", AttrType::kText, Presence::kOptional, "absent: white space"},
                                  {"maxsplit", AttrType::kInt, Presence::kOptional, "the most splits; absent: no limit"}},
                        .infer = Infer,
                        .eval = Eval,
                        .traits = kHostOnly | kDynamicShape,
                        .since = 20};

}  // namespace mge::op_string_split
