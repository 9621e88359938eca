// SPDX-License-Identifier: Apache-2.0
// Gap files of `mge check`: the tests that are known not to pass, each with the error that it ends in and a reason.
//
// A line is "PATH ERROR REASON", such as "node/test_bernoulli E0801 expects another generator's numbers"; empty lines
// and those that begin with # do not count. PATH is the end of the test's folder. A gap holds only while the test ends
// in that very error: a test that passes, or fails in another way, counts as failed.
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

// False if a line is malformed or names a test twice; `error` says which.
bool ParseGaps(std::string_view text, std::vector<Gap>* out, std::string* error);

// The gap of the test in `folder` (absolute), or null.
const Gap* FindGap(const std::vector<Gap>& gaps, std::string_view folder);

// The gaps of ONNX's own backend tests: onnx_gaps.txt.
std::string_view OnnxGaps();

}  // namespace mge::cli
