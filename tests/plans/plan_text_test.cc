// SPDX-License-Identifier: Apache-2.0
// Tests every *.plan file of this folder and its subfolders; README.md describes their form. With MGE_TEST_UPDATE=1 the test
// writes what it produced into the file.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/plan/passes/pass.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/plans/make_plan.h"

namespace mge {
namespace {

const std::filesystem::path kFolder = MGE_TEST_DIR;
constexpr std::string_view kRule = "---\n";

std::string ReadAll(const std::string& file) {
  std::ifstream in(kFolder / file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The parts of a file, which lines `---` separate.
struct Parts {
  explicit Parts(std::string_view text) {
    for (size_t end; (end = text.find(kRule)) != std::string_view::npos; text.remove_prefix(end + kRule.size())) {
      before.emplace_back(text.substr(0, end));
    }
    expected = text;
  }
  std::vector<std::string> before;  // graph, or set-up and graph
  std::string expected;
};

// Returns the files with that number of parts before the expected text.
std::vector<std::string> FilesWith(size_t parts) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    const std::string file = std::filesystem::relative(entry.path(), kFolder).string();
    if (entry.path().extension() == ".plan" && Parts(ReadAll(file)).before.size() == parts) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string TestName(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param.substr(0, info.param.find('.'));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

// Compares `made` with the expected text of the file, or replaces that text.
void Compare(const std::string& file, const Parts& parts, const std::string& made) {
  if (!std::getenv("MGE_TEST_UPDATE")) {
    EXPECT_EQ(made, parts.expected) << "MGE_TEST_UPDATE=1 test_plans rewrites " << file;
    return;
  }
  std::ofstream out(kFolder / file, std::ios::binary);
  for (const std::string& part : parts.before) out << part << kRule;
  out << made;
}

TEST(PlanFiles, HaveTwoOrThreeParts) {
  for (size_t parts : {size_t{0}, size_t{3}, size_t{4}}) EXPECT_EQ(FilesWith(parts), std::vector<std::string>());
}

// ---- passes: a graph, `---`, and the graph after the passes

// Returns the names between commas on the line that begins with `mark`.
std::vector<std::string> NamesAfter(std::string_view mark, const std::string& text) {
  std::vector<std::string> names;
  size_t at = text.find(mark);
  if (at == std::string::npos) return names;
  std::istringstream line(text.substr(at + mark.size(), text.find('\n', at) - at - mark.size()));
  for (std::string name; line >> name;) {
    if (name.back() == ',') name.pop_back();
    names.push_back(name);
  }
  return names;
}

// Returns the passes' context of a file. `skip` must live as long as it.
PassContext ContextOf(const std::string& text, const std::vector<std::string>& skip) {
  PassContext context = {.allocator = &UnlimitedHostAllocator(), .skip = skip};
  context.has_kernels = [ops = NamesAfter("# kernels:", text)](std::string_view op) {
    return std::find(ops.begin(), ops.end(), op) != ops.end();
  };
  return context;
}

std::string Simplified(const std::string& text) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  const std::vector<std::string> skip = NamesAfter("# skip:", text);
  if (absl::Status s = RunPasses(*graph, ContextOf(text, skip), nullptr); !s.ok()) {
    return FormatError(s) + "\n";
  }
  return GraphText(*graph);
}

class Passes : public ::testing::TestWithParam<std::string> {};

TEST_P(Passes, ProduceTheGraph) {
  const Parts parts(ReadAll(GetParam()));
  Compare(GetParam(), parts, Simplified(parts.before[0]));
}

TEST_P(Passes, ChangeNothingIfRunAgain) {
  const Parts parts(ReadAll(GetParam()));
  auto graph = ParseGraphText(parts.before[0]);
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  const std::vector<std::string> skip = NamesAfter("# skip:", parts.before[0]);
  const PassContext context = ContextOf(parts.before[0], skip);
  if (!RunPasses(*graph, context, nullptr).ok()) return;
  std::string once = GraphText(*graph);
  ASSERT_TRUE(RunPasses(*graph, context, nullptr).ok());
  EXPECT_EQ(GraphText(*graph), once);
}

INSTANTIATE_TEST_SUITE_P(Files, Passes, ::testing::ValuesIn(FilesWith(1)), TestName);

// ---- whole plans: the set-up, `---`, a graph, `---`, and the plan

class Plans : public ::testing::TestWithParam<std::string> {};

TEST_P(Plans, AreAsExpected) {
  const Parts parts(ReadAll(GetParam()));
  Compare(GetParam(), parts, MakePlanText(parts.before[0], parts.before[1]));
}

INSTANTIATE_TEST_SUITE_P(Files, Plans, ::testing::ValuesIn(FilesWith(2)), TestName);

}  // namespace
}  // namespace mge
