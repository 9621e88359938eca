// SPDX-License-Identifier: Apache-2.0
// packaging/dependencies.txt lists exactly the packages that the tree uses.
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Use {
  const char* package;
  const char* cmake;        // name in find_package() or pkg_check_modules(), "" if it is found otherwise
  const char* include;      // regular expression of the beginning of its headers, "" if it has none
  const char* opened = "";  // beginning of its shared library's name, "" if no code opens it by name
};

// How each package is visible in the tree. Tools that no file names have empty members.
constexpr Use kUses[] = {
    {"g++", "", ""},
    {"cmake", "", ""},
    {"ninja-build", "", ""},
    {"ccache", "", ""},
    {"pkg-config", "", ""},
    {"libonnx-testdata", "", ""},
    {"openmpi-bin", "", ""},
    {"abigail-tools", "", ""},
    {"python3-numpy", "", ""},
    {"hipcc", "", ""},
    {"clang-format-14", "", ""},
    {"python3-venv", "", ""},
    {"patchelf", "", ""},
    {"xz-utils", "", ""},
    {"libabsl-dev", "absl", "absl/"},
    {"libfmt-dev", "fmt", "fmt/"},
    {"libspdlog-dev", "spdlog", "spdlog/"},
    {"libboost-dev", "Boost", "boost/"},
    {"libelf-dev", "libelf", "(libelf|gelf|elfutils/)"},
    {"libprotozero-dev", "protozero", "protozero/"},
    {"libtomlplusplus-dev", "tomlplusplus", "toml\\+\\+/"},
    {"libxxhash-dev", "xxhash", "xxh"},
    {"libcli11-dev", "CLI11", "CLI/"},
    {"nlohmann-json3-dev", "nlohmann_json", "nlohmann/"},
    {"libre2-dev", "", "re2/"},
    {"libicu-dev", "ICU", "unicode/"},
    {"nettle-dev", "", "nettle/"},
    {"zlib1g-dev", "ZLIB", "zlib\\."},
    {"libdnnl-dev", "dnnl", "(oneapi/)?dnnl"},
    {"libopenblas0-pthread", "", "", "libopenblas.so"},
    {"libxbyak-dev", "xbyak", "xbyak/"},
    {"libhalide14-0-dev", "", "Halide\\.h"},
    {"libmlir-15-dev", "", "mlir/(IR|Pass|Parser)/"},
    {"llvm-15-dev", "", "llvm/IR/"},
    {"libopenmpi-dev", "", "mpi\\.h"},
    {"libgtest-dev", "GTest", "gtest/"},
    {"libgmock-dev", "", "gmock/"},
    {"libbenchmark-dev", "benchmark", "benchmark/"},
    {"python3-dev", "Python3", "Python\\.h"},
};

// Packages of CMake without a corresponding Debian package.
const std::set<std::string> kBuiltIn = {"Threads", "mge", "PkgConfig"};

bool Includes(const Tree& tree, const std::string& prefix) {
  std::regex pattern("^(" + prefix + ")");
  for (const File& file : tree.files()) {
    for (const auto& include : lint::Includes(file)) {
      if (std::regex_search(include.path, pattern)) return true;
    }
  }
  return false;
}

bool Opens(const Tree& tree, const std::string& library) {
  for (const File& file : tree.files()) {
    if (file.path.starts_with("tests/")) continue;
    for (const std::string& line : file.lines) {
      if (line.find('"' + library) != std::string::npos) return true;
    }
  }
  return false;
}

// Checks whether a file of the tree uses the package.
bool IsUsed(const Tree& tree, const std::map<std::string, std::string>& found, const Use& use) {
  return (*use.cmake != 0 && found.contains(use.cmake)) || (*use.include != 0 && Includes(tree, use.include)) ||
         (*use.opened != 0 && Opens(tree, use.opened));
}

std::map<std::string, std::string> FoundByCMake(const Tree& tree) {  // name -> file and line
  static const std::regex find(R"(^\s*find_package\s*\(\s*([A-Za-z0-9_]+))");
  static const std::regex check(R"(pkg_check_modules\s*\(\s*\S+\s+((REQUIRED|QUIET|IMPORTED_TARGET)\s+)*([a-z0-9_+-]+))");
  std::map<std::string, std::string> found;
  std::smatch match;
  for (const File& file : tree.files()) {
    if (!EndsWith(file.path, "CMakeLists.txt") || file.path.find("/project/") != std::string::npos) continue;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      if (std::regex_search(file.lines[i], match, find)) found.emplace(match[1], At(file, i, ""));
      if (std::regex_search(file.lines[i], match, check)) found.emplace(match[3], At(file, i, ""));
    }
  }
  return found;
}

Violations CheckDependencies(const Tree& tree) {
  Violations out;
  const File* list = tree.Find("packaging/dependencies.txt");
  if (list == nullptr) return {"packaging/dependencies.txt: missing"};
  std::map<std::string, std::string> found = FoundByCMake(tree);
  std::set<std::string> listed;
  for (size_t i = 0; i < list->lines.size(); ++i) {
    std::string line = list->lines[i].substr(0, list->lines[i].find('#'));
    std::string name;
    std::istringstream(line) >> name;
    if (name.empty() || name[0] == '[') continue;
    if (!listed.insert(name).second) out.push_back(At(*list, i, name + " stands there twice"));
    if (list->lines[i].find('#') == std::string::npos) out.push_back(At(*list, i, name + " has no word on its use"));
    const Use* use = std::find_if(std::begin(kUses), std::end(kUses), [&](const Use& u) { return name == u.package; });
    if (use == std::end(kUses)) {
      out.push_back(At(*list, i, name + " has no row in tests/lint/dependencies_test.cc"));
      continue;
    }
    bool tool = *use->cmake == 0 && *use->include == 0 && *use->opened == 0;
    if (!tool && !IsUsed(tree, found, *use)) out.push_back(At(*list, i, "nothing uses " + name));
  }
  for (const Use& use : kUses) {
    if (listed.contains(use.package)) continue;
    if (*use.cmake != 0 && found.contains(use.cmake)) {
      out.push_back(found[use.cmake] + "needs " + use.package + ", which dependencies.txt lacks");
    } else if (*use.include != 0 && Includes(tree, use.include)) {
      out.push_back(std::string("an #include needs ") + use.package + ", which dependencies.txt lacks");
    } else if (*use.opened != 0 && Opens(tree, use.opened)) {
      out.push_back(std::string("what is opened by name needs ") + use.package + ", which dependencies.txt lacks");
    }
  }
  for (const auto& [name, place] : found) {
    bool known = kBuiltIn.contains(name) ||
                 std::any_of(std::begin(kUses), std::end(kUses), [&](const Use& use) { return name == use.cmake; });
    if (!known) out.push_back(place + "which package is " + name + "? Add it to tests/lint/dependencies_test.cc");
  }
  return out;
}

TEST(Dependencies, TheListHasExactlyThePackagesThatTheTreeUses) {
  Violations violations = CheckDependencies(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(DependenciesCheck, FindsMissingAndUnusedPackages) {
  Tree tree = {{"packaging/dependencies.txt",
                "# all\n[build]\ng++ # compiler\nlibabsl-dev # Status\nlibelf-dev # notes\ncowsay # fun\ncmake\n"},
               {"core/CMakeLists.txt", "find_package(absl REQUIRED)\nfind_package(fmt)\nfind_package(Qt5)\n"},
               {"core/cli/a.cc", "#include <CLI/CLI.hpp>\nconst char kName[] = \"libopenblas.so.0\";\n"}};
  EXPECT_THAT(CheckDependencies(tree),
              ElementsAre("packaging/dependencies.txt:5: nothing uses libelf-dev",
                          "packaging/dependencies.txt:6: cowsay has no row in tests/lint/dependencies_test.cc",
                          "packaging/dependencies.txt:7: cmake has no word on its use",
                          "core/CMakeLists.txt:2: needs libfmt-dev, which dependencies.txt lacks",
                          "an #include needs libcli11-dev, which dependencies.txt lacks",
                          "what is opened by name needs libopenblas0-pthread, which dependencies.txt lacks",
                          "core/CMakeLists.txt:3: which package is Qt5? Add it to tests/lint/dependencies_test.cc"));
}

}  // namespace
}  // namespace mge::lint
