// SPDX-License-Identifier: Apache-2.0
// Cases of one node each, in the rows of a Markdown table of this folder.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/support/compare_values.h"
#include "tests/support/ops_test_util.h"

namespace mge {

// The first columns of a row: a title, "Op@version", the inputs, the attributes, "i of n" outputs, and the expected output i.
// Inputs are constants of graph text, "; " between them; "_" is absent.
struct TableCase {
  std::string title, op, attributes, expected;
  std::vector<std::string> inputs;
  int wanted = 0, outputs = 1;
  std::vector<std::string> more;  // the columns behind these
};

inline std::vector<TableCase> ReadTable(const std::string& file) {
  std::vector<TableCase> cases;
  std::ifstream in(MGE_SOURCE_DIR "/tests/core/ops/" + file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("| ") || line.find('`') == std::string::npos) continue;  // the head
    std::vector<std::string> cells;
    for (std::string cell : std::vector<std::string>(absl::StrSplit(line, " |"))) {
      cell.erase(0, std::min(cell.size(), cell.find_first_not_of("| ")));
      if (cell.size() > 1 && cell.front() == '`' && cell.back() == '`') cell = cell.substr(1, cell.size() - 2);
      cells.push_back(cell);
    }
    cells.pop_back();  // behind the last bar
    EXPECT_GE(cells.size(), 6u) << line;
    if (cells.size() < 6) continue;
    TableCase& c = cases.emplace_back();
    c.title = cells[0];
    c.op = cells[1];
    c.inputs = std::vector<std::string>(absl::StrSplit(cells[2], "; "));
    c.attributes = cells[3];
    EXPECT_EQ(std::sscanf(cells[4].c_str(), "%d of %d", &c.wanted, &c.outputs), 2) << line;
    c.expected = cells[5];
    c.more.assign(cells.begin() + 6, cells.end());
  }
  return cases;
}

// Runs the node of a case. Adds a test failure if the result differs by more than ONNX's own tolerance.
inline void CheckCase(const TableCase& c) {
  SCOPED_TRACE(c.title + ": " + c.op + " " + c.attributes);
  std::string text, call, outs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const bool absent = c.inputs[i] == "_";
    if (!absent) text += fmt::format("const i{} = {}\n", i, c.inputs[i]);
    call += fmt::format("{}{}", i ? ", " : "", absent ? "_" : fmt::format("i{}", i));
  }
  for (int i = 0; i < c.outputs; ++i) outs += fmt::format("{}y{}", i ? ", " : "", i);
  text += fmt::format("{} = {}({}) {}\noutput y{}\n", outs, c.op, call, c.attributes, c.wanted);
  const auto expected = ParseGraphText("const c = " + c.expected + "\n");
  ASSERT_TRUE(expected.ok()) << FormatError(expected.status());
  const auto results = RunText(text);
  ASSERT_TRUE(results.ok()) << FormatError(results.status());
  const absl::Status same = CompareTensors((*results)[0].tensor, expected->value(0).constant);
  EXPECT_TRUE(same.ok()) << FormatError(same) << "\ngot " << TensorToText((*results)[0].tensor);
}

}  // namespace mge
