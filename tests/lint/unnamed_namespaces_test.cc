// SPDX-License-Identifier: Apache-2.0
// Names in unnamed namespaces. The sources of a target are compiled in batches, and a batch is one translation unit, so equal
// names of two sources collide as soon as both sources are in one batch. Batches change with every new file.
#include <map>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns the target that compiles the source in batches (mge_unity() of core/CMakeLists.txt), or "".
std::string TargetOf(const std::string& path) {
  static const std::regex layer("(core/[^/]+)/(?!.*tool/).*\\.cc"), runtime("(plugins/gpu/runtime)/[^/]+\\.cc");
  std::smatch found;
  return std::regex_match(path, found, layer) || std::regex_match(path, found, runtime) ? found[1].str() : "";
}

// Removes the arguments of templates.
std::string WithoutArguments(const std::string& line) {
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool opens = line[i] == '<' && i > 0 && (std::isalnum(static_cast<unsigned char>(line[i - 1])) || depth > 0);
    if (opens) ++depth;
    if (depth == 0) out += line[i];
    if (line[i] == '>' && depth > 0) --depth;
  }
  return out;
}

// Returns the name that a line declares. The line must begin in the first column, as the format requires for declarations of a
// namespace. Equal aliases do not collide, so their name is the whole declaration.
std::optional<std::string> DeclaredName(const std::string& line) {
  static const std::regex none("(namespace|template|static_assert|extern|friend|#|\\}|\\)|[A-Z_]+\\().*"),
      alias("(using \\w+|namespace \\w+) = .*"), type("(struct|class|union|enum class|enum) (\\w+).*"),
      other("[A-Za-z_\\[][^(=]*?[ *&](\\w+) ?(\\(|=|\\[|;|\\{).*");
  std::smatch found;
  if (std::regex_match(line, alias)) return line;
  if (std::regex_match(line, none)) return std::nullopt;
  const std::string plain = WithoutArguments(line);
  if (std::regex_match(plain, found, type)) return found[2].str();
  if (std::regex_match(plain, found, other)) return found[1].str();
  return std::nullopt;
}

struct Place {
  const File* file;
  size_t line;
};

// Adds the names that the file declares in unnamed namespaces. Each is preceded by its namespaces and the target.
void AddNames(const File& file, const std::string& target, std::map<std::string, std::vector<Place>>& names) {
  static const std::regex opens("(?:inline )?namespace ?([\\w:]*) ?\\{.*");
  std::vector<std::string> scopes;
  std::string raw_end;  // of the raw string in which the line begins, or ""
  for (size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    if (!raw_end.empty()) {
      if (line.find(raw_end) != std::string::npos) raw_end.clear();
      continue;
    }
    std::smatch found;
    if (std::regex_match(line, found, opens)) {
      scopes.push_back(found[1]);
    } else if (StartsWith(file.lines[i], "}  // namespace")) {
      if (!scopes.empty()) scopes.pop_back();
    } else if (!scopes.empty() && scopes.back().empty() && !line.empty() && line[0] != ' ') {
      if (const std::optional<std::string> name = DeclaredName(line)) {
        std::string key = target;
        for (const std::string& scope : scopes) key += " " + scope;
        std::vector<Place>& places = names[key + " " + *name];
        if (places.empty() || places.back().file != &file) places.push_back({&file, i});
      }
    }
    const size_t raw = line.find("R\"");
    if (raw == std::string::npos) continue;
    const size_t open = line.find('(', raw);
    if (open == std::string::npos) continue;
    const std::string end = ")" + line.substr(raw + 2, open - raw - 2) + "\"";
    if (line.find(end, open) == std::string::npos) raw_end = end;
  }
}

Violations CheckUnnamedNamespaces(const Tree& tree) {
  std::map<std::string, std::vector<Place>> names;
  for (const File& file : tree.files()) {
    if (const std::string target = TargetOf(file.path); !target.empty()) AddNames(file, target, names);
  }
  Violations out;
  for (const auto& [key, places] : names) {
    if (key.find(" = ") != std::string::npos) continue;  // an alias, and the same one
    for (size_t i = 1; i < places.size(); ++i) {
      const std::string name = key.substr(key.rfind(' ') + 1);
      out.push_back(At(*places[i].file, places[i].line, name + " is also a name of " + places[0].file->path));
    }
  }
  return out;
}

TEST(UnnamedNamespaces, HaveNoNameOfAnotherSourceOfTheirTarget) {
  Violations violations = CheckUnnamedNamespaces(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(UnnamedNamespacesCheck, FindsEqualNamesOfTypesFunctionsAndVariables) {
  const std::string begin = "namespace mge {\nnamespace {\n\n", end = "}  // namespace\n}  // namespace mge\n";
  Tree tree = {
      {"core/base/a.cc", begin +
                             "struct Row {\n  int Cell();\n};\nconstexpr int kMax = 4;\n"
                             "template <typename T>\nstd::map<int, T> Read(const T& t) {\n  return Make(t);\n}\n" +
                             "using Json = nlohmann::json;\nint Own(int a) { return a; }\nint Own() { return 0; }\n" + end +
                             "int Outside() { return 0; }\n"},
      {"core/base/sub/b.cc",
       begin + "enum class Row { kOne };\nconst std::vector<int> kMax[] = {\n    {1},\n};\nabsl::Status Read() {\n" +
           "  return Own(2);\n}\nusing Json = nlohmann::json;\nvoid Row2::Own() {}\n" + end +
           "int Outside(int) { return 0; }\n"},
      {"core/base/tool/c.cc", begin + "struct Row {};\n" + end},
      {"core/plan/d.cc", begin + "struct Row {};\nconstexpr char kText[] = R\"(\nstruct Twice {};\n)\";\n" + end},
      {"core/plan/e.cc", "namespace mge::part {\nnamespace {\nstruct Row {};\n" + end},
      {"core/plan/f.cc", begin + "struct Twice {};\n" + end},
      {"plugins/cpu/g.cc", begin + "struct Row {};\n" + end},
      {"plugins/cpu/h.cc", begin + "struct Row {};\n" + end}};
  EXPECT_THAT(CheckUnnamedNamespaces(tree), ElementsAre("core/base/sub/b.cc:8: Read is also a name of core/base/a.cc",
                                                        "core/base/sub/b.cc:4: Row is also a name of core/base/a.cc",
                                                        "core/base/sub/b.cc:5: kMax is also a name of core/base/a.cc"));
}

}  // namespace
}  // namespace mge::lint
