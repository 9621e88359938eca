// SPDX-License-Identifier: Apache-2.0
#include "core/text/pattern.h"

#include <algorithm>
#include <utility>

#include "core/base/errors.h"
#include "core/text/unicode.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

// Adds a match and what lies between it and the last span.
void AddMatch(size_t begin, size_t end, std::vector<Span>& spans) {
  const size_t before = spans.empty() ? 0 : spans.back().end;
  if (before < begin) spans.push_back({before, begin, false});
  spans.push_back({begin, end, true});
}

void AddRest(size_t size, std::vector<Span>& spans) {
  const size_t before = spans.empty() ? 0 : spans.back().end;
  if (before < size) spans.push_back({before, size, false});
}

class LiteralPattern : public Pattern {
 public:
  explicit LiteralPattern(std::string text) : text_(std::move(text)) {}
  absl::StatusOr<std::vector<Span>> Find(std::string_view text) const override {
    std::vector<Span> out;
    for (size_t at = 0; !text_.empty() && (at = text.find(text_, at)) != text.npos; at += text_.size()) {
      AddMatch(at, at + text_.size(), out);
    }
    AddRest(text.size(), out);
    return out;
  }

 private:
  const std::string text_;
};

class CharacterPattern : public Pattern {
 public:
  explicit CharacterPattern(std::function<bool(uint32_t)> property) : property_(std::move(property)) {}
  absl::StatusOr<std::vector<Span>> Find(std::string_view text) const override {
    std::vector<Span> out;
    size_t at = 0;
    ForEachCharacter(text, [&](uint32_t c, std::string_view bytes) {
      if (property_(c)) AddMatch(at, at + bytes.size(), out);
      at += bytes.size();
    });
    AddRest(text.size(), out);
    return out;
  }

 private:
  const std::function<bool(uint32_t)> property_;
};

// Joins each match with the span before it, unless that ends in a match, too.
template <typename Spans>
void JoinMatches(const Spans& spans, bool forwards, std::vector<Span>& out) {
  bool after_match = false;
  for (const Span& span : spans) {
    if (span.match && !after_match && !out.empty()) {
      forwards ? out.back().end = span.end : out.back().begin = span.begin;
    } else {
      out.push_back(span);
    }
    after_match = span.match;
  }
}

}  // namespace

std::unique_ptr<Pattern> Literal(std::string text) { return std::make_unique<LiteralPattern>(std::move(text)); }

std::unique_ptr<Pattern> Characters(std::function<bool(uint32_t)> property) {
  return std::make_unique<CharacterPattern>(std::move(property));
}

std::unique_ptr<Pattern> ReadPattern(const Part& part) {
  if (part.Has("String")) return Literal(part.Text("String"));
  if (!part.Has("Regex")) {
    part.Refuse("a pattern: an object with String or Regex");
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<Pattern>> regex = Regex(part.Text("Regex"));
  if (regex.ok()) return *std::move(regex);
  part.RefuseKind(fmt::format("a regular expression ({})", PartsOf(regex.status()).what));
  return nullptr;
}

Behavior ReadBehavior(const Part& part, const char* key, const char* fallback) {
  constexpr std::pair<std::string_view, Behavior> kNames[] = {{"Removed", Behavior::kRemoved},
                                                              {"Isolated", Behavior::kIsolated},
                                                              {"MergedWithPrevious", Behavior::kMergedWithPrevious},
                                                              {"MergedWithNext", Behavior::kMergedWithNext},
                                                              {"Contiguous", Behavior::kContiguous}};
  const std::string name = part.Text(key, fallback);
  for (const auto& [known, behavior] : kNames) {
    if (name == known) return behavior;
  }
  part.RefuseKind(fmt::format("a split with the behavior '{}'", name));
  return Behavior::kIsolated;
}

std::vector<Span> Cut(const std::vector<Span>& spans, Behavior behavior) {
  std::vector<Span> out;
  switch (behavior) {
    case Behavior::kIsolated: return spans;
    case Behavior::kRemoved:
      std::ranges::copy_if(spans, std::back_inserter(out), [](const Span& s) { return !s.match; });
      break;
    case Behavior::kMergedWithPrevious: JoinMatches(spans, true, out); break;
    case Behavior::kMergedWithNext:
      JoinMatches(std::vector<Span>(spans.rbegin(), spans.rend()), false, out);
      std::ranges::reverse(out);
      break;
    case Behavior::kContiguous:
      for (const Span& span : spans) {
        if (!out.empty() && out.back().match == span.match) {
          out.back().end = span.end;
        } else {
          out.push_back(span);
        }
      }
      break;
  }
  return out;
}

absl::Status Replace(const Pattern& pattern, std::string_view content, std::string& text) {
  MGE_ASSIGN_OR_RETURN(const std::vector<Span> spans, pattern.Find(text));
  if (std::ranges::none_of(spans, &Span::match)) return absl::OkStatus();
  std::string out;
  for (const Span& span : spans)
    out += span.match ? content : std::string_view(text).substr(span.begin, span.end - span.begin);
  text = std::move(out);
  return absl::OkStatus();
}

}  // namespace mge::text
