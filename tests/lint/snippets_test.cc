// SPDX-License-Identifier: Apache-2.0
// Code in the guides of sdk/ must equal regions of sources that the tests build and run. The sizes that the guides give for
// these sources must be true.
//
//   <!-- sdk/examples/relu/relu.cc [kernel] -->      in a guide, before a block of C++:
//   ```cpp                                           equal to the lines between two lines "// [kernel]" of that file
//   ```
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lint/tree.h"

namespace mge::lint {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Returns the lines between the two lines that contain only the marker.
std::vector<std::string> Region(const File& file, const std::string& name) {
  std::vector<std::string> out;
  bool inside = false, closed = false;
  for (const std::string& line : file.lines) {
    size_t begin = line.find_first_not_of(' ');
    if (begin != std::string::npos && line.substr(begin) == "// [" + name + "]") {
      if (inside) closed = true;
      inside = !inside;
    } else if (inside) {
      out.push_back(line);
    }
  }
  return closed ? out : std::vector<std::string>();
}

// Checks every block of C++ in the Markdown files of sdk/: it must have a marker and equal the region that the marker names.
Violations CheckSnippets(const Tree& tree) {
  static const std::regex marker(R"(<!-- (\S+) \[([a-z_]+)\] -->)");
  Violations out;
  for (const File& guide : tree.files()) {
    if (!StartsWith(guide.path, "sdk/") || !EndsWith(guide.path, ".md")) continue;
    for (size_t i = 0; i < guide.lines.size(); ++i) {
      if (guide.lines[i] != "```cpp") continue;
      size_t begin = i;
      std::vector<std::string> block;
      for (++i; i < guide.lines.size() && guide.lines[i] != "```"; ++i) block.push_back(guide.lines[i]);
      std::smatch match;
      if (begin == 0 || !std::regex_match(guide.lines[begin - 1], match, marker)) {
        out.push_back(At(guide, begin, "a block of C++ without the place that it is cut out of"));
        continue;
      }
      const File* source = tree.Find(match[1]);
      std::vector<std::string> region = source ? Region(*source, match[2]) : std::vector<std::string>();
      if (region.empty()) {
        out.push_back(At(guide, begin, match[1].str() + " has no region [" + match[2].str() + "]"));
      } else if (region != block) {
        size_t k = 0;
        while (k < region.size() && k < block.size() && region[k] == block[k]) ++k;
        out.push_back(At(guide, begin + 1 + k, "differs from " + match[1].str() + " [" + match[2].str() + "]"));
      }
    }
  }
  return out;
}

// Checks each size of a file of sdk/ in the Markdown files there: "`examples/relu/relu.cc`, 60 lines" is exact, "about 330
// lines" is rounded to tens.
Violations CheckSizes(const Tree& tree) {
  static const std::regex size("`([^` ]+)`, (about )?([0-9]+) lines");
  Violations out;
  for (const File& guide : tree.files()) {
    if (!StartsWith(guide.path, "sdk/") || !EndsWith(guide.path, ".md")) continue;
    for (size_t i = 0; i < guide.lines.size(); ++i) {
      const std::string& line = guide.lines[i];
      for (std::sregex_iterator at(line.begin(), line.end(), size), end; at != end; ++at) {
        const File* source = tree.Find("sdk/" + (*at)[1].str());
        const size_t lines = source ? source->lines.size() : 0, given = std::stoul((*at)[3]);
        const bool fits = (*at)[2].matched ? (lines + 5) / 10 * 10 == given : lines == given;
        if (!source) out.push_back(At(guide, i, "there is no file sdk/" + (*at)[1].str()));
        if (source && !fits) out.push_back(At(guide, i, source->path + " has " + std::to_string(lines) + " lines"));
      }
    }
  }
  return out;
}

TEST(Snippets, OfTheGuidesEqualTheirSources) {
  Violations violations = CheckSnippets(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(Snippets, HaveTheSizesThatTheGuidesGive) {
  Violations violations = CheckSizes(Tree::Read(MGE_SOURCE_DIR));
  EXPECT_THAT(violations, IsEmpty()) << Join(violations);
}

TEST(SnippetsCheck, FindsSizesThatAreWrong) {
  std::string eleven;
  for (int i = 0; i < 11; ++i) eleven += "x\n";
  Tree tree = {{"sdk/a.cc", eleven},
               {"sdk/README.md",
                "(`a.cc`, 11 lines) `a.cc`, about 10 lines\n`a.cc`, 10 lines\n`a.cc`, about 20 lines\n`b.cc`, 1 lines\n"}};
  EXPECT_THAT(CheckSizes(tree),
              ElementsAre("sdk/README.md:2: sdk/a.cc has 11 lines", "sdk/README.md:3: sdk/a.cc has 11 lines",
                          "sdk/README.md:4: there is no file sdk/b.cc"));
}

TEST(SnippetsCheck, FindsBlocksThatDifferOrHaveNoSource) {
  Tree tree = {{"sdk/a.cc", "x\n// [one]\nint a;\n  int b;\n// [one]\n// [open]\nint c;\n"},
               {"sdk/README.md",
                "<!-- sdk/a.cc [one] -->\n```cpp\nint a;\n  int b;\n```\n"           // correct
                "<!-- sdk/a.cc [one] -->\n```cpp\nint a;\n  int c;\n```\n"           // line 9 differs
                "```cpp\nint a;\n```\n"                                              // line 11: no source
                "<!-- sdk/a.cc [open] -->\n```cpp\nint c;\n```\n"                    // line 15: never closed
                "<!-- sdk/b.cc [one] -->\n```cpp\nint c;\n```\n```sh\nls\n```\n"}};  // line 19
  EXPECT_THAT(CheckSnippets(tree), ElementsAre("sdk/README.md:9: differs from sdk/a.cc [one]",
                                               "sdk/README.md:11: a block of C++ without the place that it is cut out of",
                                               "sdk/README.md:15: sdk/a.cc has no region [open]",
                                               "sdk/README.md:19: sdk/b.cc has no region [one]"));
}

}  // namespace
}  // namespace mge::lint
