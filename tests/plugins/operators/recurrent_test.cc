// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM.
#include <cmath>

#include "gtest/gtest.h"
#include "under_test.h"

namespace mge::testing {
namespace {

struct Recurrent {
  const char* op;
  int64_t steps, batch, input, hidden;
  const char* direction = "forward";
  int64_t layout = 0;
  bool all_inputs = false;  // adds bias, lengths, initial states and peepholes
  std::vector<int> constants = {1, 2, 3};
  Attributes more = {};
  DType dtype = DType::kF32;
  std::vector<int32_t> lengths = {};  // used with all_inputs; empty: no lengths
};

Case CaseOf(const Recurrent& r) {
  const std::string op = r.op;
  const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1, d = r.direction == std::string("bidirectional") ? 2 : 1;
  auto random = [&](Shape shape, double range, uint64_t seed) {
    return Random(r.dtype, std::move(shape), -range, range, seed);
  };
  const double range = 1.5 / std::sqrt(static_cast<double>(r.hidden));
  Shape state = r.layout ? Shape{r.batch, d, r.hidden} : Shape{d, r.batch, r.hidden};
  std::vector<Tensor> in = {random(r.layout ? Shape{r.batch, r.steps, r.input} : Shape{r.steps, r.batch, r.input}, 2, 1),
                            random({d, gates * r.hidden, r.input}, range, 2),
                            random({d, gates * r.hidden, r.hidden}, range, 3)};
  if (r.all_inputs) {
    in.push_back(random({d, 2 * gates * r.hidden}, 1, 4));
    in.emplace_back();
    if (!r.lengths.empty()) {
      in.back() = Fill(DType::kI32, {r.batch}, std::vector<double>(r.lengths.begin(), r.lengths.end()));
    }
    in.push_back(random(state, 1, 5));
    if (op == "LSTM") {
      in.push_back(random(state, 1, 6));
      in.push_back(random({d, 3 * r.hidden}, 0.5, 7));
    }
  }
  Attributes attrs = r.more;
  attrs.Set("hidden_size", r.hidden);
  attrs.Set("direction", std::string(r.direction));
  if (r.layout) attrs.Set("layout", r.layout);
  Case c = OneNode(op, std::move(in), std::move(attrs), r.constants, op == "LSTM" ? 3 : 2);
  c.name = op + " " + r.direction + (r.layout ? ", batch first" : "") + (r.all_inputs ? ", all inputs" : "");
  return c;
}

// Returns a tolerance for several steps, because the state carries the error of each step to the next.
Tolerance OfSteps(DType t) {
  Tolerance r = ToleranceOf(t, t == DType::kF16 || t == DType::kBF16 ? 4 : 40);
  r.absolute *= 4;
  return r;
}

constexpr const char* kOps[] = {"RNN", "GRU", "LSTM"};
constexpr const char* kDirections[] = {"forward", "reverse", "bidirectional"};

TEST(Recurrent, RunsInEveryDirectionAndLayout) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : kOps) {
      for (const char* direction : kDirections) {
        for (int64_t layout : {0, 1}) {
          for (bool all : {false, true}) backend.Check(CaseOf({op, 5, 3, 7, 37, direction, layout, all}), OfSteps);
        }
      }
    }
  });
}

TEST(Recurrent, EndsEachSequenceAtItsLength) {
  OnEveryMachine([](Backend& backend) {
    for (const char* op : kOps) {
      for (const char* direction : kDirections) {
        for (int64_t layout : {0, 1}) {
          Recurrent r = {op, 6, 4, 3, 20, direction, layout, true};
          r.lengths = {6, 0, 2, 5};
          backend.Check(CaseOf(r), OfSteps);
          r.lengths = {3, 1, 3, 2};
          backend.Check(CaseOf(r), OfSteps);
        }
      }
    }
  });
}

TEST(Recurrent, RefusesALengthBeyondTheSteps) {
  for (int32_t length : {7, -1}) {
    Recurrent r = {"LSTM", 6, 2, 3, 4, "forward", 0, true};
    r.lengths = {6, length};
    std::vector<Tensor> expected = {Random(DType::kF32, {6, 1, 2, 4}), Random(DType::kF32, {1, 2, 4}),
                                    Random(DType::kF32, {1, 2, 4})};
    auto outcome = UnderTest().Check(CaseOf(r), OfSteps, &expected);
    ASSERT_FALSE(outcome.codes.empty());
    EXPECT_EQ(outcome.codes[0], MGE_OUT_OF_RANGE);
    EXPECT_NE(outcome.errors[0].find(std::to_string(length) + " is outside of 0..6"), std::string::npos)
        << outcome.errors[0];
  }
}

TEST(Recurrent, WeightsMayBeInputsOfTheRun) {
  for (const char* op : kOps) {
    for (std::vector<int> constants : {std::vector<int>{}, {1}, {2, 3}}) {
      UnderTest().Check(CaseOf({op, 4, 2, 5, 34, "bidirectional", 0, true, constants}), OfSteps);
    }
  }
}

TEST(Recurrent, OutputsMayBeAbsent) {
  for (const char* op : kOps) {
    for (int wanted : {0, 1}) {
      Case c = CaseOf({op, 4, 2, 5, 34, "bidirectional", 0, true});
      Node& node = c.graph.node(0);
      const ValueId kept = node.outputs[static_cast<size_t>(wanted)];
      for (ValueId& v : node.outputs) v = v == kept ? v : kNone;
      c.graph.outputs() = {kept};
      UnderTest().Check(c, OfSteps);
    }
  }
}

TEST(Recurrent, SupportsActivationsClipAndFlags) {
  OnEveryMachine([](Backend& backend) {
    auto check = [&](const char* op, Attributes more) {
      backend.Check(CaseOf({op, 4, 2, 6, 21, "forward", 0, true, {1, 2, 3}, std::move(more)}), OfSteps);
    };
    for (const char* name : {"Relu", "tanh", "SIGMOID", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                             "HardSigmoid", "Elu", "Softsign", "Softplus"}) {
      check("RNN", With({{"activations", Texts{name}}}));
      check("GRU", With({{"activations", Texts{"HardSigmoid", name}}, {"clip", 0.75f}}));
      check("LSTM", With({{"activations", Texts{"Sigmoid", name, "Softsign"}}, {"clip", 0.5f}}));
    }
    check("RNN",
          With({{"activations", Texts{"Affine"}}, {"activation_alpha", Floats{0.5f}}, {"activation_beta", Floats{0.25f}}}));
    check("LSTM", With({{"activations", Texts{"HardSigmoid", "ScaledTanh", "LeakyRelu"}},
                        {"activation_alpha", Floats{0.3f, 0.7f, 0.1f}},
                        {"activation_beta", Floats{0.4f, 1.5f}}}));
    check("LSTM", With({{"input_forget", int64_t{1}}}));
    check("GRU", With({{"linear_before_reset", int64_t{1}}}));
    Recurrent r = {"GRU", 4, 2, 6, 21, "bidirectional", 1, true};
    r.more = With({{"linear_before_reset", int64_t{1}}, {"activations", Texts{"Sigmoid", "Tanh", "HardSigmoid", "Relu"}}});
    r.lengths = {4, 3};
    backend.Check(CaseOf(r), OfSteps);
  });
}

TEST(Recurrent, SupportsOddLargeAndEmptySizes) {
  for (const char* op : kOps) {
    UnderTest().Check(CaseOf({op, 1, 1, 128, 128, "forward", 0, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 40, 1, 96, 256, "bidirectional", 0, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 3, 1, 64, 520, "forward", 0, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 9, 33, 16, 48, "reverse", 0, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 9, 17, 16, 48, "bidirectional", 1, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 300, 2, 8, 300, "forward", 0, false}), OfSteps);
    UnderTest().Check(CaseOf({op, 0, 2, 8, 5, "forward", 0, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 3, 0, 8, 5, "forward", 0, true}), OfSteps);
    UnderTest().Check(CaseOf({op, 3, 2, 0, 5, "bidirectional", 0, true}), OfSteps);
  }
}

}  // namespace
}  // namespace mge::testing
