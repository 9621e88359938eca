// SPDX-License-Identifier: Apache-2.0
// Models as PyTorch's exporters write them: numbers of the code are not trained, and what may train otherwise is told.
#include "core/train/exported.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/train/training.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An attention's scale of one element, and two normalizations that share their weights, as the optimizer of the exporter leaves them.
constexpr char kOptimized[] = R"(input x : float32[2,3]
const blocks.0.norm1.weight = float32[3]<1>
const blocks.0.norm1.bias = float32[3]<0>
const val_12 = float32[1]<0.5>
const temperature = float32[1]<2>
n = LayerNormalization(x, blocks.0.norm1.weight, blocks.0.norm1.bias)
s = Mul(n, val_12)
t = Mul(s, temperature)
y = LayerNormalization(t, blocks.0.norm1.weight, blocks.0.norm1.bias)
output y
)";

onnx::Model ModelOf(std::string_view text, const char* producer) {
  absl::StatusOr<Graph> graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  onnx::Model model;
  if (graph.ok()) model.graph = *std::move(graph);
  model.info.producer_name = producer;
  return model;
}

std::vector<std::string> Trained(onnx::Model model) {
  absl::StatusOr<std::vector<std::string>> names = MakeTrainingStep(model, {.loss = "mse"});
  EXPECT_TRUE(names.ok()) << FormatError(names.status());
  return names.ok() ? *names : std::vector<std::string>();
}

TEST(ExportedModel, DoesNotTrainNumbersOfTheCode) {
  EXPECT_THAT(Trained(ModelOf(kOptimized, "pytorch")),
              ElementsAre("blocks.0.norm1.weight", "blocks.0.norm1.bias", "temperature"));
  EXPECT_THAT(Trained(ModelOf(kOptimized, "someone")),
              ElementsAre("blocks.0.norm1.weight", "blocks.0.norm1.bias", "val_12", "temperature"));
}

TEST(ExportedModel, WarnsOfMergedWeightsWithTheRecipe) {
  const onnx::Model model = ModelOf(kOptimized, "pytorch");
  EXPECT_THAT(ExportWarnings(model, Trained(model), {}),
              ElementsAre(testing::AllOf(HasSubstr("'blocks.0.norm1.weight', 'blocks.0.norm1.bias'"), HasSubstr("merged"),
                                         HasSubstr("optimize=False"))));
  EXPECT_THAT(ExportWarnings(ModelOf(kOptimized, "someone"), Trained(model), {}), IsEmpty());
}

TEST(ExportedModel, WeightsThatWereTrainedAreSharedOnPurpose) {
  std::string text = kOptimized;
  text.replace(text.find("float32[3]<1>"), 13, "float32[3]<1, 2, 1>");
  text.replace(text.find("float32[3]<0>"), 13, "float32[3]<0, 1, 0>");
  const onnx::Model model = ModelOf(text, "pytorch");
  EXPECT_THAT(ExportWarnings(model, Trained(model), {}), IsEmpty());
}

TEST(ExportedModel, WarnsOfFoldedAndFixedBatchNormalization) {
  const onnx::Model model = ModelOf(
      "input x : float32[1,1,3,3]\nconst \"onnx::Conv_12\" = float32[2,1,2,2]<0.5>\nconst \"onnx::Conv_13\" = "
      "float32[2]<0>\n"
      "const s = float32[2]<1>\nc = Conv(x, \"onnx::Conv_12\", \"onnx::Conv_13\")\ny = BatchNormalization(c, s, s, s, "
      "s)\noutput y\n",
      "pytorch");
  EXPECT_THAT(ExportWarnings(model, {}, {}),
              ElementsAre(testing::AllOf(HasSubstr("'onnx::Conv_12'"), HasSubstr("folded")),
                          HasSubstr("1 BatchNormalization nodes were exported for inference")));
}

TEST(ExportedModel, WarnsOfLargerConstantsThatAreTrained) {
  const onnx::Model model =
      ModelOf("input x : float32[2,3]\nconst val_7 = float32[3]<0.5>\ny = Mul(x, val_7)\noutput y\n", "pytorch");
  EXPECT_THAT(ExportWarnings(model, Trained(model), {}), ElementsAre(HasSubstr("'val_7' are trained")));
}

}  // namespace
}  // namespace mge
