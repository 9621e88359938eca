// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rewrite.h"
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

const Rewrite* FindRewrite(std::string_view name) {
  for (const Rewrite* rewrite : AllRewrites()) {
    if (rewrite->name == name) return rewrite;
  }
  return nullptr;
}

// Applies the rewrite to every If. `changes` is whether it must apply. Returns the outputs as text, each marked "differs" if
// the rewrite changed its value, and the remaining operators; or an error.
std::string Inline(const std::string& text, bool changes = true) {
  auto graph = ParseGraphText(text);
  if (!graph.ok()) return FormatError(graph.status());
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  auto before = Interpret(*graph, {});
  for (NodeId id = 0, n = graph->node_count(); id < n; ++id) {
    if (graph->node(id).op != "If") continue;
    auto changed = FindRewrite("inline_if")->apply(*graph, id, UnlimitedHostAllocator());
    if (!changed.ok() || *changed != changes) return "the rewrite returned an unexpected result";
  }
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  if (absl::Status s = VerifyGraph(*graph); !s.ok()) return FormatError(s);
  auto after = Interpret(*graph, {});
  if (!before.ok() || !after.ok()) return "it does not run";
  std::string out;
  for (size_t i = 0; i < after->size(); ++i) {
    out += TensorToText((*after)[i].tensor) +
           (TensorToText((*before)[i].tensor) == TensorToText((*after)[i].tensor) ? ";" : " differs;");
  }
  for (NodeId id = 0; id < graph->node_count(); ++id) {
    if (!graph->node(id).dead) out += " " + graph->node(id).op;
  }
  return out;
}

const std::string kBranches =
    "captures(a, b, b) {then_branch=graph {\ncapture a\ncapture b\nt = Concat(a, b) {axis=0}\noutput t, b\n}, "
    "else_branch=graph {\ncapture b\nconst k = int8[1]<9>\nt = Concat(b, k) {axis=0}\noutput t, k\n}}\noutput y, z\n";

TEST(InlineIf, ReplacesTheIfByTheTakenBranch) {
  const std::string inputs = "const a = int8[1]<1>\nconst b = int8[1]<2>\n";
  EXPECT_EQ(Inline(inputs + "const c = bool[]<true>\ny, z = If(c) " + kBranches),
            "int8[2]<1, 2>;int8[1]<2>; Concat Identity");
  EXPECT_EQ(Inline(inputs + "const c = bool[1]<false>\ny, z = If(c) " + kBranches),
            "int8[2]<2, 9>;int8[1]<9>; Concat Identity");
}

TEST(InlineIf, DoesNotApplyToUnknownConditions) {
  const std::string inputs = "const a = int8[1]<1>\nconst b = int8[1]<2>\nconst k = bool[1]<true>\n";
  EXPECT_EQ(Inline(inputs + "c = Squeeze(k)\ny, z = If(c) " + kBranches, /*changes=*/false),
            "int8[2]<1, 2>;int8[1]<2>; Squeeze If");
}

TEST(InlineIf, GivesOneValueToTwoOutputs) {
  EXPECT_EQ(Inline("const a = int8[1,2]<1, 2>\nconst c = bool[]<true>\ny, z = If(c) captures(a) {then_branch=graph {\n"
                   "capture a\nt = Transpose(a)\noutput t, t\n}, else_branch=graph {\nconst u = int8[1,1]<3>\n"
                   "output u, u\n}}\noutput y, z\n"),
            "int8[2,1]<1, 2>;int8[2,1]<1, 2>; Transpose Identity");
}

}  // namespace
}  // namespace mge
