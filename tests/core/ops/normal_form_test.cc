// SPDX-License-Identifier: Apache-2.0
// The normal form of nodes: defaults, axes, windows and activations.
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

// Returns the only node of a graph after type inference.
Node Inferred(std::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  const absl::Status status = InferTypes(*graph);
  EXPECT_TRUE(status.ok()) << status;
  return graph->node(0);
}

TEST(NormalForm, HasEveryAttributeWithADefault) {
  const Node node = Inferred("input x : float32[2]\ny = LeakyRelu(x)\noutput y\n");
  EXPECT_EQ(node.attrs.Float("alpha"), 0.01f);
  EXPECT_EQ(Inferred("input x : float32[2]\ny = LeakyRelu(x) {alpha=0.5}\noutput y\n").attrs.Float("alpha"), 0.5f);
}

TEST(NormalForm, DoesNotChangeTheTextOfAGraph) {
  const std::string text =
      "input x : float32[2,3]\ny = Softmax(x) {axis=0} : float32[2,3]\nz = LeakyRelu(y) : float32[2,3]\noutput z\n";
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  EXPECT_EQ(GraphText(*graph), text);
}

TEST(NormalForm, KeepsTheDefaultsOfAnOldOperatorSet) {
  EXPECT_EQ(Inferred("input x : float32[2,3]\ny = Selu@1(x)\noutput y\n").attrs.Float("alpha"), 1.6732f);
  EXPECT_EQ(Inferred("input x : float32[2,3,4]\ny = Softmax@11(x)\noutput y\n").attrs.Int("axis"), 1);
}

TEST(NormalForm, CountsAxesFromTheFront) {
  EXPECT_EQ(Inferred("input x : float32[2,3,4]\ny = Softmax(x)\noutput y\n").attrs.Int("axis"), 2);
  EXPECT_EQ(Inferred("input x : float32[2,3]\ny = Concat(x, x) {axis=-2}\noutput y\n").attrs.Int("axis"), 0);
  EXPECT_EQ(Inferred("input x : float32\ny = Softmax(x)\noutput y\n").attrs.Int("axis"), -1) << "the rank is not known";
  EXPECT_EQ(
      Inferred("input i : int64[2,3]\nconst d = int64[]<4>\nconst v = float32[2]<0, 1>\ny = OneHot(i, d, v)\noutput y\n")
          .attrs.Int("axis"),
      2);
  EXPECT_EQ(Inferred("input x : float32[2,3,4]\ny = Transpose(x)\noutput y\n").attrs.IntList("perm"), Ints({2, 1, 0}));
}

TEST(NormalForm, CompletesWindows) {
  const Node conv = Inferred("input x : float32[1,1,5,6]\ninput w : float32[1,1,3,2]\ny = Conv(x, w)\noutput y\n");
  EXPECT_EQ(conv.attrs.IntList("kernel_shape"), Ints({3, 2}));
  EXPECT_EQ(conv.attrs.IntList("strides"), Ints({1, 1}));
  EXPECT_EQ(conv.attrs.IntList("dilations"), Ints({1, 1}));
  EXPECT_EQ(conv.attrs.IntList("pads"), Ints({0, 0, 0, 0}));
}

TEST(NormalForm, TurnsAutoPadIntoPads) {
  const auto pads = [](std::string_view mode, std::string_view shape) {
    const Node node = Inferred(
        fmt::format("input x : float32[{}]\ny = MaxPool(x) {{kernel_shape=[2], strides=[2], auto_pad=\"{}\"}}\noutput y\n",
                    shape, mode));
    return fmt::format("{} [{}]", node.attrs.Text("auto_pad"), fmt::join(node.attrs.IntList("pads"), ","));
  };
  EXPECT_EQ(pads("SAME_UPPER", "1,1,5"), "NOTSET [0,1]");
  EXPECT_EQ(pads("SAME_LOWER", "1,1,5"), "NOTSET [1,0]");
  EXPECT_EQ(pads("VALID", "1,1,5"), "NOTSET [0,0]");
  EXPECT_EQ(pads("SAME_UPPER", "1,1,?"), "SAME_UPPER [0,0]") << "the size is not known";
}

TEST(NormalForm, TurnsTheOutputShapeOfAConvTransposeIntoPads) {
  const Node node = Inferred(
      "input x : float32[1,1,3,3]\ninput w : float32[1,1,2,2]\n"
      "y = ConvTranspose(x, w) {strides=[2,2], output_shape=[5,8]}\noutput y\n");
  EXPECT_EQ(node.attrs.IntList("pads"), Ints({1, 0, 0, 0}));
  EXPECT_EQ(node.attrs.IntList("output_padding"), Ints({0, 2}));
  EXPECT_FALSE(node.attrs.Has("output_shape"));
}

TEST(NormalForm, CompletesActivations) {
  const Node node = Inferred(
      "input x : float32[3,2,4]\ninput w : float32[2,5,4]\ninput r : float32[2,5,5]\n"
      "y = RNN(x, w, r) {hidden_size=5, direction=\"bidirectional\", activations=[\"LeakyRelu\", \"Tanh\"]}\noutput y\n");
  EXPECT_EQ(node.attrs.TextList("activations"), Texts({"leakyrelu", "tanh"}));
  EXPECT_EQ(node.attrs.FloatList("activation_alpha"), Floats({0.01f}));
}

TEST(NormalForm, IsTheSameIfInferenceRunsAgain) {
  for (const char* text :
       {"input x : float32[1,1,5]\ny = LpPool(x) {kernel_shape=[2], strides=[2], auto_pad=\"SAME_UPPER\"}\noutput y\n",
        "input x : float32[1,1,3]\ninput w : float32[1,1,2]\ny = ConvTranspose(x, w) {strides=[3], "
        "output_shape=[11], auto_pad=\"SAME_LOWER\"}\noutput y\n",
        "input x : float32[2,3]\ny = LogSoftmax(x) {axis=-1}\noutput y\n"}) {
    absl::StatusOr<Graph> graph = ParseGraphText(text);
    ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
    const std::string once = GraphText(*graph);
    ASSERT_TRUE(InferTypes(*graph).ok()) << text;
    EXPECT_EQ(GraphText(*graph), once);
  }
}

TEST(NormalForm, IsToldForEveryAttribute) {
  for (const OpDef* def : AllOps()) {
    for (const Attr& attr : def->attrs) {
      if (attr.name.starts_with('_')) continue;
      EXPECT_NE(std::string_view(attr.doc), "") << def->name << "." << attr.name;
      if (attr.presence == Presence::kOptional) {
        EXPECT_THAT(attr.doc, HasSubstr("absent:")) << def->name << "." << attr.name;
      }
      EXPECT_TRUE(attr.presence != Presence::kNormal || def->normalize) << def->name << "." << attr.name;
    }
  }
}

}  // namespace
}  // namespace mge
