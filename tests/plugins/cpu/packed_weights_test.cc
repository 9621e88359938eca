// SPDX-License-Identifier: Apache-2.0
// MatMulNBits on the CPU backend.
#include "tests/plugins/operators/packed_weights.h"

#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "mge/plugin/attributes.hpp"
#include "under_test.h"

namespace mge::testing {
namespace {

TEST(PackedWeights, ComputeManyColumnsInChunks) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t rows : {1, 4, 40}) backend.Check(CaseOf({rows, 300, 1030, 32, 4, Zeros::kPacked, true}), OfSums);
  });
}

// The error of numbers of 8 bits.
Tolerance OfBytes(DType) { return {2e-2, 1e-1}; }

TEST(PackedWeights, RoundRowsToBytesIfTheNodeAllowsIt) {
  OnEveryMachine([](Backend& backend) {
    for (int bits : {4, 8}) {
      for (Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kFloat}) {
        for (int64_t rows : {1, 3, 17}) {
          backend.Check(CaseOf({rows, 120, 37, 32, bits, zeros, rows == 3, {1, 2, 3, 5}, 4}), OfBytes);
        }
      }
    }
    backend.Check(CaseOf({2, 64, 20, 16, 4, Zeros::kFloat, true, {}, 4}), OfBytes);
    backend.Check(CaseOf({5, 512, 1030, 128, 4, Zeros::kPacked, true, {1, 2, 3, 5}, 4}), OfBytes);
  });
}

// The largest weights and rows of +-1, which bytes represent exactly.
TEST(PackedWeights, SumsOfBytesDoNotOverflow) {
  const int64_t n = 19;
  OnEveryMachine([&](Backend& backend) {
    for (int bits : {4, 8}) {
      for (int64_t block : {16, 32, 64, 256}) {
        for (int64_t rows : {1, 2, 9}) {
          const std::vector<double> largest(static_cast<size_t>(2 * n * block * bits / 8), 255);
          for (double sign : {1.0, -1.0}) {
            Weights w = {rows, 2 * block, n, block, bits};
            w.accuracy_level = 4;
            w.a = Fill(DType::kF32, {1, rows, w.k}, std::vector<double>(static_cast<size_t>(rows * w.k), sign));
            w.b = Fill(DType::kU8, {n, 2, block * bits / 8}, largest);
            backend.Check(CaseOf(w), OfSums);
          }
        }
      }
    }
  });
}

TEST(PackedWeights, OfARowWithNaNAreNaNAlsoInBytes) {
  std::vector<double> numbers(3 * 70, 0.5);
  numbers[70 + 69] = std::numeric_limits<double>::quiet_NaN();
  Weights w = {3, 70, 9, 32};
  w.accuracy_level = 4;
  w.a = Fill(DType::kF32, {1, 3, 70}, numbers);
  OnEveryMachine([&](Backend& backend) { backend.Check(CaseOf(w), OfBytes); });
}

// The reference rounds the weights to the type.
Tolerance OfHalves(DType t) { return t == DType::kF16 ? Tolerance{2e-2, 1e-1} : Tolerance{1e-1, 3e-1}; }

TEST(PackedWeights, OfRowsInBytesAreNotForbiddenBySettings) {
  OnEveryMachine([](Backend& backend) {
    for (int64_t level : {0, 4}) {
      Weights w = {8, 128, 64, 32};
      w.accuracy_level = level;
      const Backend::Outcome o = backend.Offers(CaseOf(w));
      for (size_t i = 0; i < o.candidates.size(); ++i) {
        const bool bytes = o.candidates[i].find("int8") != std::string::npos;
        EXPECT_EQ(o.attributes[i] & kLessPrecise, bytes ? MGE_KERNEL_MODEL_PRECISION : 0) << o.candidates[i];
        EXPECT_TRUE(!bytes || level == 4) << o.candidates[i];
      }
    }
  });
}

TEST(PackedWeights, SupportHalfFloats) {
  OnEveryMachine([](Backend& backend) {
    for (DType type : {DType::kF16, DType::kBF16}) {
      for (Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kFloat}) {
        for (int64_t rows : {1, 5, 9}) {
          for (int64_t level : {0, 4}) {
            backend.Check(CaseOf({rows, 120, 37, 32, 4, zeros, rows == 5, {1, 2, 3, 5}, level, type}), OfHalves);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace mge::testing
