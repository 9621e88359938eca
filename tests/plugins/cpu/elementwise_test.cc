// SPDX-License-Identifier: Apache-2.0
// Divisions that the CPU backend refuses, and groups that only its chain kernels support.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

TEST(Elementwise, DivisionsByPossiblyZeroIntegersAreNotOffered) {
  auto outcome = UnderTest().Offers(OneNode("Div", {Random(DType::kI32, {4}, 1, 5), Random(DType::kI32, {4}, 1, 5)}));
  EXPECT_TRUE(outcome.candidates.empty());
  ASSERT_FALSE(outcome.refusals.empty());
  EXPECT_NE(outcome.refusals[0].find("divisor"), std::string::npos);
}

TEST(Elementwise, AChainMayReadAValueTwice) {
  Case c;
  c.name = "chain";
  auto in = [&](const char* name, Tensor t) {
    ValueId v = c.graph.AddInput(name, {t.dtype(), true, t.shape(), {}});
    c.inputs.push_back(std::move(t));
    return v;
  };
  auto node = [&](const char* op, std::vector<ValueId> inputs) {
    Node n;
    n.op = op;
    n.name = op;
    n.version = 24;
    n.inputs = std::move(inputs);
    ValueId out = c.graph.AddTemporary("v");
    n.outputs = {out};
    c.graph.AddNode(std::move(n));
    return out;
  };
  for (DType t : {DType::kF32, DType::kF16}) {
    c = Case();
    c.name = "chain";
    ValueId x = in("x", Random(t, {2, 3, 5, 70})), s = in("s", Random(t, {3, 1, 1}, 0.5, 2, 2)),
            k = in("t", Random(t, {}, 0, 1, 3));
    ValueId b = node("Add", {node("Mul", {x, s}), k});
    ValueId f = node("Add", {node("Mul", {node("Sigmoid", {b}), b}), node("Relu", {x})});
    c.graph.outputs() = {f};
    OnEveryMachine([&](Backend& backend) {
      EXPECT_THAT(backend.Claims(c), ::testing::Contains("elementwise_chain: Mul Add Sigmoid Mul Relu Add"));
      backend.Check(c, Roughly);
    });
  }
}

TEST(Elementwise, AGroupMayHaveSeveralOutputs) {
  Case c = OneNode("Exp", {Random(DType::kF32, {1000})});
  ValueId first = c.graph.outputs()[0];
  Then(c, "Neg");
  Then(c, "Abs");
  c.graph.outputs().insert(c.graph.outputs().begin(), first);
  OnEveryMachine([&](Backend& backend) { backend.Check(c, Closely); });
}

// A chain must round each result to its type before the next operator reads it, as single nodes do.
TEST(Elementwise, AChainOfSixteenBitFloatsGivesTheBitsOfItsNodes) {
  for (DType t : {DType::kF16, DType::kBF16}) {
    for (int64_t n : {1, 5, 37, 3000}) {
      Case c = OneNode("Mul", {Random(t, {n}, -4, 4, 1), Random(t, {n}, -4, 4, 2)});
      ValueId product = c.graph.outputs()[0];
      Then(c, "Add", {Random(t, {n}, -4, 4, 3)}, {}, false);
      Then(c, "Relu");
      Then(c, "Div", {Random(t, {1}, 1, 3, 4)});
      Then(c, "Floor");
      Then(c, "Sub", {Random(t, {n}, -4, 4, 5)}, {}, false);
      c.graph.outputs().push_back(product);
      OnEveryMachine([&](Backend& backend) {
        EXPECT_THAT(backend.Claims(c), ::testing::Contains("elementwise_chain: Mul Add Relu Div Floor Sub"));
        backend.Check(c, Exactly);
      });
    }
    Case cast = OneNode("Mul", {Random(t, {2000}, -90, 90, 1), Random(t, {2000}, -90, 90, 2)});
    Then(cast, "Cast", {}, With({{"to", int64_t{7}}}));
    OnEveryMachine([&](Backend& backend) { backend.Check(cast, Exactly); });
  }
}

TEST(Elementwise, AChainOfTwoHundredOperatorsIsOneGroup) {
  const char* kOps[] = {"Tanh", "Sigmoid", "Relu", "Abs", "Sqrt"};
  Case c = OneNode(kOps[0], {Random(DType::kF32, {16}, 0.1, 1)});
  for (int i = 1; i < 200; ++i) Then(c, kOps[i % 5]);
  auto claims = UnderTest().Claims(c);
  ASSERT_FALSE(claims.empty());
  EXPECT_EQ(std::count(claims[0].begin(), claims[0].end(), ' '), 200);
  UnderTest().Check(c, Roughly);
}

}  // namespace
}  // namespace mge::testing
