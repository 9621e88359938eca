// SPDX-License-Identifier: Apache-2.0
// In a build with assert(), access to an absent operand ends the process and names the check that the caller forgot.
#undef NDEBUG
#include <gtest/gtest.h>

#include "mge/plugin.hpp"

namespace {

// A problem of one Relu with an absent optional second input.
class OperandsDeathTest : public testing::Test {
 protected:
  mge_value value_ = {};
  const mge_value* values_[2] = {&value_, &value_};
  int32_t inputs_[2] = {0, -1}, output_ = 1;
  mge_node node_ = {};
  const mge_node* nodes_[1] = {&node_};
  mge_graph graph_ = {sizeof(graph_), 0, nodes_, 1, values_, 2, inputs_, 1, &output_, 1};
  mge_problem raw_ = {sizeof(raw_), 1, &graph_, nullptr, nullptr, 0};
  mge::Problem problem_{&raw_};
  void SetUp() override {
    node_.inputs = inputs_;
    node_.input_count = 2;
    node_.outputs = &output_;
    node_.output_count = 1;
  }
};

TEST_F(OperandsDeathTest, OfAProblem) {
  EXPECT_EQ(problem_.input(0).raw(), &value_);
  EXPECT_DEATH(problem_.input(1), "input_count");
  EXPECT_DEATH(problem_.output(-1), "output_count");
}

TEST_F(OperandsDeathTest, OfANode) {
  EXPECT_EQ(problem_.node().output(0).raw(), &value_);
  EXPECT_DEATH(problem_.node().input(1), "has_input");  // an absent input
  EXPECT_DEATH(problem_.node().input(2), "has_input");
  EXPECT_DEATH(problem_.node().output(1), "has_output");
}

TEST_F(OperandsDeathTest, OfABinding) {
  const mge_slot slot = {};
  mge_binding raw = {};
  raw.inputs = raw.outputs = &slot;
  mge::Binding binding(&raw, 1, 1);
  EXPECT_EQ(&binding.input(0), &slot);
  EXPECT_DEATH(binding.input(1), "inputs_");
  EXPECT_DEATH(binding.output(1), "outputs_");
}

}  // namespace
