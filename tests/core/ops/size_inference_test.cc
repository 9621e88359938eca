// SPDX-License-Identifier: Apache-2.0
#include "core/ops/size_inference.h"

#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/ops/known_values.h"
#include "gmock/gmock.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Two inputs whose sizes reach different nodes: `x` through computed shapes, `image` through pads that depend on its size.
constexpr char kGraph[] = R"(
input x : float32[B,S,8]
input image : float32[1,2,H,H]
const weights = float32[3,2,3,3]<0.5>
const zero = int64[]<0>
const axis = int64[1]<0>
const rest = int64[2]<-1,4>
shape = Shape(x)
b = Gather(shape, zero) {axis=0}
b1 = Unsqueeze(b, axis)
to = Concat(b1, rest) {axis=0}
y = Reshape(x, to)
z = Relu(y)
c = Conv(image, weights) {auto_pad="SAME_UPPER",strides=[2,2]}
output z
output c
)";

std::vector<std::string> NamesOf(const SizeInference& sizes) {
  std::vector<std::string> names;
  for (const ValueId v : sizes.changed_values()) names.push_back(sizes.graph().value(v).name);
  return names;
}

std::shared_ptr<const Graph> Pattern() {
  auto graph = std::make_shared<Graph>(*ParseGraphText(kGraph));
  EXPECT_TRUE(InferTypes(*graph).ok());
  return graph;
}

// Expects the types, elements and attributes that inference of the whole graph finds for these shapes.
void ExpectAsInferredAtOnce(const SizeInference& sizes, const std::vector<Shape>& shapes) {
  Graph graph = *ParseGraphText(kGraph);
  for (size_t i = 0; i < shapes.size(); ++i) graph.value(graph.inputs()[i]).type.dims = shapes[i];
  std::vector<Tensor> known;
  ASSERT_TRUE(InferKnownValues(graph, &known).ok());
  EXPECT_EQ(GraphText(sizes.graph()), GraphText(graph));
  for (ValueId v = 0; v < graph.value_count(); ++v) {
    ASSERT_EQ(sizes.known()[v].defined(), known[v].defined()) << graph.value(v).name;
    if (known[v].defined() && known[v].dtype() == DType::kI64) {
      EXPECT_TRUE(std::ranges::equal(sizes.known()[v].Data<int64_t>(), known[v].Data<int64_t>())) << graph.value(v).name;
    }
  }
}

TEST(SizeInference, FindsWhatInferenceOfTheWholeGraphFinds) {
  SizeInference sizes(Pattern());
  for (const std::vector<Shape>& shapes : std::vector<std::vector<Shape>>{{{2, 3, 8}, {1, 2, 7, 7}},
                                                                          {{2, 3, 8}, {1, 2, 8, 8}},
                                                                          {{5, 3, 8}, {1, 2, 8, 8}},
                                                                          {{1, 1, 8}, {1, 2, 9, 9}},
                                                                          {{2, 3, 8}, {1, 2, 7, 7}}}) {
    ASSERT_TRUE(sizes.SetInputs(shapes, nullptr).ok());
    ExpectAsInferredAtOnce(sizes, shapes);
  }
}

TEST(SizeInference, VisitsOnlyTheNodesThatAChangedSizeReaches) {
  SizeInference sizes(Pattern());
  ASSERT_TRUE(sizes.SetInputs(std::vector<Shape>{{2, 3, 8}, {1, 2, 7, 7}}, nullptr).ok());
  ASSERT_TRUE(sizes.SetInputs(std::vector<Shape>{{2, 4, 8}, {1, 2, 7, 7}}, nullptr).ok());
  EXPECT_THAT(NamesOf(sizes), UnorderedElementsAre("x", "shape", "y", "z"));  // the batch, and so `to`, is as before
  ASSERT_TRUE(sizes.SetInputs(std::vector<Shape>{{2, 4, 8}, {1, 2, 9, 9}}, nullptr).ok());
  EXPECT_THAT(NamesOf(sizes), ElementsAre("image", "c"));
  ASSERT_TRUE(sizes.SetInputs(std::vector<Shape>{{2, 4, 8}, {1, 2, 9, 9}}, nullptr).ok());
  EXPECT_THAT(NamesOf(sizes), ElementsAre());
}

TEST(SizeInference, GoesOnAfterSizesThatTheModelCannotHave) {
  SizeInference sizes(Pattern());
  ASSERT_TRUE(sizes.SetInputs(std::vector<Shape>{{2, 3, 8}, {1, 2, 7, 7}}, nullptr).ok());
  EXPECT_FALSE(sizes.SetInputs(std::vector<Shape>{{2, 3, 8}, {1, 3, 7, 7}}, nullptr).ok());
  const std::vector<Shape> right = {{2, 3, 8}, {1, 2, 8, 8}};
  ASSERT_TRUE(sizes.SetInputs(right, nullptr).ok());
  ExpectAsInferredAtOnce(sizes, right);
}

}  // namespace
}  // namespace mge
