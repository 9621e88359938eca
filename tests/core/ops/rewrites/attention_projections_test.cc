// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_replace.h"
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

constexpr char kRewrite[] = "attention_projections";

// Returns an attention over the tensor x. The texts replace parts of it.
struct Attention {
  std::string type = "float32";
  std::string biases = "q = Add(q0, rbq)\nk = Add(rbk, k0)\nv = Add(v0, rbv)\n";
  std::string values = "v0 = MatMul(x, rv)\n";
  std::string more = "";

  std::string Text() const {
    const std::string text =
        "input x : T[2,3,8]\ninput z : T[2,3,8]\nconst half = T[]<0.5>\n"
        "const rq = T[8,4]<0>\nconst rk = T[8,4]<0>\nconst rv = T[8,6]<0>\n"
        "const rbq = T[4]<0>\nconst rbk = T[4]<0>\nconst rbv = T[6]<0>\n"
        "q0 = MatMul(x, rq)\nk0 = MatMul(x, rk)\n" +
        values + biases +
        "kt = Transpose(k) {perm=[0,2,1]}\ns = MatMul(q, kt)\nh = Mul(s, half)\nw = Softmax(h)\ny = MatMul(w, v)\n" + more +
        "output y\n";
    return absl::StrReplaceAll(text, {{"T[", type + "["}});
  }
};

constexpr char kRest[] = "Transpose MatMul Mul Softmax MatMul";

TEST(AttentionProjections, BecomeOneProductAndASplit) {
  EXPECT_EQ(AfterRewrite(kRewrite, Attention().Text()), std::string("MatMul Add Split ") + kRest);
  EXPECT_EQ(AfterRewrite(kRewrite, Attention{.type = "float16"}.Text(), 2e-2), std::string("MatMul Add Split ") + kRest);
}

TEST(AttentionProjections, MayHaveNoBiases) {
  const std::string none = "q = Identity(q0)\nk = Identity(k0)\nv = Identity(v0)\n";
  EXPECT_THAT(AfterRewrite(kRewrite, Attention{.biases = none}.Text()), testing::StartsWith("MatMul Split "));
}

TEST(AttentionProjections, StayApartIfTheyDifferInFormOrAreNotAllOfOneAttention) {
  const Attention apart[] = {
      {.values = "v0 = MatMul(z, rv)\n"},
      {.more = "output k\n"},
      {.biases = "q = Identity(q0)\nk = Add(rbk, k0)\nv = Add(v0, rbv)\n"},
  };
  for (const Attention& a : apart) {
    EXPECT_THAT(AfterRewrite(kRewrite, a.Text()),
                testing::AllOf(testing::HasSubstr("MatMul MatMul MatMul"), testing::Not(testing::HasSubstr("Split"))));
  }
}

}  // namespace
}  // namespace mge
