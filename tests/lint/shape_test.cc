// SPDX-License-Identifier: Apache-2.0
// The shape of the tree: sizes of files, a README in every folder, valid links, the files of the top level.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kLongest = 600;

// Finds files that are too long. Rows of tests/lint/long_files.txt, "path  reason", allow longer files. A row that is not
// needed is a violation.
Violations CheckSizes(const Tree& tree) {
  Violations out;
  std::set<std::string> allowed;
  if (const File* list = tree.Find("tests/lint/long_files.txt")) {
    for (size_t i = 0; i < list->lines.size(); ++i) {
      std::istringstream row(list->lines[i]);
      std::string path, reason;
      if (!(row >> path) || path[0] == '#') continue;
      if (!(row >> reason)) out.push_back(At(*list, i, path + " has no reason"));
      const File* file = tree.Find(path);
      if (file == nullptr || file->lines.size() <= kLongest) out.push_back(At(*list, i, path + " is not long; remove it"));
      allowed.insert(path);
    }
  }
  for (const File& file : tree.files()) {
    if (!IsCpp(file.path) && !EndsWith(file.path, ".cmake") && !EndsWith(file.path, "CMakeLists.txt")) continue;
    if (file.lines.size() > kLongest && !allowed.contains(file.path)) {
      out.push_back(file.path + ": " + std::to_string(file.lines.size()) + " lines, more than " + std::to_string(kLongest) +
                    ": split it, or give the reason in tests/lint/long_files.txt");
    }
  }
  return out;
}

// Finds folders without a README: those of the top level, and those directly below core/ and plugins/.
Violations CheckReadmes(const Tree& tree) {
  std::set<std::string> folders;
  for (const File& file : tree.files()) {
    size_t first = file.path.find('/');
    if (first == std::string::npos || file.path[0] == '.') continue;
    std::string top = file.path.substr(0, first);
    folders.insert(top);
    size_t second = file.path.find('/', first + 1);
    if ((top == "core" || top == "plugins") && second != std::string::npos) folders.insert(file.path.substr(0, second));
  }
  Violations out;
  for (const std::string& folder : folders) {
    const File* readme = tree.Find(folder + "/README.md");
    if (readme == nullptr) {
      out.push_back(folder + ": no README.md");
      continue;
    }
    std::string leaf = folder.substr(folder.rfind('/') + 1), title = readme->lines.empty() ? "" : readme->lines[0];
    std::transform(title.begin(), title.end(), title.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!StartsWith(title, "# ") || title.find(leaf) == std::string::npos) {
      out.push_back(At(*readme, 0, "begins with \"# \" and the folder's name"));
    }
  }
  return out;
}

Violations CheckLinks(const Tree& tree) {
  static const std::regex link(R"(\]\(([^)#\s]+)(#[^)]*)?\))");
  static const std::regex code("`[^`]*`");
  Violations out;
  for (const File& file : tree.files()) {
    if (!EndsWith(file.path, ".md")) continue;
    std::filesystem::path folder = std::filesystem::path(file.path).parent_path();
    bool fenced = false;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (StartsWith(file.lines[i], "```")) fenced = !fenced;
      if (fenced) continue;
      std::string line = std::regex_replace(file.lines[i], code, "");
      for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
        std::string target = (*it)[1];
        if (target.find("://") != std::string::npos || StartsWith(target, "mailto:")) continue;
        std::string path = (folder / target).lexically_normal().generic_string();
        if (EndsWith(path, "/")) path.pop_back();
        if (!tree.Exists(path)) out.push_back(At(file, i, "leads nowhere: " + target));
      }
    }
  }
  return out;
}

// Finds files and folders of the top level that are neither in this list nor begin with a dot.
Violations CheckTopLevel(const Tree& tree) {
  static const std::set<std::string> known = {"sdk",       "core",           "plugins",   "configs", "tests",
                                              "packaging", "CMakeLists.txt", "README.md", "LICENSE", "CMakePresets.json"};
  std::set<std::string> found;
  for (const File& file : tree.files()) found.insert(file.path.substr(0, file.path.find('/')));
  Violations out;
  for (const std::string& name : found) {
    if (name[0] != '.' && !known.contains(name)) out.push_back(name + ": not a part of the top level");
  }
  return out;
}

#define EXPECT_CLEAN(check)                                  \
  Violations violations = check(Tree::Read(MGE_SOURCE_DIR)); \
  EXPECT_THAT(violations, IsEmpty()) << Join(violations)

TEST(Shape, LongFilesHaveAReason) { EXPECT_CLEAN(CheckSizes); }
TEST(Shape, EveryFolderHasAReadme) { EXPECT_CLEAN(CheckReadmes); }
TEST(Shape, LinksAreValid) { EXPECT_CLEAN(CheckLinks); }
TEST(Shape, TheTopLevelHasOnlyKnownFiles) { EXPECT_CLEAN(CheckTopLevel); }

TEST(ShapeCheck, FindsLongFilesAndNeedlessReasons) {
  Tree tree = {{"core/a.cc", std::string(601, '\n')},
               {"core/b.cc", std::string(601, '\n')},
               {"core/c.cc", "\n"},
               {"tests/lint/long_files.txt", "# reasons\ncore/b.cc one table\ncore/c.cc was long\n"}};
  EXPECT_THAT(CheckSizes(tree),
              ElementsAre("tests/lint/long_files.txt:3: core/c.cc is not long; remove it",
                          "core/a.cc: 601 lines, more than 600: split it, or give the reason in tests/lint/long_files.txt"));
}

TEST(ShapeCheck, FindsFoldersWithoutAReadme) {
  Tree tree = {{"core/README.md", "# core: all\n"},
               {"core/base/a.cc", ""},
               {"plugins/README.md", "# Backends\n"},
               {"sdk/include/a.h", ""},
               {"sdk/README.md", "# sdk: x\n"}};
  EXPECT_THAT(CheckReadmes(tree),
              ElementsAre("core/base: no README.md", "plugins/README.md:1: begins with \"# \" and the folder's name"));
}

TEST(ShapeCheck, FindsDeadLinks) {
  Tree tree = {
      {"core/README.md", "[up](../README.md) [x](base) [y](gone.md#a)\n`[z](no)`\n```\n[z](no)\n```\n[w](https://a.b)\n"},
      {"core/base/a.cc", ""},
      {"README.md", ""}};
  EXPECT_THAT(CheckLinks(tree), ElementsAre("core/README.md:1: leads nowhere: gone.md"));
}

TEST(ShapeCheck, FindsUnknownFilesAtTheTopLevel) {
  Tree tree = {{"docs/a.md", ""}, {".ci/run", ""}, {"core/a.cc", ""}};
  EXPECT_THAT(CheckTopLevel(tree), ElementsAre("docs: not a part of the top level"));
}

}  // namespace
}  // namespace mge::lint
