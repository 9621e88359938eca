// SPDX-License-Identifier: Apache-2.0
// Gap files of `mge check`: lists of tests that are known to fail, each with its error and a reason.
//
// A line is "PATH ERROR REASON", such as "node/test_bernoulli E0801 expects another generator's numbers". Empty lines
// and lines that begin with # are ignored. PATH is the end of the path of the test's folder. A listed test must fail
// with exactly this error: if it passes or fails with another error, it counts as failed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mge::cli {

struct Gap {
  std::string path;
  int error = 0;  // 801
  std::string reason;
};

// Parses a gap file. Returns false if a line is malformed or duplicate, and describes it in `error`.
bool ParseGaps(std::string_view text, std::vector<Gap>* out, std::string* error);

// Returns the gap of the test in `folder`, an absolute path, or null if there is none.
const Gap* FindGap(const std::vector<Gap>& gaps, std::string_view folder);

// Returns the gap file for ONNX's own backend tests: onnx_gaps.txt.
std::string_view OnnxGaps();

}  // namespace mge::cli
