// SPDX-License-Identifier: Apache-2.0
// Tests every *.plan file of this folder: a graph, `---`, and the graph that the passes must produce.
// A line `# skip: a, b` at the top names passes and rewrites to skip. With MGE_TEST_UPDATE=1 the test writes the produced
// graph into the file.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/plan/passes/pass.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

std::vector<std::string> PlanFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(MGE_TEST_DIR)) {
    if (entry.path().extension() == ".plan") files.push_back(entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

std::vector<std::string> SkippedBy(const std::string& text) {
  constexpr std::string_view kMark = "# skip:";
  std::vector<std::string> names;
  size_t at = text.find(kMark);
  if (at == std::string::npos) return names;
  std::istringstream line(text.substr(at + kMark.size(), text.find('\n', at) - at - kMark.size()));
  for (std::string name; line >> name;) {
    if (name.back() == ',') name.pop_back();
    names.push_back(name);
  }
  return names;
}

std::string Simplified(const std::string& text) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  std::vector<std::string> skip = SkippedBy(text);
  if (absl::Status s = RunPasses(*graph, {.allocator = &UnlimitedHostAllocator(), .skip = skip}, nullptr); !s.ok()) {
    return FormatError(s) + "\n";
  }
  return GraphText(*graph);
}

class PlanText : public ::testing::TestWithParam<std::string> {};

TEST_P(PlanText, IsTheResultOfThePasses) {
  constexpr std::string_view kRule = "---\n";
  std::filesystem::path path = std::filesystem::path(MGE_TEST_DIR) / GetParam();
  std::string text = ReadAll(path);
  size_t rule = text.find(std::string("\n").append(kRule));
  ASSERT_NE(rule, std::string::npos) << path << " has no line ---";
  std::string above = text.substr(0, rule + 1), below = text.substr(rule + 1 + kRule.size());
  std::string made = Simplified(above);
  if (std::getenv("MGE_TEST_UPDATE")) {
    std::ofstream(path, std::ios::binary) << above << kRule << made;
    return;
  }
  EXPECT_EQ(made, below) << "MGE_TEST_UPDATE=1 test_plans rewrites the file";
}

TEST_P(PlanText, DoesNotChangeIfSimplifiedAgain) {
  std::string text = ReadAll(std::filesystem::path(MGE_TEST_DIR) / GetParam());
  std::string above = text.substr(0, text.find("\n---\n") + 1);
  auto graph = ParseGraphText(above);
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  std::vector<std::string> skip = SkippedBy(above);
  PassContext context = {.allocator = &UnlimitedHostAllocator(), .skip = skip};
  if (!RunPasses(*graph, context, nullptr).ok()) return;
  std::string once = GraphText(*graph);
  ASSERT_TRUE(RunPasses(*graph, context, nullptr).ok());
  EXPECT_EQ(GraphText(*graph), once);
}

INSTANTIATE_TEST_SUITE_P(Files, PlanText, ::testing::ValuesIn(PlanFiles()), [](const auto& info) {
  std::string name = info.param.substr(0, info.param.find('.'));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace mge
