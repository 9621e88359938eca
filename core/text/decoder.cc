// SPDX-License-Identifier: Apache-2.0
#include "core/text/decoder.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "core/base/utf8.h"
#include "core/text/pattern.h"
#include "core/text/pre_tokenizer.h"
#include "core/text/unicode.h"
#include "fmt/format.h"

namespace mge::text {
namespace {

using Tokens = std::vector<std::string>;

class TokenFunction : public Decoder {
 public:
  explicit TokenFunction(std::function<absl::Status(Tokens&)> f) : f_(std::move(f)) {}
  absl::Status Apply(Tokens& tokens) const override { return f_(tokens); }

 private:
  const std::function<absl::Status(Tokens&)> f_;
};

std::unique_ptr<Decoder> ChangingTokens(std::function<absl::Status(Tokens&)> f) {
  return std::make_unique<TokenFunction>(std::move(f));
}

// A decoder that changes each token: `f(token, its index, their number)`.
std::unique_ptr<Decoder> EachToken(std::function<void(std::string&, size_t, size_t)> f) {
  return ChangingTokens([f = std::move(f)](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) f(tokens[i], i, tokens.size());
    return absl::OkStatus();
  });
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; !from.empty() && (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Removes the blanks that a tokenizer of words puts around English punctuation.
void CleanUp(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) ReplaceAll(text, from, to);
}

// Joins the bytes that the tokens stand for. A token with a letter that stands for no byte stands for itself.
absl::Status JoinByteLevel(Tokens& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::string of_token;
    bool letters = true;
    ForEachCharacter(token, [&](uint32_t c, std::string_view) {
      const int byte = ByteOfLetter(c);
      letters &= byte >= 0;
      of_token += static_cast<char>(byte);
    });
    bytes += letters ? of_token : token;
  }
  tokens = {ToValidUtf8(bytes)};
  return absl::OkStatus();
}

// Returns the byte that a token such as <0x0A> stands for, or -1.
int ByteOfToken(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? byte : -1;
}

// Joins neighbours that stand for bytes. If they are not a valid text, each becomes U+FFFD.
absl::Status JoinBytes(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto finish = [&] {
    if (IsValidUtf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const int byte = ByteOfToken(token); byte >= 0) {
      bytes += static_cast<char>(byte);
    } else {
      finish();
      out.push_back(std::move(token));
    }
  }
  finish();
  tokens = std::move(out);
  return absl::OkStatus();
}

std::unique_ptr<Decoder> ReadWordPieceDecoder(const Part& part) {
  return EachToken(
      [prefix = part.Text("prefix", "##"), clean = part.Flag("cleanup", true)](std::string& token, size_t i, size_t) {
        if (i > 0 && token.starts_with(prefix)) {
          token.erase(0, prefix.size());
        } else if (i > 0) {
          token.insert(0, " ");
        }
        if (clean) CleanUp(token);
      });
}

std::unique_ptr<Decoder> ReadMetaspaceDecoder(const Part& part) {
  return EachToken([space = ReadMetaspace(part)](std::string& token, size_t i, size_t) {
    std::string out;
    ForEachCharacter(token, [&](uint32_t c, std::string_view bytes) {
      if (c != space.letter) {
        out += bytes;
      } else if (i > 0 || space.prepend == Metaspace::Prepend::kNever) {
        out += ' ';
      }
    });
    token = std::move(out);
  });
}

// Removes up to `start` equal characters at the beginning and up to `stop` at the end.
std::unique_ptr<Decoder> ReadStrip(const Part& part) {
  const std::string content = part.Text("content");
  const int64_t start = part.Count("start", 0), stop = part.Count("stop", 0);
  if (CountCharacters(content) != 1) part.Member("content").Refuse("one character");
  return EachToken([=](std::string& token, size_t, size_t) {
    std::string_view rest = token;
    for (int64_t i = 0; i < start && rest.starts_with(content); ++i) rest.remove_prefix(content.size());
    for (int64_t i = 0; i < stop && rest.ends_with(content); ++i) rest.remove_suffix(content.size());
    token = std::string(rest);
  });
}

// The texts of speech models: equal neighbours are one, and one token stands for nothing.
std::unique_ptr<Decoder> ReadCtc(const Part& part) {
  return ChangingTokens([pad = part.Text("pad_token", "<pad>"), delimiter = part.Text("word_delimiter_token", "|"),
                         clean = part.Flag("cleanup", true)](Tokens& tokens) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& token : tokens) {
      ReplaceAll(token, pad, "");
      if (clean) CleanUp(token);
      if (clean) ReplaceAll(token, delimiter, " ");
    }
    std::erase(tokens, "");
    return absl::OkStatus();
  });
}

std::unique_ptr<Decoder> ReadTokenReplacement(const Part& part) {
  std::shared_ptr<Pattern> pattern = ReadPattern(part.Member("pattern"));
  if (!pattern) return nullptr;
  return ChangingTokens([pattern, content = part.Text("content")](Tokens& tokens) {
    for (std::string& token : tokens) MGE_RETURN_IF_ERROR(Replace(*pattern, content, token));
    return absl::OkStatus();
  });
}

std::unique_ptr<Decoder> ReadDecoders(const Part& part) {
  auto all = std::make_shared<std::vector<std::unique_ptr<Decoder>>>();
  for (const Part& each : part.Elements("decoders")) {
    if (auto decoder = ReadDecoder(each)) all->push_back(std::move(decoder));
  }
  return ChangingTokens([all](Tokens& tokens) {
    for (const auto& each : *all) MGE_RETURN_IF_ERROR(each->Apply(tokens));
    return absl::OkStatus();
  });
}

}  // namespace

std::unique_ptr<Decoder> ReadDecoder(const Part& part) {
  if (part.json().is_null()) return nullptr;
  const std::string type = part.Text("type");
  if (type == "Sequence") return ReadDecoders(part);
  if (type == "ByteLevel") return ChangingTokens(JoinByteLevel);
  if (type == "ByteFallback") return ChangingTokens(JoinBytes);
  if (type == "WordPiece") return ReadWordPieceDecoder(part);
  if (type == "Metaspace") return ReadMetaspaceDecoder(part);
  if (type == "Strip") return ReadStrip(part);
  if (type == "CTC") return ReadCtc(part);
  if (type == "Replace") return ReadTokenReplacement(part);
  if (type == "BPEDecoder") {
    return EachToken([suffix = part.Text("suffix", "</w>")](std::string& token, size_t i, size_t count) {
      ReplaceAll(token, suffix, i + 1 < count ? " " : "");
    });
  }
  if (type == "Fuse") {
    return ChangingTokens([](Tokens& tokens) {
      std::string all;
      for (const std::string& token : tokens) all += token;
      tokens = {std::move(all)};
      return absl::OkStatus();
    });
  }
  part.RefuseKind(fmt::format("a decoder '{}'", type));
  return nullptr;
}

}  // namespace mge::text
