// SPDX-License-Identifier: Apache-2.0
// Tokenizers give the ids and the texts that the Python package `tokenizers` gives: make_tokenizers.py wrote the cases.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/text/file_tokenizer.h"
#include "nlohmann/json.hpp"

namespace mge::text {
namespace {

namespace fs = std::filesystem;

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Returns the number of cases of the tokenizer that give other ids or texts, of which it prints some.
int CountDifferent(const fs::path& tokenizer, int* cases) {
  auto t = FileTokenizer::Parse(ReadFile(tokenizer));
  if (!t.ok()) return ADD_FAILURE() << tokenizer << FormatError(t.status()), 1;
  std::ifstream in(fs::path(tokenizer).replace_extension(".cases"));
  int different = 0;
  for (std::string line; std::getline(in, line); ++*cases) {
    const auto row = nlohmann::json::parse(line);
    const auto ids = (*t)->Encode(row[0].get<std::string>(), true);
    const auto text = (*t)->Decode(row[1]);
    if (ids.ok() && text.ok() && *ids == row[1].get<std::vector<int64_t>>() && *text == row[2]) continue;
    if (++different > 3) continue;
    ADD_FAILURE() << tokenizer.filename() << " " << line << "\n"
                  << (ids.ok() ? nlohmann::json(*ids).dump() : FormatError(ids.status())) << "\n"
                  << (text.ok() ? nlohmann::json(*text).dump() : FormatError(text.status()));
  }
  return different;
}

TEST(Tokenizers, GiveTheIdsAndTextsOfThePythonPackage) {
  const char* other = std::getenv("MGE_TEST_TOKENIZERS");
  int kinds = 0, cases = 0;
  for (const auto& file : fs::directory_iterator(other ? other : MGE_TEST_DIR "/data")) {
    if (file.path().extension() != ".json") continue;
    ++kinds;
    EXPECT_EQ(CountDifferent(file.path(), &cases), 0) << file.path().filename();
  }
  EXPECT_GE(kinds, 16);
  EXPECT_GE(cases, kinds * 60);
}

std::string Error(const std::string& json) { return FormatError(FileTokenizer::Parse(json).status()); }

std::string WithWords(const std::string& parts) {
  return "{" + parts + R"("model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1}, "unk_token": "a"}})";
}

TEST(Tokenizers, NameThePartThatIsNotSupported) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("normalizer": {"type": "Mirror"}, )", "a normalizer 'Mirror'"},
      {R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "X"}]}, )",
       "pre_tokenizer.pretokenizers[1]"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}, )",
       "U_REGEX_MISMATCHED_PAREN"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Halved"}, )", "the behavior 'Halved'"},
      {R"("post_processor": {"type": "X"}, )", "a post-processor 'X'"},
      {R"("padding": {"strategy": {"Fixed": 8}}, )", "a padding of single texts"}};
  for (const auto& [parts, text] : cases) {
    EXPECT_THAT(Error(WithWords(parts)), testing::AllOf(testing::HasSubstr(text), testing::HasSubstr("E0403"))) << parts;
  }
  EXPECT_THAT(Error(R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {}, "merges": []}})"),
              testing::HasSubstr("with dropout"));
}

TEST(Tokenizers, RefuseBrokenFiles) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{}", "it has no model"},
      {R"({"model": {"type": "BPE", "vocab": 3, "merges": []}})", "model.vocab is not an object"},
      {R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})", "model.merges[0] is not a pair"},
      {R"({"model": {"type": "Unigram", "vocab": [["a"]]}})", "model.vocab[0] is not a token with its score"},
      {R"({"model": {"type": "Unigram", "vocab": [["a", 1]], "unk_id": 1}})", "model.unk_id is not in the vocabulary"}};
  for (const auto& [json, text] : cases) {
    EXPECT_THAT(Error(json), testing::AllOf(testing::HasSubstr(text), testing::HasSubstr("E0206"))) << json;
  }
  EXPECT_THAT(Error(std::string(100, '[')), testing::HasSubstr("nested deeper"));
  EXPECT_THAT(Error(WithWords(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}, )")),
              testing::HasSubstr("a table of SentencePiece"));
}

TEST(Tokenizers, RefuseATextThatIsNotUtf8) {
  const auto t = FileTokenizer::Parse(WithWords(""));
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(FormatError((*t)->Encode("a\xC3", true).status()), testing::HasSubstr("not valid UTF-8"));
}

TEST(Tokenizers, EndALongSearchWithAnError) {
  const auto t = FileTokenizer::Parse(
      WithWords(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a*)*b"}, "behavior": "Isolated"}, )"));
  ASSERT_TRUE(t.ok());
  EXPECT_THAT(FormatError((*t)->Encode(std::string(40, 'a'), true).status()), testing::HasSubstr("too much time or memory"));
}

}  // namespace
}  // namespace mge::text
