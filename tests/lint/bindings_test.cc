// SPDX-License-Identifier: Apache-2.0
// Every function of the C API is called by the C++ headers, by the Python package, and by an example that the tests run
// (tests/sdk/examples). binding_gaps.txt lists the exceptions of the languages, each with its reason.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kGaps[] = "tests/lint/binding_gaps.txt";
const std::string kHeaders = "sdk/include/mge/", kPackage = "sdk/python/", kExamples = "sdk/examples/";

// Adds what follows each match of `pattern`, a word that begins with mge_.
void AddWords(const std::vector<std::string>& lines, const std::regex& pattern, std::set<std::string>& out) {
  for (const std::string& line : lines) {
    for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) out.insert((*at)[1]);
  }
}

// Returns the functions that the C headers declare with MGE_API.
std::set<std::string> Declared(const Tree& tree) {
  static const std::regex declaration(R"(^MGE_API\b[^(]*\b(mge_\w+)\()");
  std::set<std::string> out;
  for (const File& file : tree.files()) {
    if (StartsWith(file.path, kHeaders) && EndsWith(file.path, ".h")) AddWords(file.code, declaration, out);
  }
  return out;
}

// Returns the functions that are used: words in the code of the C++ headers, or of the examples in C; attributes of `lib` in
// Python.
std::set<std::string> Used(const Tree& tree, const std::string& language) {
  static const std::regex word(R"(\b(mge_\w+))"), attribute(R"(\blib\.(mge_\w+))");
  std::set<std::string> out;
  for (const File& file : tree.files()) {
    if (language == "c++" && StartsWith(file.path, kHeaders) && EndsWith(file.path, ".hpp")) AddWords(file.code, word, out);
    if (language == "python" && StartsWith(file.path, kPackage) && EndsWith(file.path, ".py"))
      AddWords(file.lines, attribute, out);
    if (language == "example" && StartsWith(file.path, kExamples) && EndsWith(file.path, ".c"))
      AddWords(file.code, word, out);
  }
  return out;
}

Violations ExampleGaps(const Tree& tree) {
  Violations out;
  const std::set<std::string> used = Used(tree, "example");
  for (const std::string& function : Declared(tree)) {
    if (!used.count(function)) out.push_back(function + " has no example: call it in a program of sdk/examples/application");
  }
  return out;
}

Violations BindingGaps(const Tree& tree) {
  Violations out;
  const std::set<std::string> declared = Declared(tree);
  std::map<std::string, std::set<std::string>> excused;
  if (const File* gaps = tree.Find(kGaps)) {
    static const std::regex row(R"((c\+\+|python) (mge_\w+) \S.*)");
    std::smatch match;
    for (size_t i = 0; i < gaps->lines.size(); ++i) {
      const std::string& line = gaps->lines[i];
      if (line.empty() || line[0] == '#') continue;
      if (!std::regex_match(line, match, row)) {
        out.push_back(At(*gaps, i, "write LANGUAGE FUNCTION REASON"));
        continue;
      }
      if (!declared.count(match[2])) out.push_back(At(*gaps, i, "there is no function " + match[2].str()));
      excused[match[1]].insert(match[2]);
    }
  }
  for (const std::string language : {"c++", "python"}) {
    const std::set<std::string> used = Used(tree, language);
    for (const std::string& function : declared) {
      const bool listed = excused[language].count(function) > 0;
      if (!used.count(function) && !listed) {
        out.push_back(function + " cannot be reached from " + language + ": call it, or give the reason in " + kGaps);
      }
      if (used.count(function) && listed) {
        out.push_back(function + " is used by " + language + ": remove it from " + kGaps);
      }
    }
  }
  return out;
}

TEST(Bindings, ReachEveryFunctionOfTheCApi) {
  const Tree tree = Tree::Read(MGE_SOURCE_DIR);
  EXPECT_GT(Declared(tree).size(), 100u);
  EXPECT_THAT(BindingGaps(tree), IsEmpty()) << Join(BindingGaps(tree));
}

TEST(Examples, CallEveryFunctionOfTheCApi) {
  const Tree tree = Tree::Read(MGE_SOURCE_DIR);
  EXPECT_THAT(ExampleGaps(tree), IsEmpty()) << Join(ExampleGaps(tree));
}

TEST(Examples, WithoutAFunctionAreFound) {
  const Tree tree = {
      {"sdk/include/mge/mge.h", "MGE_API void mge_a(void);\nMGE_API void mge_b(void);\nMGE_API void mge_c(void);\n"},
      {"sdk/examples/application/x.c", "mge_a(); /* mge_b() */\n"},
      {"sdk/examples/relu/x.cc", "mge_c();\n"}};
  EXPECT_THAT(ExampleGaps(tree), ElementsAre("mge_b has no example: call it in a program of sdk/examples/application",
                                             "mge_c has no example: call it in a program of sdk/examples/application"));
}

TEST(Bindings, WithoutAFunctionAreFound) {
  const Tree tree = {{"sdk/include/mge/mge.h",
                      "MGE_API void mge_a(void);\nMGE_API MGE_NODISCARD mge_status* mge_b(int);\n"
                      "MGE_API int mge_c(int); /* mge_none( */\nstatic inline void mge_a_init(int x) {}\n"},
                     {"sdk/include/mge/x.hpp", "auto f = mge_a;  // mge_b\nOwner<mge_c>\n"},
                     {"sdk/python/mge/x.py", "lib.mge_b()\nlib.mge_a()\n\"mge_c\"\n"},
                     {kGaps, "# reasons\nc++ mge_b no use\npython mge_a no use\nc++ mge_gone no use\nc++\n"}};
  EXPECT_THAT(
      BindingGaps(tree),
      ElementsAre("tests/lint/binding_gaps.txt:4: there is no function mge_gone",
                  "tests/lint/binding_gaps.txt:5: write LANGUAGE FUNCTION REASON",
                  "mge_a is used by python: remove it from tests/lint/binding_gaps.txt",
                  "mge_c cannot be reached from python: call it, or give the reason in tests/lint/binding_gaps.txt"));
}

}  // namespace
}  // namespace mge::lint
