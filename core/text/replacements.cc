// SPDX-License-Identifier: Apache-2.0
// The normalizer Precompiled: a table of SentencePiece. The table is a number, the bytes of a trie; the trie, a double array of 32-bit
// units; and the replacements, texts that end with a zero byte. The trie's values are their offsets.
#include <unicode/ubrk.h>
#include <unicode/utext.h>

#include <cstring>
#include <utility>

#include "core/text/normalizer.h"
#include "core/text/unicode.h"

namespace mge::text {
namespace {

constexpr size_t kMaxCluster = 6;  // longer clusters of characters are replaced character by character

// Returns false if the text is not base64.
bool DecodeBase64(std::string_view text, std::string& out) {
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('=')) text.remove_suffix(1);
  for (const char c : text) {
    const int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                      : c >= 'a' && c <= 'z' ? c - 'a' + 26
                      : c >= '0' && c <= '9' ? c - '0' + 52
                      : c == '+'             ? 62
                      : c == '/'             ? 63
                                             : -1;
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return true;
}

class Replacements : public Normalizer {
 public:
  // Returns null if the bytes are not a table.
  static std::unique_ptr<Replacements> Parse(std::string_view bytes) {
    auto out = std::make_unique<Replacements>();
    uint32_t size = 0;
    if (bytes.size() < sizeof size) return nullptr;
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    if (size == 0 || size % sizeof(uint32_t) != 0 || size > bytes.size()) return nullptr;
    out->units_.resize(size / sizeof(uint32_t));
    std::memcpy(out->units_.data(), bytes.data(), size);
    out->texts_ = bytes.substr(size);
    return out;
  }

  absl::Status Apply(std::string& text) const override {
    UErrorCode error = U_ZERO_ERROR;
    UText* input = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &error);
    UBreakIterator* clusters = ubrk_open(UBRK_CHARACTER, "", nullptr, 0, &error);
    if (U_SUCCESS(error)) ubrk_setUText(clusters, input, &error);
    std::string out;
    if (U_SUCCESS(error)) {
      for (int32_t begin = ubrk_first(clusters), end; (end = ubrk_next(clusters)) != UBRK_DONE; begin = end) {
        AppendReplaced(std::string_view(text).substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), out);
      }
    }
    ubrk_close(clusters);
    utext_close(input);
    if (U_FAILURE(error)) return Fail(errors::kInternal, "ICU finds no characters", {.what = u_errorName(error)});
    text = std::move(out);
    return absl::OkStatus();
  }

 private:
  void AppendReplaced(std::string_view cluster, std::string& out) const {
    std::string_view replacement;
    if (cluster.size() < kMaxCluster && Find(cluster, replacement)) return static_cast<void>(out += replacement);
    ForEachCharacter(cluster,
                     [&](uint32_t, std::string_view bytes) { out += Find(bytes, replacement) ? replacement : bytes; });
  }

  // Finds the replacement of the shortest beginning of the bytes that has one.
  bool Find(std::string_view bytes, std::string_view& out) const {
    const auto offset = [](uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); };
    size_t node = offset(units_[0]);
    for (const char byte : bytes) {
      const auto label = static_cast<unsigned char>(byte);
      if ((node ^= label) >= units_.size() || label == 0) return false;
      const uint32_t unit = units_[node];
      if ((unit & 0x800000FF) != label) return false;
      if ((node ^= offset(unit)) >= units_.size()) return false;
      if ((unit & 0x100) == 0) continue;
      const size_t at = units_[node] & 0x7FFFFFFF;
      if (at >= texts_.size()) return false;
      out = std::string_view(texts_).substr(at, texts_.find('\0', at) - at);
      return true;
    }
    return false;
  }

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace

std::unique_ptr<Normalizer> ReadReplacements(const Part& part) {
  std::string bytes;
  std::unique_ptr<Normalizer> out;
  if (DecodeBase64(part.Text("precompiled_charsmap"), bytes)) out = Replacements::Parse(bytes);
  if (!out) part.Member("precompiled_charsmap").Refuse("a table of SentencePiece");
  return out;
}

}  // namespace mge::text
