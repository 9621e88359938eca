// SPDX-License-Identifier: Apache-2.0
// MatMulNBits on GPUs: 16-bit floats, and many rows.
#include "tests/plugins/operators/packed_weights.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge::testing {
namespace {

// The reference rounds each weight to 16 bits.
Tolerance OfHalves(DType type) { return type == DType::kBF16 ? Tolerance{4e-2, 3e-1} : Tolerance{1e-2, 5e-2}; }

TEST(PackedWeightsOnGpus, HaveEveryTypeForFewAndManyRows) {
  OnEveryMachine([](Backend& backend) {
    for (DType type : {DType::kF16, DType::kBF16}) {
      for (int64_t rows : {1, 3, 70}) {
        Weights w = {rows, 96, 37, 32, 4, rows == 3 ? Zeros::kPacked : Zeros::kFloat, rows == 1};
        w.type = type;
        const Backend::Outcome outcome = backend.Check(CaseOf(w), OfHalves);
        EXPECT_THAT(outcome.candidates, ::testing::Not(::testing::IsEmpty()));
      }
    }
    backend.Check(CaseOf({40, 100, 37, 32, 4, Zeros::kPacked, true}), OfSums);
  });
}

// Words of 32 bits would have numbers of two blocks, or end behind the column.
TEST(PackedWeightsOnGpus, HaveBlocksThatAreNoWholeWords) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t block : {8, 24}) {
      for (int bits : {2, 4, 8}) backend.Check(CaseOf({3, 70, 9, block, bits, Zeros::kPacked}), OfSums);
    }
  });
}

}  // namespace
}  // namespace mge::testing
