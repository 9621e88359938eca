// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/token_pattern.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>

#include "core/base/errors.h"
#include "core/ops/families/utf8.h"
#include "core/ops/op_helpers.h"
#include "fmt/format.h"

namespace mge {
namespace {

using Ranges = std::vector<std::pair<uint32_t, uint32_t>>;

constexpr size_t kMaxAtoms = 64;
constexpr int kUnbounded = std::numeric_limits<int>::max();

bool IsWord(uint32_t c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

// Returns the class behind a backslash. The letter of an upper-case class gives the ranges of the lower-case one.
std::optional<Ranges> ClassOf(uint32_t letter) {
  switch (letter | 0x20) {
    case 'w': return Ranges{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    case 'd': return Ranges{{'0', '9'}};
    case 's': return Ranges{{'\t', '\r'}, {' ', ' '}};
    default: return std::nullopt;
  }
}

// Returns the character that an escape stands for.
std::optional<uint32_t> EscapeOf(uint32_t letter) {
  switch (letter) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case 'f': return '\f';
    case 'v': return '\v';
    default: return IsWord(letter) ? std::nullopt : std::optional(letter);
  }
}

}  // namespace

absl::StatusOr<CodePoints> ToCodePoints(std::string_view text) {
  CodePoints out;
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = DecodeUtf8(text.substr(at));
    if (c.length == 0) return BadNode("a string of the input is not valid UTF-8");
    out.values.push_back(c.value);
    out.offsets.push_back(at);
    at += static_cast<size_t>(c.length);
  }
  out.offsets.push_back(at);
  return out;
}

absl::StatusOr<TokenPattern> TokenPattern::Parse(std::string_view text) {
  const auto refuse = [&](std::string_view what) {
    return Fail(errors::kUnsupportedFeature, fmt::format("the regular expression \"{}\" has {}", EscapeControl(text), what));
  };
  MGE_ASSIGN_OR_RETURN(const CodePoints points, ToCodePoints(text));
  const std::vector<uint32_t>& p = points.values;
  TokenPattern out;
  size_t i = text.starts_with("(?u)") ? 4 : 0;
  const auto escape = [&](Ranges* ranges, bool* negated) {  // at the letter behind the backslash
    if (std::optional<Ranges> known = ClassOf(p[i])) {
      *negated = p[i] < 'a';
      ranges->insert(ranges->end(), known->begin(), known->end());
      return true;
    }
    const std::optional<uint32_t> c = EscapeOf(p[i]);
    if (c) ranges->emplace_back(*c, *c);
    return c.has_value();
  };
  while (i < p.size()) {
    Atom atom;
    const uint32_t c = p[i++];
    if (c == '\\') {
      if (i == p.size()) return refuse("a backslash at its end");
      atom.boundary = p[i] == 'b';
      if (!atom.boundary && !escape(&atom.ranges, &atom.negated)) return refuse("an unknown escape");
      ++i;
    } else if (c == '[') {
      atom.negated = i < p.size() && p[i] == '^';
      i += atom.negated;
      for (bool first = true; first || (i < p.size() && p[i] != ']'); first = false) {
        if (i >= p.size()) return refuse("a class without an end");
        bool inner_negated = false;
        if (p[i] == '\\' && ++i < p.size()) {
          if (!escape(&atom.ranges, &inner_negated) || inner_negated) return refuse("an escape that no class may have");
          ++i;
          continue;
        }
        if (i >= p.size() || p[i] == '[') return refuse("a class within a class");
        const bool range = i + 2 < p.size() && p[i + 1] == '-' && p[i + 2] != ']';
        if (range && (p[i + 2] == '\\' || p[i + 2] < p[i])) return refuse("an invalid range");
        atom.ranges.emplace_back(p[i], range ? p[i + 2] : p[i]);
        i += range ? 3 : 1;
      }
      if (i >= p.size()) return refuse("a class without an end");
      ++i;
    } else if (c == '.') {
      atom.negated = true;
      atom.ranges = {{'\n', '\n'}};
    } else if (c < 0x80 && std::string_view("()|^$*+?{}]").find(static_cast<char>(c)) != std::string_view::npos) {
      return refuse(fmt::format("'{}' at character {}, which is not supported", static_cast<char>(c), i - 1));
    } else {
      atom.ranges = {{c, c}};
    }
    if (i < p.size() && (p[i] == '+' || p[i] == '*' || p[i] == '?')) {
      atom.least = p[i] == '+' ? 1 : 0;
      atom.most = p[i] == '?' ? 1 : kUnbounded;
      ++i;
      if (i < p.size() && (p[i] == '?' || p[i] == '+')) return refuse("a lazy or possessive repetition");
    } else if (i < p.size() && p[i] == '{') {
      const std::string_view rest = text.substr(points.offsets[i] + 1);
      const char* end = rest.data() + rest.size();
      auto [at, error] = std::from_chars(rest.data(), end, atom.least);
      if (error != std::errc() || at == end) return refuse("an invalid repetition");
      atom.most = atom.least;
      if (*at == ',') {
        atom.most = kUnbounded;
        if (auto [second, bad] = std::from_chars(at + 1, end, atom.most); bad == std::errc()) at = second - 1;
        ++at;
      }
      if (at == end || *at != '}' || atom.least < 0 || atom.most < atom.least) return refuse("an invalid repetition");
      i += static_cast<size_t>(at - rest.data()) + 2;
    }
    if (atom.boundary && (atom.least != 1 || atom.most != 1)) return refuse("a repeated boundary");
    if (out.atoms_.size() == kMaxAtoms) return refuse("too many parts");
    out.atoms_.push_back(std::move(atom));
  }
  return out;
}

// One search in one text. It notes from which places the rest of the pattern does not match, and tries none twice.
class TokenPattern::Search {
 public:
  Search(const std::vector<Atom>& atoms, const std::vector<uint32_t>& text)
      : atoms_(atoms), text_(text), failed_(atoms.size() * (text.size() + 1), false) {}

  // Returns the end of a match of the atoms from `atom` on. Atoms take as much as they can.
  std::optional<size_t> Match(size_t atom, size_t at) {
    if (atom == atoms_.size()) return at;
    const size_t state = atom * (text_.size() + 1) + at;
    if (failed_[state]) return std::nullopt;
    const Atom& a = atoms_[atom];
    std::optional<size_t> end;
    if (a.boundary) {
      const bool before = at > 0 && IsWord(text_[at - 1]), after = at < text_.size() && IsWord(text_[at]);
      if (before != after) end = Match(atom + 1, at);
    } else {
      size_t taken = 0;
      while (taken < static_cast<size_t>(a.most) && at + taken < text_.size() && Has(a, text_[at + taken])) ++taken;
      for (; !end && taken >= static_cast<size_t>(a.least); --taken) {
        end = Match(atom + 1, at + taken);
        if (taken == 0) break;
      }
    }
    if (!end) failed_[state] = true;
    return end;
  }

 private:
  static bool Has(const Atom& a, uint32_t c) {
    return std::ranges::any_of(a.ranges, [c](const auto& r) { return c >= r.first && c <= r.second; }) != a.negated;
  }

  const std::vector<Atom>& atoms_;
  const std::vector<uint32_t>& text_;
  std::vector<bool> failed_;
};

std::vector<std::pair<size_t, size_t>> TokenPattern::FindAll(const std::vector<uint32_t>& text) const {
  std::vector<std::pair<size_t, size_t>> out;
  Search search(atoms_, text);
  for (size_t at = 0; at < text.size();) {
    const std::optional<size_t> end = search.Match(0, at);
    if (end && *end > at) out.emplace_back(at, *end);
    at = end && *end > at ? *end : at + 1;
  }
  return out;
}

}  // namespace mge
