// SPDX-License-Identifier: Apache-2.0
// Cases of MatMulNBits.
#pragma once

#include <string>
#include <vector>

#include "under_test.h"

namespace mge::testing {

// Kinds of zero_points.
enum class Zeros { kNone, kPacked, kFloat };

struct Weights {
  int64_t rows, k, n, block;
  int bits = 4;
  Zeros zeros = Zeros::kNone;
  bool bias = false;
  std::vector<int> constants = {1, 2, 3, 5};
  int64_t accuracy_level = 0;
  DType type = DType::kF32;
  Tensor a = {}, b = {};  // undefined: random numbers
};

inline Case CaseOf(const Weights& w) {
  const int64_t blocks = (w.k - 1) / w.block + 1;
  Tensor zeros, bias;
  if (w.zeros == Zeros::kPacked) zeros = Random(DType::kU8, {w.n * ((blocks * w.bits + 7) / 8)}, 0, 255, 4);
  if (w.zeros == Zeros::kFloat) zeros = Random(w.type, {w.n, blocks}, 0, 12, 4);
  if (w.bias) bias = Random(w.type, {w.n}, -1, 1, 5);
  Case c = OneNode("MatMulNBits",
                   {w.a.defined() ? w.a : Random(w.type, {1, w.rows, w.k}, -1, 1, 1),
                    w.b.defined() ? w.b : Random(DType::kU8, {w.n, blocks, w.block * w.bits / 8}, 0, 255, 2),
                    Random(w.type, {w.n, blocks}, 0.01, 0.1, 3), zeros, Tensor(), bias},
                   With({{"K", w.k},
                         {"N", w.n},
                         {"block_size", w.block},
                         {"bits", int64_t{w.bits}},
                         {"accuracy_level", w.accuracy_level}}),
                   w.constants, 1, "com.microsoft");
  c.name = "MatMulNBits of " + std::to_string(w.bits) + " bits, " + std::to_string(w.rows) + " rows";
  return c;
}

inline Tolerance OfSums(DType) { return {1e-4, 1e-4}; }

}  // namespace mge::testing
