// SPDX-License-Identifier: Apache-2.0
// Rewrites of forms of older operator sets into forms that backends implement.
#include "core/ops/rewrite.h"
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

// Applies the rewrites `names` and compares the results before and after. Returns the remaining operators.
std::string Rewritten(const std::string& text, std::vector<std::string_view> names) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  auto before = Interpret(*graph, {});
  for (NodeId id = 0, n = graph->node_count(); id < n; ++id) {
    for (const Rewrite* rewrite : AllRewrites()) {
      if (std::count(names.begin(), names.end(), rewrite->name) == 0 || graph->node(id).dead) continue;
      if (auto changed = rewrite->apply(*graph, id, UnlimitedHostAllocator()); !changed.ok())
        return FormatError(changed.status());
    }
  }
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  if (absl::Status s = VerifyGraph(*graph); !s.ok()) return FormatError(s);
  auto after = Interpret(*graph, {});
  if (!before.ok() || !after.ok()) return "it does not run";
  if (TensorToText((*before)[0].tensor) != TensorToText((*after)[0].tensor)) return "the results differ";
  std::string out;
  for (NodeId id = 0; id < graph->node_count(); ++id) {
    const Node& n = graph->node(id);
    if (n.dead) continue;
    out += (out.empty() ? "" : " ") + n.op;
    for (const auto& [name, value] : n.attrs) {
      if (name.starts_with('_')) out += "!";
    }
  }
  return out;
}

TEST(OldBroadcast, BecomesAnUnsqueeze) {
  const std::string consts = "const a = float32[2,2,2]<1>\nconst b = float32[2]<1, 2>\n";
  EXPECT_EQ(Rewritten(consts + "y = Add@6(a, b) {axis=1, broadcast=1}\noutput y\n", {"old_broadcast"}), "Add Unsqueeze");
  EXPECT_EQ(Rewritten(consts + "y = Less@6(a, b) {axis=2, broadcast=1}\noutput y\n", {"old_broadcast"}), "Less");
  EXPECT_EQ(Rewritten(consts + "y = Pow@6(a, b) {axis=-3, broadcast=1}\noutput y\n", {"old_broadcast"}), "Pow Unsqueeze");
  EXPECT_EQ(Rewritten("const a = float32[1,2,2]<-1>\nconst b = float32[2]<1, 2>\ny = PRelu@6(a, b)\noutput y\n",
                      {"old_broadcast"}),
            "PRelu Unsqueeze");
}

TEST(FlattenedSoftmax, BecomesTheFormSinceOperatorSet13) {
  const std::string x = "const x = float32[2,2,2]<1, 2, 3, 4, 5, 6, 7, 9>\n";
  EXPECT_EQ(Rewritten(x + "y = Softmax@11(x)\noutput y\n", {"flattened_softmax"}), "Softmax Flatten Shape Reshape");
  EXPECT_EQ(Rewritten(x + "y = LogSoftmax@11(x) {axis=2}\noutput y\n", {"flattened_softmax"}), "LogSoftmax");
  EXPECT_EQ(Rewritten("const x = float32[1,3,1,1]<1, 2, 3>\ny = Softmax@9(x)\noutput y\n", {"flattened_softmax"}),
            "Softmax");
  EXPECT_EQ(Rewritten("const x = float32[0,3,2]<>\ny = Softmax@9(x)\noutput y\n", {"flattened_softmax"}),
            "Softmax Flatten Shape Reshape");
}

TEST(DropoutInference, IsAnIdentity) {
  const std::string x = "const x = float32[2]<1, 2>\nconst r = float32[]<0.5>\nconst no = bool[]<false>\n";
  EXPECT_EQ(Rewritten(x + "y = Dropout(x)\noutput y\n", {"dropout_inference"}), "Identity");
  EXPECT_EQ(Rewritten(x + "y, m = Dropout(x, r, no)\noutput y\n", {"dropout_inference"}), "Identity");
  EXPECT_EQ(Rewritten(x + "y, m = Dropout(x, r, no)\noutput y, m\n", {"dropout_inference"}), "Dropout");
  EXPECT_EQ(Rewritten(x + "y = Dropout@7(x) {ratio=0.3}\noutput y\n", {"dropout_inference"}), "Identity");
}

}  // namespace
}  // namespace mge
