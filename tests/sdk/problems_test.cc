// SPDX-License-Identifier: Apache-2.0
// Reads nodes with the functions of mge/plugin/problems.
#include "gtest/gtest.h"
#include "mge/plugin/problems/elementwise.hpp"
#include "mge/plugin/problems/quantize.hpp"
#include "tests/sdk/test_graph.h"

namespace mge {
namespace {

mge_attr IntAttr(std::string_view name, int64_t value) {
  mge_attr a = {};
  a.struct_size = sizeof(a);
  a.type = MGE_ATTR_INT;
  a.name = {name.data(), name.size()};
  a.i = value;
  return a;
}
mge_attr FloatAttr(std::string_view name, double value) {
  mge_attr a = IntAttr(name, 0);
  a.type = MGE_ATTR_FLOAT;
  a.f = value;
  return a;
}
mge_attr TextAttr(std::string_view name, std::string_view value) {
  mge_attr a = IntAttr(name, 0);
  a.type = MGE_ATTR_TEXT;
  a.text = {value.data(), value.size()};
  return a;
}

// Reads a node of one or two operands with these attributes.
Elementwise Read(const std::string& op, std::vector<mge_attr> attrs, std::vector<int32_t> inputs = {0}) {
  TestGraph graph({{op, std::move(inputs), 2}}, 3, {2});
  std::vector<const mge_attr*> list;
  for (const mge_attr& a : attrs) list.push_back(&a);
  graph.raw_nodes[0].attrs = list.data();
  graph.raw_nodes[0].attr_count = list.size();
  Elementwise e;
  EXPECT_TRUE(ReadElementwise(Node(&graph.graph, graph.node_list[0]), &e)) << op;
  return e;
}

TEST(ReadElementwise, FindsTheFunctionThatAttributesChoose) {
  using F = ElementwiseFunction;
  EXPECT_EQ(Read("Gelu", {TextAttr("approximate", "none")}).function, F::kGelu);
  EXPECT_EQ(Read("Gelu", {TextAttr("approximate", "tanh")}).function, F::kGeluTanh);
  EXPECT_EQ(Read("Mod", {IntAttr("fmod", 0)}, {0, 1}).function, F::kMod);
  EXPECT_EQ(Read("Mod", {IntAttr("fmod", 1)}, {0, 1}).function, F::kFmod);
  EXPECT_EQ(Read("BitShift", {TextAttr("direction", "LEFT")}, {0, 1}).function, F::kShiftLeft);
  EXPECT_EQ(Read("BitShift", {TextAttr("direction", "RIGHT")}, {0, 1}).function, F::kShiftRight);
}

TEST(ReadElementwise, ReadsParametersOfIntegersAndFloats) {
  const Elementwise selu = Read("Selu", {FloatAttr("alpha", 2), FloatAttr("gamma", 3)});
  EXPECT_EQ(selu.a, 2);
  EXPECT_EQ(selu.b, 3);
  const Elementwise is_inf = Read("IsInf", {IntAttr("detect_negative", 1), IntAttr("detect_positive", 0)});
  EXPECT_EQ(is_inf.a, 0);
  EXPECT_EQ(is_inf.b, 1);
}

TEST(ReadElementwise, RefusesOtherOperators) {
  TestGraph graph({{"MatMul", {0, 1}, 2}}, 3, {2});
  Elementwise e;
  EXPECT_FALSE(ReadElementwise(Node(&graph.graph, graph.node_list[0]), &e));
}

TEST(ElementwiseFunctions, HaveTheNamesOfTheirEnumerators) {
  EXPECT_EQ(NameOf(ElementwiseFunction::kAbs), "abs");
  EXPECT_EQ(NameOf(ElementwiseFunction::kGeluTanh), "gelu_tanh");
  EXPECT_EQ(NameOf(ElementwiseFunction::kXor), "xor");
}

TEST(IntegerInputs, DifferByTheOperator) {
  const auto inputs = [](const char* op) {
    TestGraph graph({{op, {0, 1}, 2}}, 3, {2});
    return IntegerInputsOf(Node(&graph.graph, graph.node_list[0]));
  };
  EXPECT_EQ(inputs("MatMulInteger").b, 1);
  EXPECT_FALSE(inputs("ConvInteger").quantizes());
  EXPECT_EQ(inputs("QLinearMatMul").b_zero, 5);
  EXPECT_EQ(inputs("QLinearMatMul").start, -1);
  EXPECT_EQ(inputs("QLinearConv").start, 8);
}

}  // namespace
}  // namespace mge
