// SPDX-License-Identifier: Apache-2.0
// mge generate, with the smallest language model: 1 3 9 7 2 6, where 6 ends a text.
#include <gmock/gmock.h>

#include <filesystem>

#include "nlohmann/json.hpp"
#include "tests/support/command.h"
#include "tests/support/decoder_folder.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Generate : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    WriteDecoderFolder(Path("decoder"));
  }
};

TEST_F(Generate, PrintsTokensOnStdoutAndItsSpeedOnStderr) {
  const Outcome o = Mge("generate decoder --ids 5,1 --device cpu0");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "3 9 7 2 6\n");
  EXPECT_THAT(o.err, AllOf(HasSubstr("prompt: 2 tokens, first token after"), HasSubstr("generated: 5 tokens (end token)"),
                           HasSubstr("per token"), HasSubstr("can read")));
}

TEST_F(Generate, ReportsJson) {
  const Outcome o = Mge("generate decoder --ids 1 --max-tokens 3 --json --device cpu0 --threads 1");
  ASSERT_EQ(o.code, 0) << o.err;
  const auto report = nlohmann::json::parse(o.out);
  EXPECT_EQ(report["schema"], "mge.generate/1");
  EXPECT_EQ(report["tokens"], std::vector<int>({3, 9, 7}));
  EXPECT_EQ(report["end"], "max tokens");
  EXPECT_EQ(report["threads"], 1);
  EXPECT_EQ(report["cache_bytes_per_token"], 80);
  EXPECT_GT(report["first_token_ms"], 0);
  EXPECT_GT(report["tokens_per_s"], 0);
  EXPECT_GT(report["roof_gb_per_s"], 0);
  EXPECT_GT(report["roof_fraction"], 0);
}

TEST_F(Generate, EndsAtAStopTokenAndAtTheContext) {
  auto report = nlohmann::json::parse(Mge("generate decoder --ids 1 --stop 11,7 --json").out);
  EXPECT_EQ(report["tokens"], std::vector<int>({3, 9, 7}));
  EXPECT_EQ(report["end"], "stop token");
  report = nlohmann::json::parse(Mge("generate decoder --ids 11 --json").out);  // 11 13 19 17 11
  EXPECT_EQ(report["tokens"].size(), 63u);
  EXPECT_EQ(report["end"], "length of the context");
}

TEST_F(Generate, RepeatsItselfWithTheSameSeed) {
  const std::string line =
      "generate decoder --ids 1 --temperature 100 --top-k 15 --min-p 0.01 --max-tokens 8 --json --seed ";
  const auto tokens = [&](const std::string& seed) { return nlohmann::json::parse(Mge(line + seed).out)["tokens"]; };
  EXPECT_EQ(tokens("3"), tokens("3"));
  EXPECT_NE(tokens("3"), tokens("4"));
}

TEST_F(Generate, NamesWhatIsWrong) {
  const std::tuple<const char*, int, const char*> cases[] = {
      {"generate decoder", 2, "--prompt TEXT; or token ids: --ids 1,15,7"},
      {"generate decoder --ids 1,x", 2, "--ids '1,x' is not a list of token ids"},
      {"generate decoder --ids 1, --max-tokens 2", 2, "is not a list of token ids"},
      {"generate decoder --ids 1 --stop a", 2, "--stop 'a' is not a list of token ids"},
      {"generate decoder --ids 1,20", 3, "the ids 0 to 19"},
      {"generate decoder --ids 1 --top-p 0 --temperature 1", 2, "top_p is 0"},
      {"generate decoder --ids 1 --data-folder .", 2, "put the model's external data into FOLDER"},
      {"bench decoder --generate --shape 3", 2, "--generate makes the inputs itself"},
      {"bench decoder --generate --runs 3", 2, "excludes"},
      {"generate none --ids 1", 7, "genai_config.json"}};
  for (const auto& [line, code, text] : cases) {
    const Outcome o = Mge(line);
    EXPECT_EQ(o.code, code) << line;
    EXPECT_THAT(o.err, HasSubstr(text)) << line;
  }
}

// A tokenizer for the model's 20 ids: a text is one token, and 1 3 9 7 2 6 is "a", two bytes of "\u00E9", " wo", "rld" and an end.
class GenerateText : public Generate {
 protected:
  void SetUp() override {
    Generate::SetUp();
    if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/libmge_text.so")) GTEST_SKIP() << "libicu-dev is missing";
    Write("decoder/tokenizer.json", kTokenizer);
  }
  static constexpr char kTokenizer[] =
      R"({"added_tokens": [{"id": 6, "content": "<end>", "special": true, "normalized": false}],
      "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]},
      "model": {"type": "WordLevel", "unk_token": "a", "vocab": {"a": 1, "<0xC3>": 3, "<0xA9>": 9, " wo": 7, "rld": 2, "<end>": 6,
                                                                 "loop": 11, "<0xE2>": 13, "x": 19, "y": 17}}})";
};

TEST_F(GenerateText, ContinuesATextWithWholeCharacters) {
  const Outcome o = Mge("generate decoder --prompt a --device cpu0");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.out, "\u00E9 world\n");
  EXPECT_THAT(o.err, AllOf(HasSubstr("prompt: 1 tokens"), HasSubstr("(end token)")));
  // The first byte of a character alone is not printed before the end.
  EXPECT_EQ(Mge("generate decoder --prompt a --max-tokens 1").out, "\uFFFD\n");
  EXPECT_EQ(Mge("generate decoder --prompt loop --max-tokens 3").out, "\uFFFDxy\n");
}

TEST_F(GenerateText, EndsBeforeAStopTextAlsoAcrossTokens) {
  const auto run = [&](const std::string& options) {
    return nlohmann::json::parse(Mge("generate decoder --prompt a --json " + options).out);
  };
  EXPECT_EQ(Mge("generate decoder --prompt a --stop or").out, "\u00E9 w\n");
  const auto report = run("--stop zebra --stop or");
  EXPECT_EQ(report["text"], "\u00E9 w");
  EXPECT_EQ(report["end"], "stop text");
  EXPECT_EQ(report["tokens"], std::vector<int>({3, 9, 7, 2}));
  EXPECT_EQ(run("--stop worlds")["text"], "\u00E9 world");  // the text held back is printed at the end
}

TEST_F(GenerateText, NamesWhatIsWrong) {
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = kTokenizer;
    text.replace(text.find(from), from.size(), to);
    Write("decoder/tokenizer.json", text);
    return Mge("generate decoder --prompt a").err;
  };
  EXPECT_THAT(error("ByteFallback", "Mirror"),
              AllOf(HasSubstr("a decoder 'Mirror'"), HasSubstr("decoder.decoders[0]"), HasSubstr("give token ids")));
  EXPECT_THAT(error("\"vocab\": {", "\"vocab\": {\"b\": -1, "), HasSubstr("whole number"));
  EXPECT_THAT(error("{", ""), HasSubstr("describes no tokenizer"));
  std::filesystem::remove(Path("decoder/tokenizer.json"));
  const Outcome o = Mge("generate decoder --prompt a");
  EXPECT_EQ(o.code, 7);
  EXPECT_THAT(o.err, AllOf(HasSubstr("the folder has no tokenizer"), HasSubstr("--ids 1,15,7")));
  EXPECT_EQ(Mge("generate decoder --prompt a --ids 1").code, 2);
}

TEST_F(Generate, IsMeasuredByBench) {
  const Outcome o = Mge("bench decoder --generate --prompt-tokens 20 --max-tokens 30 --device cpu0");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("prompt: 20 tokens"), HasSubstr("generated: 30 tokens"), HasSubstr("can read")));
  const auto report = nlohmann::json::parse(Mge("bench decoder --generate --prompt-tokens 10 --max-tokens 20 --json").out);
  EXPECT_EQ(report["prompt_tokens"], 10);
  EXPECT_EQ(report["tokens"].size(), 20u);
}

TEST_F(Generate, EndsWithWhatThereIsAfterCtrlC) {
  // A long context of a loop, 11 13 19 17, which the signal ends.
  std::string config = Read("decoder/genai_config.json");
  config.replace(config.find("64"), 2, "99999999");
  Write("decoder/genai_config.json", config);
  Write("run.sh", "cd " + Path("") +
                      "\n" MGE_BINARY_DIR
                      "/bin/mge generate decoder --ids 11 --max-tokens 99999990 >out 2>err &\npid=$!\n"
                      "until [ -s out ]; do sleep 0.05; done\nkill -INT $pid\nwait $pid\necho $? >code\n");
  ASSERT_EQ(std::system(("timeout 120 bash " + Path("run.sh")).c_str()), 0);
  EXPECT_EQ(Read("code"), "130\n");
  EXPECT_THAT(Read("out"), testing::StartsWith("13 19 17 11 13"));
  EXPECT_THAT(Read("err"), AllOf(HasSubstr("(interrupted)"), HasSubstr("tokens/s")));
}

}  // namespace
}  // namespace mge
