// SPDX-License-Identifier: Apache-2.0
// The evaluator of Attention gives the results before each rewrite, the nodes of the rewrite those behind it.
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns the operators of an Attention behind the rewrite. Queries have 4 heads of 2 elements, keys `kv_heads` heads.
std::string Rewritten(const std::string& inputs, const std::string& call, const std::string& more = "output y\n",
                      double tolerance = 1e-5) {
  return AfterRewrite("attention", inputs + call + "\n" + more, tolerance);
}

const std::string kHeads = "input q : float32[2,4,3,2]\ninput k : float32[2,4,5,2]\ninput v : float32[2,4,5,6]\n";
const std::string kShared = "input q : float32[2,4,3,2]\ninput k : float32[2,2,5,2]\ninput v : float32[2,2,5,6]\n";
const std::string kRows = "input q : float32[2,3,8]\ninput k : float32[2,5,8]\ninput v : float32[2,5,12]\n";
const std::string kSharedRows = "input q : float32[2,3,8]\ninput k : float32[2,5,4]\ninput v : float32[2,5,12]\n";

TEST(AttentionRewrite, MakesProductsAndASoftmaxOfIt) {
  EXPECT_EQ(Rewritten(kHeads, "y = Attention(q, k, v)"), "Mul Transpose MatMul Softmax MatMul Reshape");
  EXPECT_EQ(Rewritten(kHeads, "y = Attention(q, k, v) {scale=1.0}"), "Transpose MatMul Softmax MatMul Reshape");
  EXPECT_THAT(Rewritten(kRows, "y = Attention(q, k, v) {q_num_heads=4, kv_num_heads=4}"), Not(HasSubstr("Attention")));
  EXPECT_THAT(Rewritten(kShared, "y = Attention(q, k, v) {softcap=0.5}"), HasSubstr("Tanh"));
  EXPECT_THAT(Rewritten(kSharedRows, "y = Attention(q, k, v) {q_num_heads=4, kv_num_heads=2, scale=0.3}"),
              Not(HasSubstr("Attention")));
}

TEST(AttentionRewrite, LimitsTheKeysThatAQuerySees) {
  for (const std::string& inputs : {kHeads, kShared}) {
    for (const char* limits : {"is_causal=1", "left_window_size=1", "right_window_size=0", "is_causal=1, left_window_size=0",
                               "left_window_size=1, right_window_size=1"}) {
      EXPECT_THAT(Rewritten(inputs, std::string("y = Attention(q, k, v) {") + limits + "}"), Not(HasSubstr("Attention")))
          << limits;
    }
  }
}

// A query that sees no key gets zeros: the second one by the bool mask, and the first one by both masks.
TEST(AttentionRewrite, MayHaveAMask) {
  const std::string masks =
      "const keep = bool[3,5]<true, true, false, false, true, false, false, false, false, false, true, true, true, true, "
      "true>\nconst first = bool[3,5]<false, true, true, true, true, true, true, true, true, true, true, true, true, true, "
      "true>\n"
      "input radd : float32[2,1,1,5]\ninput rheads : float32[4,3,5]\n";
  for (const std::string& inputs : {kHeads + masks, kShared + masks}) {
    for (const char* mask : {"keep", "first", "radd", "rheads"}) {
      for (const char* limits : {"", " {is_causal=1}"}) {
        EXPECT_THAT(Rewritten(inputs, std::string("y = Attention(q, k, v, ") + mask + ")" + limits),
                    Not(HasSubstr("Attention")))
            << mask << limits;
      }
    }
  }
  for (const char* mask : {"keep", "radd", "rheads"}) {
    EXPECT_THAT(Rewritten(kSharedRows + masks,
                          std::string("y = Attention(q, k, v, ") + mask + ") {q_num_heads=4, kv_num_heads=2, is_causal=1}"),
                Not(HasSubstr("Attention")))
        << mask;
  }
}

TEST(AttentionRewrite, PutsThePastInFront) {
  const std::string past = "input pk : float32[2,4,2,2]\ninput pv : float32[2,4,2,6]\n";
  for (const char* limits : {"", " {is_causal=1}", " {left_window_size=1}"}) {
    EXPECT_THAT(Rewritten(kHeads + past, std::string("y, nk, nv, s = Attention(q, k, v, , pk, pv)") + limits,
                          "output y\noutput nk\noutput nv\noutput s\n"),
                Not(HasSubstr("Attention")));
  }
  EXPECT_THAT(Rewritten(kHeads, "y, nk, nv = Attention(q, k, v)", "output y\noutput nk\noutput nv\n"),
              Not(HasSubstr("Attention")));
}

// Exporters write a Transpose behind it. Nothing stands between that and the last product.
TEST(AttentionRewrite, JoinsTheTransposeAfterIt) {
  const std::string mask = "input radd : float32[2,1,1,5]\n";
  for (const std::string& inputs : {kHeads, kShared}) {
    EXPECT_THAT(Rewritten(inputs + mask, "a = Attention(q, k, v, radd)\ny = Transpose(a) {perm=[0,2,1,3]}"),
                EndsWith("MatMul Transpose Transpose Where Reshape"));
  }
  EXPECT_THAT(Rewritten(kHeads, "a = Attention(q, k, v)\ny = Transpose(a) {perm=[0,1,3,2]}"),
              EndsWith("Softmax MatMul Reshape Transpose"));
}

TEST(AttentionRewrite, MaySeeANumberOfValidKeys) {
  const std::string more =
      "const n = int64[2]<2, 5>\ninput radd : float32[2,1,1,5]\ninput rheads : float32[4,3,5]\n"
      "const keep = bool[3,5]<true, true, false, false, true, false, false, false, false, false, true, true, true, true, "
      "true>\n";
  const std::pair<std::string, std::string> forms[] = {{kHeads, ""},
                                                       {kShared, ""},
                                                       {kRows, ", q_num_heads=4, kv_num_heads=4"},
                                                       {kSharedRows, ", q_num_heads=4, kv_num_heads=2"}};
  for (const auto& [inputs, heads] : forms) {
    for (const char* limits : {"is_causal=0", "is_causal=1", "left_window_size=1, right_window_size=0", "softcap=0.5",
                               "left_window_size=9223372036854775807, right_window_size=9223372036854775807"}) {
      for (const char* mask : {"_", "radd", "rheads", "keep"}) {
        const std::string call = fmt::format("y = Attention(q, k, v, {}, _, _, n) {{{}{}}}", mask, limits, heads);
        EXPECT_THAT(Rewritten(inputs + more, call), AllOf(Not(HasSubstr("Attention")), HasSubstr("Softmax"))) << call;
      }
    }
  }
}

TEST(AttentionRewrite, LeavesWhatItCannotExpress) {
  EXPECT_EQ(Rewritten(kHeads, "y, nk, nv, s = Attention(q, k, v) {qk_matmul_output_mode=3}", "output y\noutput s\n"),
            "Attention");
  EXPECT_EQ(Rewritten(kHeads + "input rm : float32[3,4]\n", "y = Attention(q, k, v, rm)"), "Attention");  // fewer keys
}

TEST(AttentionRewrite, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(Rewritten("input q : float32[2,3,2,2]\ninput k : float32[2,2,5,2]\ninput v : float32[2,2,5,2]\n",
                        "y = Attention(q, k, v)"),
              HasSubstr("3 heads of queries cannot share 2 heads of keys"));
  EXPECT_THAT(Rewritten(kRows, "y = Attention(q, k, v)"), HasSubstr("cannot be divided into 0 heads"));
  EXPECT_THAT(Rewritten(kHeads + "input m : float32[7]\n", "y = Attention(q, k, v, m)"), HasSubstr("attn_mask"));
  EXPECT_THAT(Rewritten(kHeads, "y = Attention(q, k, v) {softmax_precision=6}"), HasSubstr("softmax_precision"));
}

}  // namespace
}  // namespace mge
