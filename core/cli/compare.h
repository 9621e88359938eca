// SPDX-License-Identifier: Apache-2.0
// Comparison of a model's results with the expected ones.
#pragma once

#include <string>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

struct Tolerance {
  double relative = 1e-3;  // both as in ONNX's own test runner
  double absolute = 1e-7;
};

// The tolerance between two devices. Their kernels round intermediate values differently, so results near 0 have absolute
// errors.
inline constexpr Tolerance kBetweenDevices = {1e-3, 1e-5};

// The differences of two values. The errors include only elements with a finite difference; the relative errors exclude
// elements whose expected value is 0.
struct Comparison {
  std::string mismatch = {};  // description of different types, shapes or kinds; if not empty, nothing else is set
  uint64_t elements = 0;
  uint64_t wrong = 0;       // number of elements beyond the tolerance
  uint64_t not_finite = 0;  // number of wrong elements that are NaN or infinite on one side only
  double max_abs = 0, mean_abs = 0, max_rel = 0, mean_rel = 0;
  // The element that exceeds the tolerance most, else the one with the largest absolute error. Set if any element differs.
  bool differs = false;
  std::string worst = {};    // place such as "[0,3,1]", after "part 2 " in a sequence
  uint64_t worst_index = 0;  // the same as a flat index
  std::string got = {}, expected = {};

  bool ok() const { return mismatch.empty() && wrong == 0; }
};

// Compares two values. A float is right if |got - expected| <= absolute + relative * |expected|; integers, bools and strings
// must be equal.
Comparison Compare(const Tensor& got, const Tensor& expected, const Tolerance& tolerance);

// Returns "" if the comparison is ok, else a sentence with the different types, or with the number of different elements and
// the worst one.
std::string Sentence(const Comparison& c);
// Returns the errors in one line: "max abs 1.2e-06, mean abs 3e-08, max rel 4e-05, mean rel 1e-06".
std::string ErrorLine(const Comparison& c);
Json ToJson(const Comparison& c);

bool HoldsNan(const Tensor& value);  // false for an empty object

// Return the head and a row of a table of comparisons. `first` is the title of the first column.
std::vector<std::string> ComparisonHead(const std::string& first);
std::vector<std::string> ComparisonRow(const std::string& name, const Comparison& c);

}  // namespace mge::cli
