// SPDX-License-Identifier: Apache-2.0
// Attention in one kernel: the forms that models have, masks, and the groups that must stay apart.
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;
using ::testing::StartsWith;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A case that is built node by node.
class Network {
 public:
  ValueId In(const Shape& shape, uint64_t seed, DType t = DType::kF32) { return In(Random(t, shape, -2, 2, seed)); }
  ValueId In(const Tensor& t) {
    case_.inputs.push_back(t);
    return case_.graph.AddInput("x" + std::to_string(case_.inputs.size()), {t.dtype(), true, t.shape(), {}});
  }
  ValueId Constant(const Tensor& t) { return case_.graph.AddConstant("c" + std::to_string(++constants_), t); }
  ValueId Number(float x) { return Constant(Fill(DType::kF32, {}, {x})); }
  ValueId Add(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    Node node;
    node.op = op;
    node.version = 24;
    node.name = op + std::to_string(case_.graph.node_count());
    node.attrs = std::move(attrs);
    node.inputs.assign(inputs.begin(), inputs.end());
    node.outputs = {case_.graph.AddTemporary("y")};
    const ValueId y = node.outputs[0];
    case_.graph.AddNode(std::move(node));
    return y;
  }
  ValueId Transpose(ValueId x, std::vector<int64_t> perm) {
    return Add("Transpose", {x}, With({{"perm", std::move(perm)}}));
  }
  Case Done(std::vector<ValueId> outputs) {
    case_.graph.outputs().assign(outputs.begin(), outputs.end());
    case_.name = "attention";
    return case_;
  }

 private:
  Case case_;
  int constants_ = 0;
};

Tolerance OfAttention(DType t) {
  Tolerance r = ToleranceOf(t, 16);
  r.absolute *= 16;
  return r;
}

void Expect(const Case& c, const std::string& claim) {
  OnEveryMachine([&](Backend& backend) {
    EXPECT_THAT(backend.Claims(c), Contains("attention: " + claim));
    const Backend::Outcome outcome = backend.Check(c, OfAttention);
    EXPECT_THAT(outcome.candidates, Contains("gpu.attention"));
  });
}

// softmax(q k^T / sqrt(d) + mask) v between transposes, as exporters write it.
TEST(Attention, OfHeadsBetweenTransposesIsOneKernel) {
  Network n;
  const ValueId q = n.Transpose(n.In({2, 37, 3, 16}, 1), {0, 2, 1, 3});
  const ValueId k = n.Transpose(n.In({2, 41, 3, 16}, 2), {0, 2, 3, 1});
  const ValueId v = n.Transpose(n.In({2, 41, 3, 24}, 3), {0, 2, 1, 3});
  const ValueId scores = n.Add("Div", {n.Add("MatMul", {q, k}), n.Number(4)});
  const ValueId masked = n.Add("Add", {scores, n.In({2, 1, 1, 41}, 4)});
  const ValueId y = n.Add("MatMul", {n.Add("Softmax", {masked}), v});
  Expect(n.Done({n.Transpose(y, {0, 2, 1, 3})}), "Transpose Transpose Transpose MatMul Div Add Softmax MatMul Transpose");
}

TEST(Attention, MayScaleQueriesAndKeysApart) {
  Network n;
  const ValueId q = n.Add("Mul", {n.In({2, 5, 16}, 1), n.Number(0.5)});
  const ValueId k = n.Add("Mul", {n.Number(0.25), n.Transpose(n.In({2, 70, 16}, 2), {0, 2, 1})});
  const ValueId masked = n.Add("Add", {n.In({5, 70}, 4), n.Add("MatMul", {q, k})});
  Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({2, 70, 128}, 3)})}),
         "Mul Transpose Mul MatMul Add Softmax MatMul");
}

TEST(Attention, MayShareKeysAndValuesBetweenHeads) {
  Network n;
  const ValueId scores = n.Add("MatMul", {n.In({2, 3, 33, 8}, 1), n.In({2, 1, 8, 9}, 2)});
  Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {scores}), n.In({9, 7}, 3)})}), "MatMul Softmax MatMul");
}

// Keys ahead of a query are excluded by a constant. Tiles of excluded keys are skipped.
TEST(Attention, WithACausalMaskOfTheModelIsOneKernel) {
  for (int64_t keys : {70, 100}) {
    for (float excluded : {-kInfinity, std::numeric_limits<float>::lowest()}) {
      std::vector<double> mask;
      for (int64_t i = 0; i < 70; ++i) {
        for (int64_t j = 0; j < keys; ++j) mask.push_back(j <= i + keys - 70 ? 0 : excluded);
      }
      Network n;
      const ValueId scores = n.Add("MatMul", {n.In({3, 70, 16}, 1), n.In({3, 16, keys}, 2)});
      const ValueId masked = n.Add("Add", {scores, n.Constant(Fill(DType::kF32, {1, 70, keys}, mask))});
      Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({3, keys, 16}, 3)})}), "MatMul Add Softmax MatMul");
    }
  }
}

// The first tiles of a row may have no key at all, and so may a whole row, whose result is NaN.
TEST(Attention, WithExcludedKeysIsRight) {
  std::vector<double> mask;
  for (int64_t i = 0; i < 34; ++i) {
    for (int64_t j = 0; j < 80; ++j) mask.push_back(i == 33 || (i % 2 && j < 66) ? -kInfinity : 0.25);
  }
  Network n;
  const ValueId scores = n.Add("MatMul", {n.In({2, 34, 16}, 1), n.In({2, 16, 80}, 2)});
  const ValueId masked = n.Add("Add", {scores, n.In(Fill(DType::kF32, {34, 80}, mask))});
  Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({2, 80, 16}, 3)})}), "MatMul Add Softmax MatMul");
}

TEST(Attention, IsNotClaimedIfTheKernelCannotComputeIt) {
  struct Form {
    DType type = DType::kF32;
    int64_t head = 16, axis = -1;
    bool other_reader = false, values_of_weights = false;
  };
  for (const Form& f : {Form{.type = DType::kF16}, Form{.head = 129}, Form{.axis = 1}, Form{.other_reader = true},
                        Form{.values_of_weights = true}}) {
    Network n;
    const ValueId scores = n.Add("MatMul", {n.In({2, 8, f.head}, 1, f.type), n.In({2, f.head, 8}, 2, f.type)});
    const ValueId weights = n.Add("Softmax", {scores}, With({{"axis", f.axis}}));
    const ValueId y = n.Add("MatMul", {weights, f.values_of_weights ? weights : n.In({2, 8, 16}, 3, f.type)});
    const Case c = f.other_reader ? n.Done({y, weights}) : n.Done({y});
    EXPECT_THAT(UnderTest().Claims(c), Each(Not(StartsWith("attention"))));
  }
}

}  // namespace
}  // namespace mge::testing
