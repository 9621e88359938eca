// SPDX-License-Identifier: Apache-2.0
// Random numbers for operators: the same on every machine for a seed, and independent of threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

// SplitMix64: passes the usual tests, has no state beyond a counter.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, 1), 53 bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Mean 0, variance 1 (Box-Muller).
  double Normal() {
    double u = 1 - Uniform();  // never 0
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t state_;
};

// Output 0: the attribute "dtype" (else input 0's type, else float32), and the attribute "shape" or input 0's shape.
absl::Status RandomInfer(InferContext& ctx);

// Fills output 0, of the type and shape that RandomInfer tells, with draw(stream).
absl::Status EvalRandom(EvalContext& ctx, double (*draw)(RandomStream& stream, const Attributes& attrs));

}  // namespace mge
