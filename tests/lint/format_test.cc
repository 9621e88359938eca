// SPDX-License-Identifier: Apache-2.0
// The format of the sources: that of .clang-format, as clang-format 14 applies it. Other versions format differently.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns what the shell command prints on stdout and stderr.
std::string OutputOf(const std::string& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"), pclose);
  std::string out;
  std::array<char, 4096> piece;
  while (pipe && !feof(pipe.get())) out.append(piece.data(), fread(piece.data(), 1, piece.size(), pipe.get()));
  return out;
}

// Returns the name of the program, or "" if version 14 is not installed.
std::string ClangFormat() {
  for (const char* name : {"clang-format-14", "clang-format"}) {
    if (OutputOf(std::string(name) + " --version").find("clang-format version 14.") != std::string::npos) return name;
  }
  return "";
}

bool IsFormatted(const std::string& path) { return IsCpp(path) && !EndsWith(path, ".in"); }

// Returns the files of `root` that clang-format would change.
Violations CheckFormat(const std::string& program, const std::string& root, const std::vector<std::string>& paths) {
  const std::string list = (std::filesystem::temp_directory_path() / ("mge_format_" + std::to_string(getpid()))).string();
  std::ofstream(list) << Join(paths);
  const std::string out = OutputOf("cd '" + root + "' && xargs -n 40 -P 2 " + program +
                                   " --dry-run --style=file --fallback-style=none < '" + list + "'");
  std::filesystem::remove(list);
  std::set<std::string> files;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find(": warning: code should be clang-formatted");
    if (end != std::string::npos) files.insert(line.substr(0, line.find(':')));
  }
  Violations violations;
  for (const std::string& file : files) violations.push_back(file + ": run " + program + " -i on it");
  return violations;
}

TEST(Format, OfEverySourceIsThatOfClangFormat14) {
  const std::string program = ClangFormat();
  if (program.empty()) GTEST_SKIP() << "clang-format 14 is not installed; other versions format differently";
  const Tree tree = Tree::Read(MGE_SOURCE_DIR);
  std::vector<std::string> paths;
  for (const File& file : tree.files()) {
    if (IsFormatted(file.path)) paths.push_back(file.path);
  }
  ASSERT_GT(paths.size(), 500u);
  Violations violations = CheckFormat(program, MGE_SOURCE_DIR, paths);
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(Format, OfABadFileIsReported) {
  const std::string program = ClangFormat();
  if (program.empty()) GTEST_SKIP() << "clang-format 14 is not installed; other versions format differently";
  const std::filesystem::path root = std::filesystem::temp_directory_path() / ("mge_bad_" + std::to_string(getpid()));
  std::filesystem::create_directory(root);
  std::filesystem::copy_file(MGE_SOURCE_DIR "/.clang-format", root / ".clang-format");
  std::ofstream(root / "good.cc") << "int f() { return 1; }\n";
  std::ofstream(root / "bad.cc") << "int  f( ){return 1;}\n";
  EXPECT_THAT(CheckFormat(program, root.string(), {"good.cc", "bad.cc"}),
              ElementsAre(HasSubstr("bad.cc: run clang-format")));
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace mge::lint
