// SPDX-License-Identifier: Apache-2.0
// Forbidden text: access to the environment, operators' names in the planner, TO-DO notes, paths of a machine.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

bool IsLibrary(const std::string& path) {
  const bool program = StartsWith(path, "core/cli/") || StartsWith(path, "sdk/examples/application/") ||
                       path == "sdk/examples/driver/handles.c";
  return !program && (StartsWith(path, "core/") || StartsWith(path, "plugins/") || StartsWith(path, "sdk/"));
}

Violations CheckEnvironment(const Tree& tree) {
  static const std::regex reads(R"(\b(secure_)?getenv\s*\(|\bsetenv\s*\(|\bputenv\s*\(|\*\s*environ\b|::environ\b)");
  Violations out;
  for (const File& file : tree.files()) {
    if (StartsWith(file.path, "core/env/") || StartsWith(file.path, "tests/")) continue;
    Search(file, file.code, reads, "only core/env reads the environment", out);
  }
  return out;
}

// Returns the names of all operators, from the rows of core/ops.
std::set<std::string> OperatorNames(const Tree& tree) {
  static const std::regex row(R"re(MGE_OP\([^)]*\)[^;]*?\.name = "([A-Za-z0-9]+)")re");
  std::set<std::string> names;
  for (const File& file : tree.files()) {
    if (!StartsWith(file.path, "core/ops/") || !EndsWith(file.path, ".cc")) continue;
    std::string text;
    for (const std::string& line : file.code) text += line + "\n";
    for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) names.insert((*it)[1]);
  }
  return names;
}

Violations CheckOperatorNames(const Tree& tree) {
  static const std::regex literal(R"re("([A-Za-z0-9]+)")re");
  std::set<std::string> names = OperatorNames(tree);
  Violations out;
  for (const File& file : tree.files()) {
    if (!StartsWith(file.path, "core/plan/")) continue;
    for (size_t i = 0; i < file.code.size(); ++i) {
      const std::string& line = file.code[i];
      for (std::sregex_iterator it(line.begin(), line.end(), literal), end; it != end; ++it) {
        if (names.contains((*it)[1])) out.push_back(At(file, i, "the planner names the operator " + (*it)[1].str()));
      }
    }
  }
  return out;
}

Violations CheckOutput(const Tree& tree) {
  static const std::regex stream(R"(\bstd::(cout|cerr|clog)\b|\b(printf|puts)\s*\()");
  Violations out;
  for (const File& file : tree.files()) {
    if (IsLibrary(file.path)) Search(file, file.code, stream, "a library prints nothing by itself", out);
  }
  return out;
}

Violations CheckNotes(const Tree& tree) {
  // The words are split, so that this file passes its own check.
  static const std::regex note(
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X|HA"
      "CK)\\b");
  static const std::regex place(
      "(^|[^A-Za-z0-9_.$}])/(wo"
      "rk|ro"
      "ot|ho"
      "me)/|/tm"
      "p/mge/");
  Violations out;
  for (const File& file : tree.files()) {
    if (file.path == "LICENSE") continue;
    Search(file, file.lines, note, "a note to ourselves belongs in the list of issues", out);
    Search(file, file.lines, place, "a path of one machine", out);
  }
  return out;
}

Violations CheckLicence(const Tree& tree) {
  Violations out;
  for (const File& file : tree.files()) {
    const std::string& path = file.path;
    bool source = IsCpp(path) || EndsWith(path, "CMakeLists.txt");
    for (const char* suffix : {".cmake", ".cmake.in", ".sh", ".py", ".S"}) source = source || EndsWith(path, suffix);
    if (!source) continue;
    size_t first = !file.lines.empty() && StartsWith(file.lines[0], "#!") ? 1 : 0;
    if (first >= file.lines.size() || file.lines[first].find("SPDX-License-Identifier: Apache-2.0") == std::string::npos) {
      out.push_back(path + ": the first line does not name the licence");
    }
  }
  return out;
}

#define EXPECT_CLEAN(check)                                  \
  Violations violations = check(Tree::Read(MGE_SOURCE_DIR)); \
  EXPECT_THAT(violations, IsEmpty()) << Join(violations)

TEST(Words, OnlyCoreEnvReadsTheEnvironment) { EXPECT_CLEAN(CheckEnvironment); }
TEST(Words, ThePlannerNamesNoOperator) { EXPECT_CLEAN(CheckOperatorNames); }
TEST(Words, LibrariesDoNotPrint) { EXPECT_CLEAN(CheckOutput); }
TEST(Words, NoFileHasTodoNotesOrPathsOfAMachine) { EXPECT_CLEAN(CheckNotes); }
TEST(Words, EverySourceNamesTheLicenceFirst) { EXPECT_CLEAN(CheckLicence); }

TEST(WordsCheck, FindsReadsOfTheEnvironment) {
  Tree tree = {{"core/env/source.cc", "getenv(\"A\")\n"},
               {"core/plan/a.cc", "// getenv(x)\nstd::getenv (\"A\");\nint y;  extern char** environ;\n"},
               {"plugins/cpu/a.cc", "/* a\n b */ secure_getenv(\"A\");\n"}};
  EXPECT_THAT(CheckEnvironment(tree), ElementsAre("core/plan/a.cc:2: only core/env reads the environment",
                                                  "core/plan/a.cc:3: only core/env reads the environment",
                                                  "plugins/cpu/a.cc:2: only core/env reads the environment"));
}

TEST(WordsCheck, FindsOperatorsInThePlanner) {
  Tree tree = {{"core/ops/operators/onnx/math/relu.cc", "MGE_OP(relu) = {\n    .name = \"Relu\",\n};\n"},
               {"core/plan/fuse.cc", "// \"Relu\"\nif (node.op == \"Relu\") f(\"Reluctant\", '\"');\n"}};
  EXPECT_THAT(OperatorNames(tree), ElementsAre("Relu"));
  EXPECT_THAT(CheckOperatorNames(tree), ElementsAre("core/plan/fuse.cc:2: the planner names the operator Relu"));
}

TEST(WordsCheck, FindsPrintingLibraries) {
  Tree tree = {{"core/plan/a.cc", "std::cout << 1;\nsnprintf(b, 1, \"\");\n"}, {"core/cli/a.cc", "std::cout << 1;\n"}};
  EXPECT_THAT(CheckOutput(tree), ElementsAre("core/plan/a.cc:1: a library prints nothing by itself"));
}

TEST(WordsCheck, FindsNotesAndPaths) {
  Tree tree = {{"core/a.cc",
                "// TO"
                "DO: later\n// mastodons\n"},
               {"README.md",
                "cd /wo"
                "rk/main\nsee home/x and ${D}/ho"
                "me/y\n"}};
  EXPECT_THAT(CheckNotes(tree), ElementsAre("README.md:1: a path of one machine",
                                            "core/a.cc:1: a note to ourselves belongs in the list of issues"));
}

TEST(WordsCheck, FindsFilesWithoutALicence) {
  Tree tree = {{"a.cc", "int x;\n"},
               {"b.h", "// SPDX-License-Identifier: Apache-2.0\n"},
               {"c.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"},
               {"sub/CMakeLists.txt", "\n"}};
  EXPECT_THAT(CheckLicence(tree), SizeIs(2));
}

TEST(WordsCheck, DistinguishesCommentsFromStrings) {
  EXPECT_EQ(WithoutComments("a \"// no\" // yes\nb"), "a \"// no\"       \nb");
  EXPECT_EQ(WithoutComments("1'000 /* x\ny */ '\"' // z"), "1'000     \n     '\"'     ");
  EXPECT_EQ(WithoutComments("R\"x(// \" in)x\" //"), "R\"x(// \" in)x\"   ");
}

}  // namespace
}  // namespace mge::lint
