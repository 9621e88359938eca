// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

std::string Model(const std::string& x, const std::string& cache, const std::string& attrs, bool positions,
                  const std::string& dtype = "float32") {
  return "input x : " + dtype + x + "\ninput c : " + dtype + cache + "\ninput s : " + dtype + cache +
         (positions ? "\nconst p = int64[2,3]<0, 6, 2, 5, 1, -1>\ny = RotaryEmbedding(x, c, s, p) "
                    : "\ny = RotaryEmbedding(x, c, s) ") +
         attrs + "\noutput y\n";
}

TEST(RotaryEmbeddingRewrite, KeepsTheResultsOfEveryForm) {
  for (bool positions : {false, true}) {
    for (bool interleaved : {false, true}) {
      for (bool partly : {false, true}) {
        for (bool flat : {false, true}) {
          const std::string attrs = std::string("{interleaved=") + (interleaved ? "1" : "0") +
                                    ", rotary_embedding_dim=" + (partly ? "4" : "0") + (flat ? ", num_heads=2}" : "}");
          const std::string half = partly ? "2]" : "4]";
          const std::string ops = AfterRewrite(
              "rotary_embedding",
              Model(flat ? "[2,3,16]" : "[2,2,3,8]", (positions ? "[7," : "[2,3,") + half, attrs, positions), 1e-6);
          EXPECT_THAT(ops, testing::HasSubstr("Mul Sub")) << attrs;
          EXPECT_THAT(ops, testing::Not(testing::HasSubstr("Rotary"))) << attrs;
        }
      }
    }
  }
}

TEST(RotaryEmbeddingRewrite, CutsRowsThatAreTooLong) {
  EXPECT_THAT(AfterRewrite("rotary_embedding", Model("[2,2,3,8]", "[7,5]", "", true)), testing::HasSubstr("Mul Sub"));
}

TEST(RotaryEmbeddingRewrite, NeedsFewNodesForHalves) {
  const std::string ops = AfterRewrite("rotary_embedding", Model("[2,2,3,8]", "[2,3,4]", "", false));
  EXPECT_EQ(std::count(ops.begin(), ops.end(), ' '), 10) << ops;
}

TEST(RotaryEmbeddingRewrite, WorksInEveryFloatingType) {
  for (const auto& [dtype, tolerance] : {std::pair{"float64", 1e-12}, {"float16", 4e-3}, {"bfloat16", 3e-2}}) {
    EXPECT_THAT(AfterRewrite("rotary_embedding", Model("[2,2,3,8]", "[1,3,4]", "", false, dtype), tolerance),
                testing::HasSubstr("Mul Sub"));
  }
}

TEST(RotaryEmbeddingRewrite, LeavesHeadsWithoutElements) {
  EXPECT_EQ(AfterRewrite("rotary_embedding",
                         "input x : float32[2,2,3,0]\ninput c : float32[2,3,0]\n"
                         "y = RotaryEmbedding(x, c, c)\noutput y\n"),
            "RotaryEmbedding");
}

}  // namespace
}  // namespace mge
