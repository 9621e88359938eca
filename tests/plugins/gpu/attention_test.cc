// SPDX-License-Identifier: Apache-2.0
// Attention in one kernel: the forms that models have, masks, and the groups that must stay apart.
#include <limits>

#include "core/ops/op.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/gpu/under_test.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A case that is built node by node. Its floating values have one type, if nothing else is said.
class Network {
 public:
  explicit Network(DType type = DType::kF32) : type_(type) {}
  ValueId In(const Shape& shape, uint64_t seed) { return In(Random(type_, shape, -2, 2, seed)); }
  ValueId In(const Tensor& t) {
    case_.inputs.push_back(t);
    return case_.graph.AddInput("x" + std::to_string(case_.inputs.size()), {t.dtype(), true, t.shape(), {}});
  }
  ValueId Constant(const Tensor& t) { return case_.graph.AddConstant("c" + std::to_string(++constants_), t); }
  ValueId Number(float x) { return Number(x, type_); }
  ValueId Number(float x, DType type) { return Constant(Fill(type, {}, {x})); }
  ValueId Cast(ValueId x, DType to) { return Add("Cast", {x}, With({{"to", static_cast<int64_t>(to)}})); }
  ValueId Add(std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return Add(1, op, std::move(inputs), std::move(attrs))[0];
  }
  // Adds a node with several outputs.
  std::vector<ValueId> Add(int outputs, std::string op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    Node node;
    node.op = op;
    node.version = 24;
    node.name = op + std::to_string(case_.graph.node_count());
    node.attrs = std::move(attrs);
    node.inputs.assign(inputs.begin(), inputs.end());
    std::vector<ValueId> y;
    for (int i = 0; i < outputs; ++i) y.push_back(case_.graph.AddTemporary("y"));
    node.outputs.assign(y.begin(), y.end());
    case_.graph.AddNode(std::move(node));
    return y;
  }
  // Divides the columns of a tensor into parts of these sizes.
  std::vector<ValueId> Split(ValueId x, const std::vector<int64_t>& sizes) {
    return Add(static_cast<int>(sizes.size()), "Split", {x, Ints(sizes)}, With({{"axis", int64_t{-1}}}));
  }
  ValueId Reshape(ValueId x, const std::vector<int64_t>& shape) { return Add("Reshape", {x, Ints(shape)}); }
  ValueId Ints(const std::vector<int64_t>& values) { return Constant(Tensor::Vector<int64_t>(values)); }
  ValueId Transpose(ValueId x, std::vector<int64_t> perm) {
    return Add("Transpose", {x}, With({{"perm", std::move(perm)}}));
  }
  Case Done(std::vector<ValueId> outputs) {
    case_.graph.outputs().assign(outputs.begin(), outputs.end());
    case_.name = "attention of " + std::string(DTypeName(type_));
    EXPECT_TRUE(InferTypes(case_.graph).ok());
    return case_;
  }

 private:
  const DType type_;
  Case case_;
  int constants_ = 0;
};

Tensor Cast(const Tensor& t, DType to) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.elements(); ++i) values.push_back(At(t, i));
  return Fill(to, t.shape(), values);
}

// Returns the results of a case of 16-bit floats that is computed in float32, and rounded at the end only.
std::vector<Tensor> RoundedOnce(const Case& c) {
  const auto widened = [](const Tensor& t) {
    return t.dtype() == DType::kF16 || t.dtype() == DType::kBF16 ? Cast(t, DType::kF32) : t;
  };
  std::vector<HostValue> values(static_cast<size_t>(c.graph.value_count()));
  for (size_t i = 0; i < c.inputs.size(); ++i)
    values[static_cast<size_t>(c.graph.inputs()[i])].tensor = widened(c.inputs[i]);
  for (ValueId v = 0; v < c.graph.value_count(); ++v) {
    if (c.graph.value(v).role == Role::kConstant) values[static_cast<size_t>(v)].tensor = widened(c.graph.value(v).constant);
  }
  for (NodeId id = 0; id < c.graph.node_count(); ++id) {
    const Node& node = c.graph.node(id);
    if (node.op == "Cast") {
      values[static_cast<size_t>(node.outputs[0])] = values[static_cast<size_t>(node.inputs[0])];
      continue;
    }
    std::vector<HostValue> in;
    for (ValueId v : node.inputs) in.push_back(values[static_cast<size_t>(v)]);
    auto out = Evaluate(node, in);
    EXPECT_TRUE(out.ok()) << out.status().message();
    for (size_t i = 0; out.ok() && i < out->size(); ++i) values[static_cast<size_t>(node.outputs[i])] = (*out)[i];
  }
  std::vector<Tensor> results;
  for (ValueId v : c.graph.outputs())
    results.push_back(Cast(values[static_cast<size_t>(v)].tensor, c.graph.value(v).type.dtype));
  return results;
}

// The tolerance for results of about 1. For 16-bit floats, it is one unit in the last place for the rounding of the result
// and one for that of the weights.
Tolerance OfAttention(DType t) {
  if (t != DType::kF32) return ToleranceOf(t, 2);
  Tolerance r = ToleranceOf(t, 16);
  r.absolute *= 16;
  return r;
}

// Checks that a case is one kernel, by every candidate. `small`: there is one for matrix units of floats. `parts`: there is one
// for parts of the keys.
void Expect(const Case& c, const std::string& claim, bool small = true, bool parts = false) {
  const bool floats = c.graph.value(c.graph.outputs()[0]).type.dtype == DType::kF32;
  const std::vector<Tensor> expected = RoundedOnce(c);
  OnEveryMachine([&](Backend& backend) {
    EXPECT_THAT(backend.Claims(c), Contains("attention: " + claim));
    const Backend::Outcome outcome = backend.Check(c, OfAttention, &expected);
    std::vector<std::string> candidates = {"gpu.attention"};
    if (!floats || small) candidates.push_back(floats ? "gpu.attention.tf32" : "gpu.attention.mma");
    if (parts) candidates.push_back("gpu.attention.parts");
    EXPECT_THAT(outcome.candidates, UnorderedElementsAreArray(candidates));
  });
}

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16}, kShortTypes[] = {DType::kF16, DType::kBF16};

// softmax(q k^T / sqrt(d) + mask) v between transposes, as exporters write it.
TEST(Attention, OfHeadsBetweenTransposesIsOneKernel) {
  for (DType t : kTypes) {
    Network n(t);
    const ValueId q = n.Transpose(n.In({2, 37, 3, 16}, 1), {0, 2, 1, 3});
    const ValueId k = n.Transpose(n.In({2, 41, 3, 16}, 2), {0, 2, 3, 1});
    const ValueId v = n.Transpose(n.In({2, 41, 3, 24}, 3), {0, 2, 1, 3});
    const ValueId scores = n.Add("Div", {n.Add("MatMul", {q, k}), n.Number(4)});
    const ValueId masked = n.Add("Add", {scores, n.In({2, 1, 1, 41}, 4)});
    const ValueId y = n.Add("MatMul", {n.Add("Softmax", {masked}), v});
    Expect(n.Done({n.Transpose(y, {0, 2, 1, 3})}), "Transpose Transpose Transpose MatMul Div Add Softmax MatMul Transpose");
  }
}

TEST(Attention, MayScaleQueriesAndKeysApart) {
  for (DType t : kTypes) {
    Network n(t);
    const ValueId q = n.Add("Mul", {n.In({2, 5, 16}, 1), n.Number(0.5)});
    const ValueId k = n.Add("Mul", {n.Number(0.25), n.Transpose(n.In({2, 70, 16}, 2), {0, 2, 1})});
    const ValueId masked = n.Add("Add", {n.In({5, 70}, 4), n.Add("MatMul", {q, k})});
    Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({2, 70, 128}, 3)})}),
           "Mul Transpose Mul MatMul Add Softmax MatMul");
  }
}

TEST(Attention, MayShareKeysAndValuesBetweenHeads) {
  for (DType t : kTypes) {
    Network n(t);
    const ValueId scores = n.Add("MatMul", {n.In({2, 3, 33, 8}, 1), n.In({2, 1, 8, 9}, 2)});
    Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {scores}), n.In({9, 7}, 3)})}), "MatMul Softmax MatMul");
  }
}

// Queries, keys and values are columns of one tensor, with rows of tokens, or of batches and tokens. The parts may differ in
// size, and their rows may be heads already.
TEST(Attention, ReadsQueriesKeysAndValuesWhereASplitFindsThem) {
  for (DType t : kTypes) {
    Network n(t);
    const std::vector<ValueId> parts = n.Split(n.In({2, 37, 48 + 48 + 72}, 1), {48, 48, 72});
    const ValueId q = n.Transpose(n.Reshape(parts[0], {2, 37, 3, 16}), {0, 2, 1, 3});
    const ValueId k = n.Transpose(n.Reshape(parts[1], {2, 37, 3, 16}), {0, 2, 3, 1});
    const ValueId v = n.Transpose(n.Reshape(parts[2], {2, 37, 3, 24}), {0, 2, 1, 3});
    const ValueId y = n.Add("MatMul", {n.Add("Softmax", {n.Add("MatMul", {q, k})}), v});
    Expect(n.Done({n.Transpose(y, {0, 2, 1, 3})}),
           "Split Reshape Transpose Reshape Transpose Reshape Transpose MatMul Softmax MatMul Transpose");
  }
  Network rows;  // of tokens
  const std::vector<ValueId> parts = rows.Split(rows.In({2 * 5, 3 * 8}, 1), {8, 8, 8});
  const ValueId v = rows.Reshape(parts[0], {2, 5, 8}), q = rows.Reshape(parts[1], {2, 5, 8});
  const ValueId k = rows.Transpose(rows.Reshape(parts[2], {2, 5, 8}), {0, 2, 1});
  Expect(rows.Done({rows.Add("MatMul", {rows.Add("Softmax", {rows.Add("MatMul", {q, k})}), v})}),
         "Split Reshape Reshape Reshape Transpose MatMul Softmax MatMul");
  Network heads;
  const std::vector<ValueId> part = heads.Split(heads.In({2, 5, 3 * 8}, 1), {8, 8, 8});
  const ValueId scores = heads.Add("MatMul", {part[0], heads.Transpose(part[1], {0, 2, 1})});
  Expect(heads.Done({heads.Add("MatMul", {heads.Add("Softmax", {scores}), part[2]})}),
         "Split Transpose MatMul Softmax MatMul");
}

TEST(Attention, LeavesASplitApartIfOthersReadAPartOrItsRowsAreNotKept) {
  for (const bool other_reader : {true, false}) {
    Network n;
    const std::vector<ValueId> parts = n.Split(n.In({6, 5, 3 * 8}, 1), {8, 8, 8});
    const auto rows = [&](ValueId part) { return other_reader ? part : n.Reshape(part, {10, 2, 12}); };
    const ValueId scores = n.Add("MatMul", {rows(parts[0]), n.Transpose(rows(parts[1]), {0, 2, 1})});
    const ValueId y = n.Add("MatMul", {n.Add("Softmax", {scores}), rows(parts[2])});
    const Case c = n.Done(other_reader ? std::vector{y, parts[2]} : std::vector{y});
    OnEveryMachine(
        [&](Backend& backend) { EXPECT_THAT(backend.Claims(c), Contains("attention: Transpose MatMul Softmax MatMul")); });
  }
}

// Several tiles of queries and of keys, heads of the largest sizes of the tiles, and heads whose rows are not aligned.
TEST(Attention, OfLongSequencesIsOneKernel) {
  for (DType t : kTypes) {
    for (const int64_t head : {int64_t{128}, int64_t{64}, int64_t{33}}) {
      Network n(t);
      const ValueId q = n.Add("Mul", {n.In({2, 130, head}, 1), n.Number(0.125)});
      const ValueId scores = n.Add("MatMul", {q, n.Transpose(n.In({2, 150, head}, 2), {0, 2, 1})});
      Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {scores}), n.In({2, 150, head}, 3)})}),
             "Mul Transpose MatMul Softmax MatMul");
    }
  }
}

// Heads of up to 256 elements, which floats have by ordinary instructions only, and values of other sizes than the queries.
TEST(Attention, OfLargeHeadsIsOneKernel) {
  struct Form {
    int64_t head, values;
  };
  for (DType t : kTypes) {
    for (const Form& f : {Form{256, 256}, Form{160, 40}, Form{24, 200}, Form{131, 249}}) {
      Network n(t);
      const ValueId q = n.Add("Mul", {n.In({2, 70, f.head}, 1), n.Number(0.0625)});
      const ValueId scores = n.Add("MatMul", {q, n.Transpose(n.In({2, 75, f.head}, 2), {0, 2, 1})});
      Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {scores}), n.In({2, 75, f.values}, 3)})}),
             "Mul Transpose MatMul Softmax MatMul", f.head <= 128);
    }
  }
}

// Queries of a language model that decodes. Some keys, or all keys of a part, are excluded.
TEST(Attention, OfFewQueriesOverManyKeysIsComputedByParts) {
  for (DType t : kTypes) {
    for (const auto& [queries, keys, head] :
         {std::tuple<int64_t, int64_t, int64_t>{1, 300, 64}, {3, 600, 33}, {8, 257, 256}}) {
      for (bool masked : {false, true}) {
        std::vector<double> kept;
        for (int64_t i = 0; i < queries * keys; ++i) kept.push_back(i % keys >= 256 ? i % 3 == 0 : masked ? 0 : 1);
        Network n(t);
        const ValueId q = n.Add("Mul", {n.In({2, queries, head}, 1), n.Number(0.125)});
        ValueId scores = n.Add("MatMul", {q, n.Transpose(n.In({2, keys, head}, 2), {0, 2, 1})});
        scores = n.Add("Where", {n.In(Fill(DType::kBool, {queries, keys}, kept)), scores, n.Number(-kInfinity)});
        Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {scores}), n.In({2, keys, head}, 3)})}),
               "Mul Transpose MatMul Where Softmax MatMul", head <= 128, true);
      }
    }
  }
}

// A softmax of 16-bit floats is often computed in float32, with the scale and the mask in front of it or not.
TEST(Attention, MayHaveASoftmaxOfFloatsBetween16BitProducts) {
  for (DType t : kShortTypes) {
    for (bool mask_of_floats : {false, true}) {
      Network n(t);
      const Tensor mask = Random(mask_of_floats ? DType::kF32 : t, {35, 41}, -2, 2, 4);
      ValueId scores = n.Add("MatMul", {n.In({3, 35, 16}, 1), n.Transpose(n.In({3, 41, 16}, 2), {0, 2, 1})});
      if (mask_of_floats) {
        scores = n.Add("Mul", {n.Cast(scores, DType::kF32), n.Number(0.25, DType::kF32)});
        scores = n.Add("Add", {scores, n.In(mask)});
      } else {
        scores = n.Cast(n.Add("Add", {n.Add("Mul", {scores, n.Number(0.25)}), n.In(mask)}), DType::kF32);
      }
      const ValueId weights = n.Cast(n.Add("Softmax", {scores}), t);
      Expect(n.Done({n.Add("MatMul", {weights, n.In({3, 41, 16}, 3)})}),
             mask_of_floats ? "Transpose MatMul Cast Mul Add Softmax Cast MatMul"
                            : "Transpose MatMul Mul Add Cast Softmax Cast MatMul");
    }
  }
}

// A mask of bool with the number that takes the place of excluded scores.
TEST(Attention, MayReplaceExcludedScores) {
  for (DType t : kTypes) {
    for (bool keeps : {false, true}) {
      Network n(t);
      const ValueId scores = n.Add("MatMul", {n.In({2, 3, 35, 16}, 1), n.In({2, 3, 16, 70}, 2)});
      const ValueId mask = n.In(Random(DType::kBool, {2, 1, 1, 70}, 0, 1, 4)), fill = n.Number(-6.5e4f);
      const ValueId masked = n.Add("Where", keeps ? std::vector{mask, scores, fill} : std::vector{mask, fill, scores});
      Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({2, 3, 70, 16}, 3)})}),
             "MatMul Where Softmax MatMul");
    }
  }
}

// Keys ahead of a query are excluded by a constant. Tiles of excluded keys are skipped.
TEST(Attention, WithACausalMaskOfTheModelIsOneKernel) {
  for (DType t : kTypes) {
    for (int64_t keys : {70, 100}) {
      for (float excluded : {-kInfinity, t == DType::kF16 ? -65504.0f : -3.3e38f}) {
        std::vector<double> mask;
        for (int64_t i = 0; i < 70; ++i) {
          for (int64_t j = 0; j < keys; ++j) mask.push_back(j <= i + keys - 70 ? 0 : excluded);
        }
        Network n(t);
        const ValueId scores = n.Add("MatMul", {n.In({3, 70, 16}, 1), n.In({3, 16, keys}, 2)});
        const ValueId masked = n.Add("Add", {scores, n.Constant(Fill(t, {1, 70, keys}, mask))});
        const Case c = n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({3, keys, 16}, 3)})});
        Expect(c, "MatMul Add Softmax MatMul");
      }
    }
  }
}

// The causal mask replaces scores, as in GPT-2, and another one is added. The kernel reads only the other one.
TEST(Attention, MayHaveACausalMaskAndAnother) {
  for (DType t : kTypes) {
    std::vector<double> kept;
    for (int64_t i = 0; i < 70; ++i) {
      for (int64_t j = 0; j < 70; ++j) kept.push_back(j <= i);
    }
    Network n(t);
    const ValueId scores = n.Add("MatMul", {n.In({2, 70, 16}, 1), n.In({2, 16, 70}, 2)});
    const ValueId causal = n.Constant(Fill(DType::kBool, {1, 70, 70}, kept));
    const ValueId masked = n.Add("Where", {causal, scores, n.Number(t == DType::kF16 ? -65504.0f : -3.3e38f)});
    const ValueId both = n.Add("Add", {masked, n.In({2, 1, 70}, 4)});
    const Case c = n.Done({n.Add("MatMul", {n.Add("Softmax", {both}), n.In({2, 70, 16}, 3)})});
    Expect(c, "MatMul Where Add Softmax MatMul");
  }
}

// Returns a mask with one number for all keys but the last 20, and another one for these.
Tensor MaskOfLeadingKeys(DType type, int64_t queries, int64_t keys, double leading, double others) {
  std::vector<double> mask;
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t j = 0; j < keys; ++j) mask.push_back(j < keys - 20 ? leading : others);
  }
  return Fill(type, {queries, keys}, mask);
}

// A causal mask by a finite number, and another one that excludes all the keys that the first one leaves to a row. The row
// has the weights of the excluded keys, as in the model, which are in tiles that are skipped for other rows.
TEST(Attention, WithoutKeysBeforeACausalMaskHasTheKeysAfterIt) {
  constexpr int64_t kQueries = 130, kKeys = 140;
  for (DType t : kTypes) {
    const float lowest = t == DType::kF16 ? -65504.0f : -3.3e38f;
    for (const float other : {-kInfinity, lowest}) {
      for (const bool causal_first : {true, false}) {
        for (const bool adds : {true, false}) {
          std::vector<double> causal;
          for (int64_t i = 0; i < kQueries; ++i) {
            for (int64_t j = 0; j < kKeys; ++j)
              causal.push_back((j <= i + kKeys - kQueries) == adds ? 0 : adds ? lowest : 1);
          }
          Network n(t);
          const ValueId mask = n.In(MaskOfLeadingKeys(t, kQueries, kKeys, other, 0.25));
          const auto add_causal = [&](ValueId x) {
            return adds ? n.Add("Add", {x, n.Constant(Fill(t, {kQueries, kKeys}, causal))})
                        : n.Add("Where", {n.Constant(Fill(DType::kBool, {kQueries, kKeys}, causal)), x, n.Number(lowest)});
          };
          ValueId scores = n.Add("MatMul", {n.In({2, kQueries, 16}, 1), n.In({2, 16, kKeys}, 2)});
          scores = causal_first ? n.Add("Add", {add_causal(scores), mask}) : add_causal(n.Add("Add", {scores, mask}));
          const Case c = n.Done({n.Add("MatMul", {n.Add("Softmax", {scores}), n.In({2, kKeys, 16}, 3)})});
          const std::string first = adds ? "Add" : "Where";
          Expect(c, causal_first ? "MatMul " + first + " Add Softmax MatMul" : "MatMul Add " + first + " Softmax MatMul");
        }
      }
    }
  }
}

// A mask behind the causal one may give excluded keys a number, so that they are no longer excluded, or all keys the same one.
TEST(Attention, WithNumbersAfterACausalMaskHasTheirWeights) {
  constexpr int64_t kSize = 100;
  for (DType t : kTypes) {
    for (const float number : {-1e4f, 0.5f}) {
      std::vector<double> causal;
      for (int64_t i = 0; i < kSize; ++i) {
        for (int64_t j = 0; j < kSize; ++j) causal.push_back(j <= i ? 0 : -kInfinity);
      }
      Network n(t);
      const ValueId scores = n.Add("MatMul", {n.In({2, kSize, 16}, 1), n.In({2, 16, kSize}, 2)});
      const ValueId masked = n.Add("Add", {scores, n.Constant(Fill(t, {kSize, kSize}, causal))});
      const ValueId replaced = n.In(MaskOfLeadingKeys(DType::kBool, kSize, kSize, number < 0, 1));
      const ValueId both = n.Add("Where", {replaced, n.Number(number), masked});
      const Case c = n.Done({n.Add("MatMul", {n.Add("Softmax", {both}), n.In({2, kSize, 16}, 3)})});
      Expect(c, "MatMul Add Where Softmax MatMul");
    }
  }
}

// The first tiles of a row may have no key at all, and so may a whole row, whose result is NaN.
TEST(Attention, WithExcludedKeysIsRight) {
  for (DType t : kTypes) {
    std::vector<double> mask;
    for (int64_t i = 0; i < 34; ++i) {
      for (int64_t j = 0; j < 80; ++j) mask.push_back(i == 33 || (i % 2 && j < 66) ? -kInfinity : 0.25);
    }
    Network n(t);
    const ValueId scores = n.Add("MatMul", {n.In({2, 34, 16}, 1), n.In({2, 16, 80}, 2)});
    const ValueId masked = n.Add("Add", {scores, n.In(Fill(t, {34, 80}, mask))});
    Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({2, 80, 16}, 3)})}), "MatMul Add Softmax MatMul");
  }
}

// Rows whose keys all have the lowest number added have the mean of the values as their result, not NaN.
TEST(Attention, WithRowsOfLowestMaskIsTheMean) {
  Network n;
  const ValueId scores = n.Add("MatMul", {n.In({2, 34, 16}, 1), n.In({2, 16, 80}, 2)});
  const ValueId masked = n.Add(
      "Add", {scores, n.In(Fill(DType::kF32, {34, 1}, std::vector<double>(34, std::numeric_limits<float>::lowest())))});
  Expect(n.Done({n.Add("MatMul", {n.Add("Softmax", {masked}), n.In({2, 80, 16}, 3)})}), "MatMul Add Softmax MatMul");
}

TEST(Attention, IsNotClaimedIfTheKernelCannotComputeIt) {
  struct Form {
    DType type = DType::kF32;
    int64_t head = 16, axis = -1;
    bool other_reader = false, values_of_weights = false, two_masks = false, other_type = false;
  };
  for (const Form& f :
       {Form{.type = DType::kF64}, Form{.head = 257}, Form{.axis = 1}, Form{.other_reader = true},
        Form{.values_of_weights = true}, Form{.two_masks = true}, Form{.type = DType::kF16, .other_type = true}}) {
    Network n(f.type);
    ValueId scores = n.Add("MatMul", {n.In({2, 8, f.head}, 1), n.In({2, f.head, 8}, 2)});
    for (int i = 0; f.two_masks && i < 2; ++i) scores = n.Add("Add", {scores, n.In({8, 8}, 4)});
    if (f.other_type) scores = n.Cast(scores, DType::kF32);  // the second product is of float32
    const ValueId weights = n.Add("Softmax", {scores}, With({{"axis", f.axis}}));
    const ValueId values = n.In(Random(f.other_type ? DType::kF32 : f.type, {2, 8, 16}, -2, 2, 3));
    const ValueId y = n.Add("MatMul", {weights, f.values_of_weights ? weights : values});
    const Case c = f.other_reader ? n.Done({y, weights}) : n.Done({y});
    EXPECT_THAT(UnderTest().Claims(c), Each(Not(StartsWith("attention"))));
  }
}

}  // namespace
}  // namespace mge::testing
