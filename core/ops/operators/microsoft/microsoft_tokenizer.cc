// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "core/ops/families/token_pattern.h"
#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge::op_microsoft_tokenizer {
namespace {

constexpr std::string_view kStart = "\x02", kEnd = "\x03";  // the marks

struct Settings {
  std::optional<TokenPattern> token;     // matches tokens
  std::vector<TokenPattern> separators;  // match what is between tokens; empty: each character is a token
  bool mark = false;
  int64_t least = 1;  // characters of a token
  std::string pad;
};

absl::StatusOr<Settings> Read(const Attributes& attrs) {
  Settings s;
  s.mark = attrs.Int("mark") != 0;
  s.least = attrs.Int("mincharnum");
  s.pad = attrs.Text("pad_value");
  const Texts separators = attrs.TextList("separators");
  if (attrs.Has("tokenexp") == attrs.Has("separators") || (attrs.Has("separators") && separators.empty())) {
    return BadNode("exactly one of separators and tokenexp must be given");
  }
  if (attrs.Has("tokenexp")) {
    MGE_ASSIGN_OR_RETURN(s.token, TokenPattern::Parse(attrs.Text("tokenexp")));
    return s;
  }
  if (separators.size() == 1 && separators[0].empty()) return s;
  for (const std::string& separator : separators) {
    if (separator.empty()) return BadNode("a separator is empty");
    MGE_ASSIGN_OR_RETURN(TokenPattern pattern, TokenPattern::Parse(separator));
    s.separators.push_back(std::move(pattern));
  }
  return s;
}

absl::Status CheckShape(std::span<const int64_t> shape) {
  if (shape.size() == 1 || shape.size() == 2) return absl::OkStatus();
  return BadNode(fmt::format("input has shape {}; [C] or [N,C] is expected", ShapeText(shape)));
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(Read(ctx.attrs()).status());
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(DType::kString));
    return absl::OkStatus();
  }
  MGE_RETURN_IF_ERROR(CheckShape(x.dims));
  Shape dims = x.dims;
  dims.push_back(kUnknownDim);
  ctx.SetOutput(0, MakeType(DType::kString, std::move(dims)));
  return absl::OkStatus();
}

// Returns the tokens of one text.
absl::StatusOr<Texts> Tokens(const Settings& s, const std::string& text) {
  MGE_ASSIGN_OR_RETURN(const CodePoints points, ToCodePoints(text));
  std::vector<std::pair<size_t, size_t>> parts;
  if (s.token) {
    parts = s.token->FindAll(points.values);
  } else if (s.separators.empty()) {
    for (size_t i = 0; i < points.values.size(); ++i) parts.emplace_back(i, i + 1);
  } else {
    parts = {{0, points.values.size()}};
    for (const TokenPattern& separator : s.separators) {  // each cuts the parts that the ones before it have left
      std::vector<std::pair<size_t, size_t>> smaller;
      for (const auto& [begin, end] : parts) {
        const std::vector<uint32_t> part(points.values.begin() + static_cast<int64_t>(begin),
                                         points.values.begin() + static_cast<int64_t>(end));
        size_t from = 0;
        for (const auto& [first, last] : separator.FindAll(part)) {
          smaller.emplace_back(begin + from, begin + first);
          from = last;
        }
        smaller.emplace_back(begin + from, end);
      }
      parts = std::move(smaller);
    }
  }
  Texts out;
  for (const auto& [begin, end] : parts) {
    if (end == begin || static_cast<int64_t>(end - begin) < s.least) continue;
    out.push_back(text.substr(points.offsets[begin], points.offsets[end] - points.offsets[begin]));
  }
  return out;
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(const auto settings, Prepared<Settings>(ctx, [&] { return Read(ctx.attrs()); }));
  const Settings& s = *settings;
  MGE_RETURN_IF_ERROR(CheckShape(x.shape()));
  std::vector<Texts> all;
  size_t most = 0;
  for (const std::string& text : x.Data<std::string>()) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    MGE_ASSIGN_OR_RETURN(Texts tokens, Tokens(s, text));
    most = std::max(most, tokens.size());
    all.push_back(std::move(tokens));
  }
  const size_t marks = s.mark && most > 0 ? 2 : 0;
  Shape shape = x.shape();
  shape.push_back(static_cast<int64_t>(most + marks));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kString, std::move(shape)));
  auto out = y->MutableData<std::string>().begin();
  for (Texts& tokens : all) {
    if (marks) *out++ = kStart;
    tokens.resize(most, s.pad);
    out = std::move(tokens.begin(), tokens.end(), out);
    if (marks) *out++ = kEnd;
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(microsoft_tokenizer) = {
    .name = "Tokenizer",
    .domain = "com.microsoft",
    .doc = "Cuts each string into tokens, a new dimension that is filled up with pad_value.",
    .inputs = {{"X", kStrings}},
    .outputs = {{"Y"}},
    .attrs = {{"mark", AttrType::kInt, Presence::kRequired, "not 0: adds a start and an end"},
              {"mincharnum", AttrType::kInt, Presence::kRequired, "the shortest token"},
              {"pad_value", AttrType::kText, Presence::kRequired, "the text that fills rows"},
              {"separators", AttrType::kTexts, Presence::kOptional, "patterns between tokens; absent: tokenexp"},
              {"tokenexp", AttrType::kText, Presence::kOptional, "the pattern of a token; absent: separators"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly | kDynamicShape};

}  // namespace mge::op_microsoft_tokenizer
