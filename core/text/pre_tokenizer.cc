// SPDX-License-Identifier: Apache-2.0
#include "core/text/pre_tokenizer.h"

#include <functional>
#include <utility>
#include <vector>

#include "core/base/utf8.h"
#include "core/text/pattern.h"
#include "core/text/unicode.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

constexpr std::string_view kWordsOfGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// \w+|[^\w\s]+ with the \w of the package's other engine for regular expressions, which IsWordCharacter() has, too.
constexpr std::string_view kWordsAndMarks =
    R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200C\u200D]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200C\u200D\s]+)";

// A pre-tokenizer that cuts each piece by a function, which may change its text.
class CutEach : public PreTokenizer {
 public:
  using Spans = absl::StatusOr<std::vector<Span>>;
  explicit CutEach(std::function<Spans(Piece&)> cut) : cut_(std::move(cut)) {}

  absl::Status Apply(Pieces& pieces) const override {
    Pieces out;
    for (Piece& piece : pieces) {
      if (piece.id >= 0) {
        out.push_back(std::move(piece));
        continue;
      }
      MGE_ASSIGN_OR_RETURN(const std::vector<Span> spans, cut_(piece));
      for (const Span& span : spans) {
        if (span.begin == span.end) continue;
        out.push_back({piece.text.substr(span.begin, span.end - span.begin), piece.at_start && span.begin == 0});
      }
    }
    pieces = std::move(out);
    return absl::OkStatus();
  }

 private:
  const std::function<Spans(Piece&)> cut_;
};

std::unique_ptr<PreTokenizer> Cutting(std::function<CutEach::Spans(Piece&)> cut) {
  return std::make_unique<CutEach>(std::move(cut));
}

std::unique_ptr<PreTokenizer> Splitting(std::shared_ptr<Pattern> pattern, Behavior behavior, bool invert = false) {
  if (!pattern) return nullptr;
  return Cutting([=](Piece& piece) -> CutEach::Spans {
    MGE_ASSIGN_OR_RETURN(std::vector<Span> spans, pattern->Find(piece.text));
    for (Span& span : spans) span.match ^= invert;
    return Cut(spans, behavior);
  });
}

class InSequence : public PreTokenizer {
 public:
  explicit InSequence(std::vector<std::unique_ptr<PreTokenizer>> all) : all_(std::move(all)) {}
  absl::Status Apply(Pieces& pieces) const override {
    for (const auto& each : all_) {
      if (each) MGE_RETURN_IF_ERROR(each->Apply(pieces));
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<std::unique_ptr<PreTokenizer>> all_;
};

std::unique_ptr<PreTokenizer> Both(std::unique_ptr<PreTokenizer> first, std::unique_ptr<PreTokenizer> second) {
  std::vector<std::unique_ptr<PreTokenizer>> all;
  all.push_back(std::move(first));
  all.push_back(std::move(second));
  return std::make_unique<InSequence>(std::move(all));
}

std::unique_ptr<PreTokenizer> ReadByteLevel(const Part& part) {
  std::shared_ptr<Pattern> words;
  if (part.Flag("use_regex", true)) words = *Regex(kWordsOfGpt2);
  const bool prefix = part.Flag("add_prefix_space", true);
  auto split = Cutting([=](Piece& piece) -> CutEach::Spans {
    if (prefix && !piece.text.starts_with(' ')) piece.text.insert(0, " ");
    if (words) return words->Find(piece.text);
    return std::vector<Span>{{0, piece.text.size(), false}};
  });
  auto to_letters = Cutting([](Piece& piece) -> CutEach::Spans {
    std::string out;
    for (const char byte : piece.text) AppendUtf8(LetterOfByte(static_cast<unsigned char>(byte)), out);
    piece.text = std::move(out);
    return std::vector<Span>{{0, piece.text.size(), false}};
  });
  return Both(std::move(split), std::move(to_letters));
}

std::unique_ptr<PreTokenizer> ReadMetaspaceSplit(const Part& part) {
  const Metaspace space = ReadMetaspace(part);
  std::string letter;
  AppendUtf8(space.letter, letter);
  const bool split = part.Flag("split", true);
  const std::shared_ptr<Pattern> blank = Literal(" "), letters = Literal(letter);
  return Cutting([=](Piece& piece) -> CutEach::Spans {
    MGE_RETURN_IF_ERROR(Replace(*blank, letter, piece.text));
    const bool prepend =
        space.prepend == Metaspace::Prepend::kAlways || (space.prepend == Metaspace::Prepend::kFirst && piece.at_start);
    if (prepend && !piece.text.starts_with(letter)) piece.text.insert(0, letter);
    if (!split) return std::vector<Span>{{0, piece.text.size(), false}};
    MGE_ASSIGN_OR_RETURN(const std::vector<Span> spans, letters->Find(piece.text));
    return Cut(spans, Behavior::kMergedWithNext);
  });
}

// Cuts where the script changes. Kana counts as Chinese, and a blank belongs to what is around it.
std::vector<Span> CutScripts(const Piece& piece) {
  constexpr uint32_t kHan = 0x4E00, kHiragana = 0x3042, kKatakana = 0x30A2, kLongVowel = 0x30FC;
  constexpr int kAny = -1, kNone = -2;
  int last = kNone;
  std::vector<Span> out;
  size_t at = 0;
  ForEachCharacter(piece.text, [&](uint32_t c, std::string_view bytes) {
    int script = c == ' ' ? kAny : ScriptOf(c == kLongVowel ? kHan : c);
    if (script == ScriptOf(kHiragana) || script == ScriptOf(kKatakana)) script = ScriptOf(kHan);
    if (script != kAny && last != script) out.push_back({at, at, false});
    at += bytes.size();
    if (!out.empty()) out.back().end = at;
    if (script != kAny) last = script;
  });
  return out;
}

std::unique_ptr<PreTokenizer> ReadFixedLength(const Part& part) {
  const int64_t length = part.Count("length", 5);
  if (length == 0) part.Member("length").Refuse("at least 1");
  return Cutting([length](Piece& piece) -> CutEach::Spans {
    std::vector<Span> out;
    int64_t count = 0;
    size_t at = 0;
    ForEachCharacter(piece.text, [&](uint32_t, std::string_view bytes) {
      if (count++ % length == 0) out.push_back({at, at, false});
      out.back().end = at += bytes.size();
    });
    return out;
  });
}

std::unique_ptr<PreTokenizer> ReadDelimiter(const Part& part) {
  const std::string delimiter = part.Text("delimiter");
  if (CountCharacters(delimiter) != 1) part.Member("delimiter").Refuse("one character");
  return Splitting(Literal(delimiter), Behavior::kRemoved);
}

std::unique_ptr<PreTokenizer> ReadPreTokenizers(const Part& part) {
  std::vector<std::unique_ptr<PreTokenizer>> all;
  for (const Part& each : part.Elements("pretokenizers")) all.push_back(ReadPreTokenizer(each));
  return std::make_unique<InSequence>(std::move(all));
}

}  // namespace

Metaspace ReadMetaspace(const Part& part) {
  const std::string letter = part.Text("replacement", "\xE2\x96\x81");
  if (CountCharacters(letter) != 1) part.Member("replacement").Refuse("one character");
  // Files of older versions have a flag in place of the scheme.
  const std::string scheme = part.Text("prepend_scheme", part.Flag("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    part.Member("prepend_scheme").Refuse("always, first or never");
  }
  return {.letter = CharacterAt(letter),
          .prepend = scheme == "always"  ? Metaspace::Prepend::kAlways
                     : scheme == "first" ? Metaspace::Prepend::kFirst
                                         : Metaspace::Prepend::kNever};
}

std::unique_ptr<PreTokenizer> ReadPreTokenizer(const Part& part) {
  if (part.json().is_null()) return nullptr;
  const std::string type = part.Text("type");
  if (type == "Sequence") return ReadPreTokenizers(part);
  if (type == "ByteLevel") return ReadByteLevel(part);
  if (type == "Metaspace") return ReadMetaspaceSplit(part);
  if (type == "Split") {
    return Splitting(ReadPattern(part.Member("pattern")), ReadBehavior(part, "behavior"), part.Flag("invert", false));
  }
  if (type == "Whitespace") return Splitting(*Regex(kWordsAndMarks), Behavior::kRemoved, true);
  if (type == "WhitespaceSplit") return Splitting(Characters(IsWhitespace), Behavior::kRemoved);
  if (type == "BertPreTokenizer") {
    return Both(Splitting(Characters(IsWhitespace), Behavior::kRemoved),
                Splitting(Characters(IsPunctuation), Behavior::kIsolated));
  }
  if (type == "Punctuation") return Splitting(Characters(IsPunctuation), ReadBehavior(part, "behavior", "Isolated"));
  if (type == "Digits") {
    return Splitting(Characters(IsNumber),
                     part.Flag("individual_digits", false) ? Behavior::kIsolated : Behavior::kContiguous);
  }
  if (type == "CharDelimiterSplit") return ReadDelimiter(part);
  if (type == "UnicodeScripts") return Cutting([](Piece& piece) -> CutEach::Spans { return CutScripts(piece); });
  if (type == "FixedLength") return ReadFixedLength(part);
  part.RefuseKind(fmt::format("a pre-tokenizer '{}'", type));
  return nullptr;
}

}  // namespace mge::text
