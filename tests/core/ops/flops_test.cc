// SPDX-License-Identifier: Apache-2.0
// Compares the estimated work of nodes with counts made by hand.
#include "core/ops/reports/flops.h"

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

struct Work {
  double flops, bytes;  // bytes: those read of input 0
};

// Returns the work of the last node of a graph.
Work WorkOfLast(const std::string& text) {
  auto graph = ParseGraphText(text);
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  absl::Status inferred = InferTypes(*graph);
  EXPECT_TRUE(inferred.ok()) << FormatError(inferred);
  const Node& node = graph->node(graph->node_count() - 1);
  std::vector<const TensorType*> inputs, outputs;
  for (ValueId v : node.inputs) inputs.push_back(v == kNone ? nullptr : &graph->value(v).type);
  for (ValueId v : node.outputs) outputs.push_back(v == kNone ? nullptr : &graph->value(v).type);
  const NodeTypes types = {node, inputs, outputs};
  return {FlopsOf(types), BytesRead(types, 0)};
}

TEST(Flops, HaveRowsForExistingOperatorsOnly) {
  for (const OpWork& row : AllOpWork()) EXPECT_NE(FindOp(row.domain, row.op), nullptr) << row.op;
}

TEST(Flops, OfConvolutionsAreTwoPerWeightAndOutput) {
  EXPECT_EQ(WorkOfLast("input x : float32[2,8,10,10]\ninput w : float32[16,8,3,3]\ny = Conv(x, w)\noutput y\n").flops,
            2.0 * (2 * 16 * 8 * 8) * (8 * 3 * 3));
  EXPECT_EQ(
      WorkOfLast("input x : float32[1,8,10,10]\ninput w : float32[8,1,3,3]\ny = Conv(x, w) {group=8}\noutput y\n").flops,
      2.0 * (8 * 8 * 8) * 9);
  EXPECT_EQ(
      WorkOfLast(
          "input x : float32[1,8,5,5]\ninput w : float32[8,4,2,2]\ny = ConvTranspose(x, w) {strides=[2,2]}\noutput y\n")
          .flops,
      2.0 * (8 * 5 * 5) * (4 * 2 * 2));
}

TEST(Flops, OfProductsAreTwoForEachTerm) {
  EXPECT_EQ(WorkOfLast("input a : float32[3,4,5]\ninput b : float32[5,6]\ny = MatMul(a, b)\noutput y\n").flops,
            2.0 * 3 * 4 * 6 * 5);
  EXPECT_EQ(WorkOfLast("input a : float32[5,4]\ninput b : float32[5,6]\ny = Gemm(a, b) {transA=1}\noutput y\n").flops,
            2.0 * 4 * 6 * 5);
  EXPECT_EQ(
      WorkOfLast(
          "input a : float32[2,3,4]\ninput b : float32[2,4,5]\ny = Einsum(a, b) {equation=\"bij,bjk->bik\"}\noutput y\n")
          .flops,
      2.0 * 2 * 3 * 4 * 5);
}

TEST(Flops, OfAChainOfFactorsAreThoseOfItsProducts) {
  EXPECT_EQ(WorkOfLast("input a : float32[2,3]\ninput b : float32[3,4]\ninput c : float32[4,5]\n"
                       "y = Einsum(a, b, c) {equation=\"ij,jk,kl->il\"}\noutput y\n")
                .flops,
            2.0 * 2 * 3 * 4 + 2.0 * 2 * 4 * 5);
  EXPECT_EQ(
      WorkOfLast("input a : float32[2,3,4]\ninput b : float32[4,5]\ny = Einsum(a, b) {equation=\"...j,jk\"}\noutput y\n")
          .flops,
      2.0 * 2 * 3 * 4 * 5);
}

TEST(Flops, OfRecurrentLayersAreThoseOfTheirProducts) {
  EXPECT_EQ(WorkOfLast("input x : float32[7,2,10]\ninput w : float32[1,16,10]\ninput r : float32[1,16,4]\n"
                       "y = LSTM(x, w, r) {hidden_size=4}\noutput y\n")
                .flops,
            2.0 * 7 * 2 * (16 * 10 + 16 * 4));
  EXPECT_EQ(
      WorkOfLast(
          "input x : float32[7,2,10]\ninput w : int8[1,10,16]\ninput r : int8[1,4,16]\ninput s : float32[1]\n"
          "input z : int8[1]\ny = com.microsoft::DynamicQuantizeLSTM(x, w, r, _, _, _, _, _, s, z, s, z) {hidden_size=4}\n"
          "output y\n")
          .flops,
      2.0 * 7 * 2 * (16 * 10 + 16 * 4));
}

TEST(Flops, OfPackedWeightsAreThoseOfTheProduct) {
  EXPECT_EQ(WorkOfLast("input x : float32[3,32]\ninput b : uint8[5,2,8]\ninput s : float32[5,2]\n"
                       "y = com.microsoft::MatMulNBits(x, b, s) {K=32, N=5, block_size=16}\noutput y\n")
                .flops,
            2.0 * 3 * 32 * 5);
}

TEST(Flops, OfElementwiseNodesAreOneForEachOutput) {
  EXPECT_EQ(WorkOfLast("input a : float32[3,1]\ninput b : float32[1,6]\ny = Add(a, b)\noutput y\n").flops, 18);
  EXPECT_EQ(WorkOfLast("input x : float32[1,2,8,8]\ny = MaxPool(x) {kernel_shape=[2,2], strides=[2,2]}\noutput y\n").flops,
            2.0 * 16 * 4);
}

TEST(Flops, AreZeroForOperatorsThatMoveData) {
  EXPECT_EQ(WorkOfLast("input x : float32[3,4]\ny = Transpose(x)\noutput y\n").flops, 0);
  EXPECT_EQ(WorkOfLast("input x : float32[3,4]\ny = Identity(x)\noutput y\n").flops, 0);
}

TEST(Flops, AreUnknownIfATypeIsUnknown) {
  const Work w = WorkOfLast("input x : float32[3,N]\ny = Relu(x)\noutput y\n");
  EXPECT_LT(w.flops, 0);
  EXPECT_LT(w.bytes, 0);
}

TEST(Flops, CountOnlyTheReadRowsOfATable) {
  EXPECT_EQ(WorkOfLast("input t : float32[1000,16]\ninput i : int64[5]\ny = Gather(t, i)\noutput y\n").bytes, 5 * 16 * 4);
  EXPECT_EQ(WorkOfLast("input t : float32[1000,16]\ny = Relu(t)\noutput y\n").bytes, 1000 * 16 * 4);
}

}  // namespace
}  // namespace mge
