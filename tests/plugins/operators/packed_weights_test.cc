// SPDX-License-Identifier: Apache-2.0
// MatMulNBits on each backend that has a kernel for it.
#include "tests/plugins/operators/packed_weights.h"

#include "gtest/gtest.h"

namespace mge::testing {
namespace {

TEST(PackedWeights, SupportEveryFormOfZeroPoints) {
  OnEveryMachine([](Backend& backend) {
    for (int bits : {2, 4, 8}) {
      for (Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kFloat}) {
        for (int64_t rows : {1, 5, 9}) backend.Check(CaseOf({rows, 96, 37, 32, bits, zeros, rows == 5}), OfSums);
      }
    }
  });
}

TEST(PackedWeights, SupportBlocksOfEverySize) {
  OnEveryMachine([](Backend& backend) {
    for (int bits : {2, 4, 8}) {
      for (int64_t block : {16, 32, 64, 128, 256}) {
        for (int64_t rows : {1, 8}) backend.Check(CaseOf({rows, 2 * block + 24, 5, block, bits, Zeros::kPacked}), OfSums);
      }
    }
  });
}

TEST(PackedWeights, MayBeComputedByOtherNodes) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t rows : {1, 12}) backend.Check(CaseOf({rows, 64, 20, 16, 4, Zeros::kFloat, true, {}}), OfSums);
  });
}

}  // namespace
}  // namespace mge::testing
