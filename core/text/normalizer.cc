// SPDX-License-Identifier: Apache-2.0
#include "core/text/normalizer.h"

#include <unicode/normalizer2.h>
#include <unicode/unistr.h>

#include <functional>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/utf8.h"
#include "core/text/pattern.h"
#include "core/text/unicode.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

// A normalizer that is a function of the text.
class TextFunction : public Normalizer {
 public:
  explicit TextFunction(std::function<absl::Status(std::string&)> f) : f_(std::move(f)) {}
  absl::Status Apply(std::string& text) const override { return f_(text); }

 private:
  const std::function<absl::Status(std::string&)> f_;
};

std::unique_ptr<Normalizer> ChangingText(std::function<absl::Status(std::string&)> f) {
  return std::make_unique<TextFunction>(std::move(f));
}

// A normalizer that replaces each character: `f(character, out)` appends what is in its place.
std::unique_ptr<Normalizer> EachCharacter(std::function<void(uint32_t, std::string&)> f) {
  return ChangingText([f = std::move(f)](std::string& text) {
    std::string out;
    out.reserve(text.size());
    ForEachCharacter(text, [&](uint32_t c, std::string_view) { f(c, out); });
    text = std::move(out);
    return absl::OkStatus();
  });
}

absl::Status ToForm(const char* data, UNormalization2Mode mode, std::string& text) {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* form = icu::Normalizer2::getInstance(nullptr, data, mode, error);
  if (U_FAILURE(error)) return Fail(errors::kInternal, fmt::format("ICU has no Unicode form {}", data));
  const icu::UnicodeString out = form->normalize(icu::UnicodeString::fromUTF8(text), error);
  if (U_FAILURE(error))
    return Fail(errors::kOutOfMemory, fmt::format("a text of {} bytes cannot be normalized", text.size()));
  text.clear();
  out.toUTF8String(text);
  return absl::OkStatus();
}

std::unique_ptr<Normalizer> UnicodeForm(const char* data, UNormalization2Mode mode) {
  return ChangingText([=](std::string& text) { return ToForm(data, mode, text); });
}

void Strip(bool left, bool right, std::string& text) {
  const std::string_view all = text;
  size_t begin = all.size(), end = 0, at = 0;
  ForEachCharacter(all, [&](uint32_t c, std::string_view bytes) {
    if (!IsWhitespace(c)) {
      begin = std::min(begin, at);
      end = at + bytes.size();
    }
    at += bytes.size();
  });
  if (!left) begin = 0;
  if (!right) end = all.size();
  text = begin < end ? std::string(all.substr(begin, end - begin)) : std::string();
}

bool IsChinese(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kRanges[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                                       {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                                       {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  for (const auto& [first, last] : kRanges) {
    if (c >= first && c <= last) return true;
  }
  return false;
}

struct BertOptions {
  bool clean, chinese, strip_accents, lower;
};

void AppendCleaned(uint32_t c, const BertOptions& o, std::string& out) {
  const bool blank = c == '\t' || c == '\n' || c == '\r';
  if (o.clean && (c == 0 || c == 0xFFFD || (!blank && IsControl(c)))) return;
  const bool chinese = o.chinese && IsChinese(c);
  if (chinese) out += ' ';
  AppendUtf8(o.clean && IsWhitespace(c) ? ' ' : c, out);
  if (chinese) out += ' ';
}

std::unique_ptr<Normalizer> ReadBert(const Part& part) {
  BertOptions o;
  o.clean = part.Flag("clean_text", true);
  o.chinese = part.Flag("handle_chinese_chars", true);
  o.lower = part.Flag("lowercase", true);
  o.strip_accents = part.Flag("strip_accents", o.lower);
  return ChangingText([o](std::string& text) {
    std::string out;
    ForEachCharacter(text, [&](uint32_t c, std::string_view) { AppendCleaned(c, o, out); });
    if (o.strip_accents) MGE_RETURN_IF_ERROR(ToForm("nfc", UNORM2_DECOMPOSE, out));
    text.clear();
    ForEachCharacter(out, [&](uint32_t c, std::string_view bytes) {
      if (o.strip_accents && IsNonspacingMark(c)) return;
      o.lower ? AppendLower(c, text) : static_cast<void>(text += bytes);
    });
    return absl::OkStatus();
  });
}

// The rules of SentencePiece's `nmt`: controls are removed, and unusual blanks become blanks.
void AppendNmt(uint32_t c, std::string& out) {
  if ((c >= 1 && c <= 8) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
  constexpr uint32_t kBlanks[] = {0x09, 0x0A, 0x0C, 0x0D, 0x1680, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD};
  const bool blank =
      (c >= 0x200B && c <= 0x200F) || std::find(std::begin(kBlanks), std::end(kBlanks), c) != std::end(kBlanks);
  AppendUtf8(blank ? ' ' : c, out);
}

std::unique_ptr<Normalizer> ReadReplacement(const Part& part) {
  std::shared_ptr<Pattern> pattern = ReadPattern(part.Member("pattern"));
  if (!pattern) return nullptr;
  return ChangingText(
      [pattern, content = part.Text("content")](std::string& text) { return Replace(*pattern, content, text); });
}

std::unique_ptr<Normalizer> ReadNormalizers(const Part& part) {
  auto all = std::make_shared<std::vector<std::unique_ptr<Normalizer>>>();
  for (const Part& each : part.Elements("normalizers")) {
    if (auto normalizer = ReadNormalizer(each)) all->push_back(std::move(normalizer));
  }
  return ChangingText([all](std::string& text) {
    for (const auto& each : *all) MGE_RETURN_IF_ERROR(each->Apply(text));
    return absl::OkStatus();
  });
}

}  // namespace

std::unique_ptr<Normalizer> ReadNormalizer(const Part& part) {
  if (part.json().is_null()) return nullptr;
  const std::string type = part.Text("type");
  if (type == "Sequence") return ReadNormalizers(part);
  if (type == "NFC") return UnicodeForm("nfc", UNORM2_COMPOSE);
  if (type == "NFD") return UnicodeForm("nfc", UNORM2_DECOMPOSE);
  if (type == "NFKC") return UnicodeForm("nfkc", UNORM2_COMPOSE);
  if (type == "NFKD") return UnicodeForm("nfkc", UNORM2_DECOMPOSE);
  if (type == "BertNormalizer") return ReadBert(part);
  if (type == "Precompiled") return ReadReplacements(part);
  if (type == "Replace") return ReadReplacement(part);
  if (type == "Lowercase") return EachCharacter(AppendLower);
  if (type == "Nmt") return EachCharacter(AppendNmt);
  if (type == "StripAccents") {
    return EachCharacter([](uint32_t c, std::string& out) {
      if (!IsMark(c)) AppendUtf8(c, out);
    });
  }
  if (type == "Strip") {
    return ChangingText([left = part.Flag("strip_left", true), right = part.Flag("strip_right", true)](std::string& text) {
      Strip(left, right, text);
      return absl::OkStatus();
    });
  }
  if (type == "Prepend") {
    return ChangingText([prefix = part.Text("prepend")](std::string& text) {
      if (!text.empty()) text.insert(0, prefix);
      return absl::OkStatus();
    });
  }
  if (type == "ByteLevel") {
    return ChangingText([](std::string& text) {
      std::string out;
      for (const char byte : text) AppendUtf8(LetterOfByte(static_cast<unsigned char>(byte)), out);
      text = std::move(out);
      return absl::OkStatus();
    });
  }
  part.RefuseKind(fmt::format("a normalizer '{}'", type));
  return nullptr;
}

}  // namespace mge::text
