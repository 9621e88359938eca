// SPDX-License-Identifier: Apache-2.0
#include <locale.h>
#include <wctype.h>

#include <unordered_set>

#include "core/ops/families/movement.h"
#include "core/ops/families/utf8.h"
#include "core/ops/op_helpers.h"

namespace mge::op_string_normalizer {
namespace {

enum Case { kNone, kLower, kUpper };

void Encode(uint32_t value, std::string& out) {
  if (value < 0x80) {
    out += static_cast<char>(value);
    return;
  }
  int more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;
  constexpr uint8_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[more] | (value >> (6 * more)));
  while (more-- > 0) out += static_cast<char>(0x80 | ((value >> (6 * more)) & 0x3f));
}

// Changes the case of each code point. The mapping is Unicode's and the same for all accepted locales.
class Folder {
 public:
  Folder() : locale_(newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {}
  ~Folder() {
    if (locale_) freelocale(locale_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  absl::StatusOr<std::string> Fold(std::string_view text, Case to) const {
    if (to == kNone) return std::string(text);
    std::string out;
    while (!text.empty()) {
      CodePoint c = DecodeUtf8(text);
      if (c.length == 0) return BadNode("a string of the input is not valid UTF-8");
      if (c.value < 0x80) {
        bool change = to == kLower ? c.value >= 'A' && c.value <= 'Z' : c.value >= 'a' && c.value <= 'z';
        out += static_cast<char>(change ? c.value ^ 0x20 : c.value);
      } else if (!locale_) {
        return Fail(errors::kUnsupportedFeature, "changing non-ASCII letters requires the locale C.UTF-8");
      } else {
        Encode(to == kLower ? towlower_l(c.value, locale_) : towupper_l(c.value, locale_), out);
      }
      text.remove_prefix(c.length);
    }
    return out;
  }

 private:
  locale_t locale_;
};

absl::StatusOr<Case> ActionOf(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(int action, ReadChoice(attrs, "case_change_action", {"NONE", "LOWER", "UPPER"}));
  std::string language = attrs.Text("locale").substr(0, 2);
  if (language == "tr" || language == "az" || language == "lt") {
    return Fail(errors::kUnsupportedFeature, fmt::format("locale \"{}\" has special case rules, which are not implemented",
                                                         EscapeControl(attrs.Text("locale"))));
  }
  return static_cast<Case>(action);
}

absl::Status CheckShape(std::span<const int64_t> shape) {
  bool good = shape.size() == 1 || (shape.size() == 2 && (shape[0] == 1 || shape[0] == kUnknownDim));
  return good ? absl::OkStatus() : BadNode(fmt::format("input has shape {}; [C] or [1,C] is expected", ShapeText(shape)));
}

absl::Status Infer(InferContext& ctx) {
  MGE_RETURN_IF_ERROR(ActionOf(ctx.attrs()).status());
  const TensorType& x = ctx.input(0);
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(DType::kString));
    return absl::OkStatus();
  }
  MGE_RETURN_IF_ERROR(CheckShape(x.dims));
  ctx.SetOutput(0, MakeType(DType::kString, x.dims.size() == 1 ? Shape{kUnknownDim} : Shape{1, kUnknownDim}));
  return absl::OkStatus();
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(Case action, ActionOf(ctx.attrs()));
  MGE_RETURN_IF_ERROR(CheckShape(x.shape()));
  static const Folder folder;
  const Case compare = ctx.attrs().Int("is_case_sensitive") ? kNone : kLower;
  std::unordered_set<std::string> stop_words;
  for (const std::string& word : ctx.attrs().TextList("stopwords")) {
    MGE_ASSIGN_OR_RETURN(std::string folded, folder.Fold(word, compare));
    stop_words.insert(std::move(folded));
  }
  std::vector<std::string> kept;
  for (const std::string& word : x.Data<std::string>()) {
    if (!stop_words.empty()) {
      MGE_ASSIGN_OR_RETURN(std::string folded, folder.Fold(word, compare));
      if (stop_words.contains(folded)) continue;
    }
    MGE_ASSIGN_OR_RETURN(std::string changed, folder.Fold(word, action));
    kept.push_back(std::move(changed));
  }
  if (kept.empty()) kept.emplace_back();  // the schema requires one empty string if nothing is left
  Shape shape = {static_cast<int64_t>(kept.size())};
  if (x.rank() == 2) shape.insert(shape.begin(), 1);
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kString, std::move(shape)));
  std::move(kept.begin(), kept.end(), y->MutableData<std::string>().begin());
  return absl::OkStatus();
}

}  // namespace

MGE_OP(string_normalizer) = {.name = "StringNormalizer",
                             .doc = "Removes stop words and changes the case of strings.",
                             .inputs = {{"X", kStrings}},
                             .outputs = {{"Y"}},
                             .attrs = {{"case_change_action", "NONE", "NONE, LOWER or UPPER"},
                                       {"is_case_sensitive", 0, "not 0: stop words are compared with case"},
                                       {"locale", "en_US", "the locale of case changes"},
                                       {"stopwords", AttrType::kTexts, Presence::kOptional, "removed words; absent: none"}},
                             .infer = Infer,
                             .eval = Eval,
                             .traits = kHostOnly | kDynamicShape,
                             .since = 10};

}  // namespace mge::op_string_normalizer
