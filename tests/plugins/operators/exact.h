// SPDX-License-Identifier: Apache-2.0
// Operands of quantized operators, for tests whose results must equal those of the reference evaluators.
#pragma once

#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/backend_harness.h"

namespace mge::testing {

inline Tensor Bytes(DType t, Shape shape, uint64_t seed) {
  const bool is_signed = t == DType::kI8;
  return Random(t, std::move(shape), is_signed ? -128 : 0, is_signed ? 127 : 255, seed);
}
inline Tensor Number(DType t, double value) { return Fill(t, {}, {value}); }
inline Tensor Scales(Shape shape, uint64_t seed) { return Random(DType::kF32, std::move(shape), 0.01, 0.03, seed); }

// Checks that the backend offers a kernel and that all kernels give the reference's bits.
inline void CheckOffered(Backend& backend, const Case& c) {
  EXPECT_FALSE(backend.Check(c, Exactly).candidates.empty()) << c.name;
}

}  // namespace mge::testing
