// SPDX-License-Identifier: Apache-2.0
// Offers of kernels of oneDNN and OpenBLAS.
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

bool Has(const std::vector<std::string>& list, std::string_view word) {
  for (const std::string& s : list) {
    if (s.find(word) != std::string::npos) return true;
  }
  return false;
}

TEST(Libraries, AreOfferedUnlessASettingForbidsThem) {
  Case c = OneNode("MatMul", {Random(DType::kF32, {256, 256}), Random(DType::kF32, {256, 256})}, {}, {1});
  struct Row {
    const char* key;
    const char* library;
    bool built;
  };
  for (const Row& row : {Row{"cpu.onednn", "onednn.", MGE_HAS_ONEDNN}, Row{"cpu.openblas", "openblas.", MGE_HAS_OPENBLAS}}) {
    UnderTest().Set(row.key, "true");
    EXPECT_EQ(Has(UnderTest().Offers(c).candidates, row.library), row.built);
    UnderTest().Set(row.key, "false");
    Backend::Outcome off = UnderTest().Offers(c);
    EXPECT_FALSE(Has(off.candidates, row.library));
    EXPECT_FALSE(off.candidates.empty());
    EXPECT_EQ(Has(off.refusals, row.key), row.built);
    UnderTest().Set(row.key, "true");
    UnderTest().Set("cpu.isa", "portable");
    EXPECT_FALSE(Has(UnderTest().Offers(c).candidates, row.library)) << "a library chooses its instruction set itself";
    UnderTest().Set("cpu.isa", "auto");
  }
}

TEST(Libraries, OfferPoolingOfImages) {
  Case c = OneNode("MaxPool", {Random(DType::kF32, {1, 64, 60, 57})},
                   With({{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}));
  EXPECT_EQ(Has(UnderTest().Offers(c).candidates, "onednn.pool"), MGE_HAS_ONEDNN);
}

}  // namespace
}  // namespace mge::testing
