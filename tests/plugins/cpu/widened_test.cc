// SPDX-License-Identifier: Apache-2.0
// Kernels of float32 that compute 16-bit types between conversions.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr DType kTypes[] = {DType::kF16, DType::kBF16};

// One node of each kind of problem whose kernels are in float32 only: windows, recurrences, images, samples.
std::vector<Case> CasesOf(DType t) {
  auto x = [&](Shape shape, uint64_t seed) { return Random(t, std::move(shape), -1, 1, seed); };
  std::vector<Case> cases;
  for (const bool constant : {false, true}) {
    const std::vector<int> constants = constant ? std::vector<int>{1, 2} : std::vector<int>{};
    cases.push_back(OneNode("Conv", {x({2, 6, 9, 10}, 1), x({8, 6, 3, 3}, 2), x({8}, 3)}, {}, constants));
    cases.push_back(OneNode("Conv", {x({1, 8, 9, 10}, 1), x({8, 1, 3, 3}, 2)}, With({{"group", int64_t{8}}}),
                            constant ? std::vector<int>{1} : std::vector<int>{}));
    cases.push_back(OneNode("ConvTranspose", {x({1, 4, 5, 6}, 1), x({4, 3, 3, 3}, 2)}, {},
                            constant ? std::vector<int>{1} : std::vector<int>{}));
    cases.push_back(OneNode("LSTM", {x({3, 2, 4}, 1), x({1, 20, 4}, 2), x({1, 20, 5}, 3)},
                            With({{"hidden_size", int64_t{5}}}), constants, 3));
  }
  cases.push_back(OneNode("GridSample", {x({1, 3, 5, 6}, 1), x({1, 4, 4, 2}, 2)}));
  return cases;
}

TEST(Widened, KernelsComputeWhatNoRowComputesInSixteenBits) {
  for (DType t : kTypes) {
    for (const Case& c : CasesOf(t)) {
      OnEveryMachine([&](Backend& backend) {
        const Backend::Outcome outcome = backend.Check(c, Roughly);
        EXPECT_THAT(outcome.candidates, Not(IsEmpty())) << c.name << " " << DTypeName(t);
        EXPECT_THAT(outcome.candidates, Each(StartsWith("cpu.widened."))) << c.name;
      });
    }
  }
}

TEST(Widened, KernelsAreNotOfferedBesideAKernelOfTheType) {
  for (DType t : kTypes) {
    for (const char* op : {"Relu", "Softmax"}) {
      const Backend::Outcome outcome = UnderTest().Offers(OneNode(op, {Random(t, {4, 5})}));
      EXPECT_THAT(outcome.candidates, Not(IsEmpty())) << op;
      for (const std::string& id : outcome.candidates) EXPECT_THAT(id, Not(StartsWith("cpu.widened."))) << op;
    }
  }
}

TEST(Widened, ConvolutionsIncludeTheNodesThatFollow) {
  for (DType t : kTypes) {
    Case c = OneNode("Conv", {Random(t, {1, 8, 9, 9}, -1, 1, 1), Random(t, {8, 8, 3, 3}, -1, 1, 2)}, {}, {1});
    Then(c, "Add", {Random(t, {8, 1, 1}, -1, 1, 3)});
    Then(c, "Clip", {Fill(t, {}, {0}), Fill(t, {}, {0.5})});
    const std::vector<std::string> claims = UnderTest().Claims(c);
    EXPECT_NE(std::ranges::find(claims, "conv_epilogue: Conv Add Clip"), claims.end()) << DTypeName(t);
    OnEveryMachine([&](Backend& backend) {
      EXPECT_THAT(backend.Check(c, [](DType type) { return ToleranceOf(type, 200); }).candidates, Not(IsEmpty()));
    });
  }
}

TEST(Widened, ProductsKeepTheirOwnKernelsAndEpilogues) {
  for (DType t : kTypes) {
    Case c = OneNode("Gemm", {Random(t, {4, 8}, -1, 1, 1), Random(t, {8, 8}, -1, 1, 2)}, {}, {1});
    Then(c, "Relu");
    for (const std::string& claim : UnderTest().Claims(c)) EXPECT_THAT(claim, Not(StartsWith("gemm_epilogue")));
  }
}

}  // namespace
}  // namespace mge::testing
