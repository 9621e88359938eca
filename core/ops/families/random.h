// SPDX-License-Identifier: Apache-2.0
// Random numbers for operators. They depend only on the seed, not on the machine or on threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "core/ops/infer_checks.h"
#include "core/ops/op_helpers.h"

namespace mge {

// A SplitMix64 generator. Its only state is a counter.
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Returns a number in [0, 1) with 53 random bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Returns a number with mean 0 and variance 1 (Box-Muller).
  double Normal() {
    double u = 1 - Uniform();  // never 0
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  uint64_t state_;
};

// Sets the type of output 0. Its element type is the attribute "dtype", else input 0's type, else float32. Its shape is
// the attribute "shape", or input 0's shape if there is an input.
absl::Status RandomInfer(InferContext& ctx);

// Fills output 0 with draw(stream). Its type and shape are those of RandomInfer.
absl::Status EvalRandom(EvalContext& ctx, double (*draw)(RandomStream& stream, const Attributes& attrs));

}  // namespace mge
