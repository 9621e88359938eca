// SPDX-License-Identifier: Apache-2.0
// Compares what a model gave with what was expected.
#pragma once

#include <string>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

struct Tolerance {
  double relative = 1e-3;  // those of ONNX's own test runner
  double absolute = 1e-7;
};

// Of results of two devices, whose kernels round on the way to values near 0.
inline constexpr Tolerance kBetweenDevices = {1e-3, 1e-5};

// How two values differ. Errors are of the elements whose difference is a number; relative errors leave out those expected to be 0.
struct Comparison {
  std::string mismatch = {};  // types, shapes or kinds that differ; nothing else is set then
  uint64_t elements = 0;
  uint64_t wrong = 0;         // beyond the tolerance
  uint64_t not_finite = 0;    // of the wrong ones: NaN or infinite on one side only
  double max_abs = 0, mean_abs = 0, max_rel = 0, mean_rel = 0;
  // The element that exceeds the tolerance most, else the one with the largest absolute error; set if any two differ.
  bool differs = false;
  std::string worst = {};     // "[0,3,1]", with "part 2 " in front within a sequence
  uint64_t worst_index = 0;   // the same as a flat index
  std::string got = {}, expected = {};

  bool ok() const { return mismatch.empty() && wrong == 0; }
};

// Floats within |got - expected| <= absolute + relative * |expected| are right; integers, bools and strings if they are equal.
Comparison Compare(const Tensor& got, const Tensor& expected, const Tolerance& tolerance);

// "" if it is ok, else one sentence: the types, or how many elements differ and the worst one.
std::string Sentence(const Comparison& c);
// The errors in one line: "max abs 1.2e-06, mean abs 3e-08, max rel 4e-05, mean rel 1e-06".
std::string ErrorLine(const Comparison& c);
Json ToJson(const Comparison& c);

bool HoldsNan(const Tensor& value);

// A table of comparisons: its head, whose first column is called `first`, and a row.
std::vector<std::string> ComparisonHead(const std::string& first);
std::vector<std::string> ComparisonRow(const std::string& name, const Comparison& c);

}  // namespace mge::cli
