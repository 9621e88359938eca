// SPDX-License-Identifier: Apache-2.0
// The division of a batch among replicas.
#include "core/kvstore/batch_division.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The division for a model with these inputs and outputs.
BatchDivision Of(std::vector<TensorType> inputs, std::vector<TensorType> outputs, size_t replicas) {
  Graph graph;
  std::vector<ValueType> types;
  for (size_t i = 0; i < inputs.size(); ++i) graph.AddInput("in" + std::to_string(i), inputs[i]);
  for (const TensorType& type : outputs) {
    graph.outputs().push_back(graph.AddTemporary("out", type));
    types.push_back({type});
  }
  return BatchDivision(graph, types, /*loss_first=*/false, replicas);
}
TensorType Type(Shape dims, std::vector<std::string> symbols = {}) {
  return {.dtype = DType::kF32, .has_rank = true, .dims = std::move(dims), .symbols = std::move(symbols)};
}
const TensorType kOpen = Type({kUnknownDim, 2}, {"N", ""});

std::vector<InputType> Inputs(std::vector<Shape> shapes) {
  std::vector<InputType> out(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    out[i].dtype = DType::kF32;
    out[i].shape = shapes[i];
  }
  return out;
}

std::vector<int64_t> CountsOf(int64_t examples, size_t replicas) {
  const auto parts = Of({kOpen}, {}, replicas).Divide(Inputs({{examples, 2}}));
  EXPECT_TRUE(parts.ok()) << FormatError(parts.status());
  std::vector<int64_t> out;
  int64_t begin = 0;
  for (const BatchPart& part : *parts) {
    EXPECT_EQ(part.begin, part.counts ? begin : 0);
    EXPECT_EQ(part.size, std::max<int64_t>(part.counts, 1));
    out.push_back(part.counts);
    begin += part.counts;
  }
  return out;
}

TEST(BatchDivision, GivesTheFirstReplicasTheRest) {
  EXPECT_THAT(CountsOf(6, 3), ElementsAre(2, 2, 2));
  EXPECT_THAT(CountsOf(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(CountsOf(2, 3), ElementsAre(1, 1, 0));
  EXPECT_THAT(CountsOf(1, 4), ElementsAre(1, 0, 0, 0));
}

TEST(BatchDivision, CutsInputsWithAnOpenFirstDimensionAndNoOthers) {
  const BatchDivision division = Of({kOpen, Type({3}), Type({}), Type({kUnknownDim})}, {}, 2);
  const auto inputs = Inputs({{5, 2}, {3}, {}, {5}});
  const auto parts = division.Divide(inputs);
  ASSERT_TRUE(parts.ok()) << FormatError(parts.status());
  EXPECT_THAT(division.PartOf(0, inputs[0], (*parts)[0]).shape, ElementsAre(3, 2));
  EXPECT_THAT(division.PartOf(1, inputs[1], (*parts)[0]).shape, ElementsAre(3));
  EXPECT_THAT(division.PartOf(2, inputs[2], (*parts)[1]).shape, ElementsAre());
  EXPECT_THAT(division.PartOf(3, inputs[3], (*parts)[1]).shape, ElementsAre(2));
  HostValue value;
  value.tensor = Tensor::Of<float>({5, 2}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THAT(division.PartOf(0, value, (*parts)[1]).tensor.Data<float>(), ElementsAre(6, 7, 8, 9));
}

TEST(BatchDivision, RefusesWhatCannotBeShared) {
  auto error = [](const BatchDivision& division, const std::vector<Shape>& shapes) {
    return FormatError(division.Divide(Inputs(shapes)).status());
  };
  EXPECT_THAT(error(Of({kOpen, kOpen}, {}, 2), {{4, 2}, {3, 2}}), HasSubstr("'in1' has 3 examples, and 'in0' has 4"));
  EXPECT_THAT(error(Of({kOpen}, {}, 2), {{0, 2}}), HasSubstr("no examples"));
  EXPECT_THAT(error(Of({Type({})}, {}, 2), {{}}), HasSubstr("no examples"));
  EXPECT_THAT(error(Of({Type({8, 2})}, {}, 2), {{8, 2}}), HasSubstr("a fixed batch of 8, so 2 replicas need 16"));
}

class Joined : public testing::Test {
 protected:
  // Joins output 0 of two replicas with 3 and 2 examples.
  std::vector<float> Join(const TensorType& declared, Shape first, Shape second) {
    const BatchDivision division = Of({kOpen}, {declared}, 2);
    HostValue values[2];
    float next = 0;
    for (int r = 0; r < 2; ++r) {
      values[r].tensor = *Tensor::Create(DType::kF32, r ? second : first);
      for (float& x : values[r].tensor.MutableData<float>()) x = next++;
    }
    const HostValue* pointers[] = {&values[0], &values[1]};
    const BatchPart parts[] = {{0, 3, 3}, {3, 2, 2}};
    auto joined = division.Join(0, pointers, parts, UnlimitedHostAllocator());
    EXPECT_TRUE(joined.ok());
    return {joined->tensor.Data<float>().begin(), joined->tensor.Data<float>().end()};
  }
};

TEST_F(Joined, OutputsHaveTheExamplesOfAllReplicas) {
  EXPECT_EQ(Join(kOpen, {3, 2}, {2, 2}).size(), 10u);
  EXPECT_EQ(Join(Type({kUnknownDim}), {6}, {4}).size(), 10u);  // two rows per example
  EXPECT_EQ(Join({}, {3}, {2}).size(), 5u);                    // nothing is declared
}

TEST_F(Joined, OutputsWithoutABatchAreThoseOfTheFirstReplica) {
  EXPECT_THAT(Join(Type({2}), {2}, {2}), ElementsAre(0, 1));
  EXPECT_THAT(Join(Type({}), {}, {}), ElementsAre(0));
  EXPECT_THAT(Join(Type({kUnknownDim}), {4}, {4}), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace mge
