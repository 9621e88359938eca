// SPDX-License-Identifier: Apache-2.0
// Compares what a model gave with what was expected.
#pragma once

#include <string>

#include "mge/mge.hpp"

namespace mge::cli {

struct Tolerance {
  double relative = 1e-3;  // those of ONNX's own test runner
  double absolute = 1e-7;
};

// Of results of two devices, whose kernels round on the way to values near 0.
inline constexpr Tolerance kBetweenDevices = {1e-3, 1e-5};

// "" if equal within |got - expected| <= absolute + relative * |expected|; integers, bools and strings exactly.
// Else one sentence: types, or the number of wrong elements, the worst one and its place.
std::string Difference(const Tensor& got, const Tensor& expected, const Tolerance& tolerance);

}  // namespace mge::cli
