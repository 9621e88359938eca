// SPDX-License-Identifier: Apache-2.0
// mge bench diff: compares measurements that `mge bench --json` and `mge profile --json` have written.
#pragma once

#include <string>

#include "core/cli/common.h"

namespace mge::cli {

struct BenchDiffOptions {
  std::string before, after, page;
  int64_t top = 20;
};

int RunBenchDiff(const Globals& globals, const BenchDiffOptions& o);

// Draws the report "mge.bench_diff/1" as the body of a page.
std::string BenchDiffBody(const Json& diff);

// Formats a value of a group with this unit, "us" or "bytes".
std::string ValueText(const Json& value, const std::string& unit);

}  // namespace mge::cli
