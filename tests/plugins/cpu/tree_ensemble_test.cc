// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble: random trees, with features equal to splits and features that are no numbers.
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "tests/plugins/cpu/under_test.h"

namespace mge::testing {
namespace {

struct Ensemble {
  DType type = DType::kF32;
  int64_t rows = 67, columns = 5, targets = 1, trees = 11;
  int depth = 6;                     // most nodes of a path
  std::vector<int32_t> flags = {0};  // the kinds of nodes
  int64_t weights_per_leaf = 1;
  int64_t aggregate = 1;
  int64_t base = 0;
  bool single = false;  // the trees are stored as float32, whatever the type of the input
};

Case CaseOf(const Ensemble& e) {
  std::mt19937 random(static_cast<uint32_t>(e.depth + 10 * e.rows));
  auto below = [&](int64_t n) { return static_cast<int32_t>(random() % static_cast<uint64_t>(n)); };
  std::vector<double> nodes, splits, roots, leaves = {0}, targets, weights;
  std::function<int32_t(int)> grow = [&](int depth) -> int32_t {
    if (depth == 0 || below(6) == 0) {
      for (int64_t i = 0; i < e.weights_per_leaf; ++i) {
        targets.push_back(below(e.targets));
        weights.push_back(0.125 * below(64) - 4);
      }
      leaves.push_back(static_cast<double>(targets.size()));
      return -static_cast<int32_t>(leaves.size()) + 1;
    }
    const auto place = static_cast<int32_t>(splits.size());
    splits.push_back(0.25 * below(9) - 1);
    nodes.resize(nodes.size() + 4);
    const int32_t yes = grow(depth - 1), no = grow(depth - 1);
    const double row[] = {static_cast<double>(below(e.columns)),
                          static_cast<double>(e.flags[static_cast<size_t>(below(static_cast<int64_t>(e.flags.size())))]),
                          static_cast<double>(yes), static_cast<double>(no)};
    std::copy_n(row, 4, nodes.begin() + 4 * place);
    return place;
  };
  for (int64_t t = 0; t < e.trees; ++t) roots.push_back(grow(e.depth));
  std::vector<double> x(static_cast<size_t>(e.rows * e.columns)), base(static_cast<size_t>(e.base));
  for (double& v : x) v = below(20) == 0 ? std::numeric_limits<double>::quiet_NaN() : 0.25 * below(13) - 1.5;
  if (x.size() > 3) x[1] = -std::numeric_limits<double>::infinity(), x[3] = std::numeric_limits<double>::infinity();
  for (double& v : base) v = 0.5 * below(9);
  const DType real = e.single ? DType::kF32 : e.type;
  auto list = [](DType type, const std::vector<double>& values) {
    return Fill(type, {static_cast<int64_t>(values.size())}, values);
  };
  return OneNode("TreeEnsemble",
                 {Fill(e.type, {e.rows, e.columns}, x), Fill(DType::kI32, {static_cast<int64_t>(splits.size()), 4}, nodes),
                  list(real, splits), list(DType::kI32, roots), list(DType::kI32, leaves), list(DType::kI32, targets),
                  list(real, weights), e.base ? list(real, base) : Tensor()},
                 With({{"n_targets", e.targets}, {"aggregate_function", e.aggregate}}), {1, 2, 3, 4, 5, 6, 7}, 1,
                 "ai.onnx.ml");
}

void CheckKernel(const Ensemble& e) {
  const Backend::Outcome o = UnderTest().Check(CaseOf(e), Exactly);
  EXPECT_EQ(o.candidates.size(), 1u);
}

constexpr int32_t kMissing = 8;

TEST(TreeEnsemble, ComparesInEveryWay) {
  for (DType type : {DType::kF32, DType::kF64}) {
    for (int32_t compare = 0; compare < 6; ++compare) {
      CheckKernel({.type = type, .flags = {compare}});
      CheckKernel({.type = type, .flags = {compare, compare | kMissing}});
    }
    CheckKernel({.type = type, .flags = {1, 2}});
    CheckKernel({.type = type, .flags = {0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13}});
  }
  CheckKernel({.type = DType::kF64, .single = true});
}

TEST(TreeEnsemble, WalksAnyNumberOfRowsAndTrees) {
  for (int64_t rows : {1, 7, 8, 9, 600}) {
    for (int64_t trees : {1, 8, 19}) {
      for (int depth : {0, 1, 12}) CheckKernel({.rows = rows, .trees = trees, .depth = depth});
    }
  }
  CheckKernel({.rows = 20000, .columns = 3, .trees = 40, .depth = 8});
}

TEST(TreeEnsemble, AddsSeveralWeightsOfALeaf) {
  CheckKernel({.targets = 3});
  CheckKernel({.targets = 3, .weights_per_leaf = 4, .base = 3});
  CheckKernel({.targets = 3, .weights_per_leaf = 2, .aggregate = 0, .base = 1});
  CheckKernel({.targets = 1, .weights_per_leaf = 2, .base = 1});
  CheckKernel({.targets = 2, .weights_per_leaf = 0});
}

TEST(TreeEnsemble, CombinesTreesInEveryWay) {
  for (int64_t aggregate : {0, 1, 2, 3}) CheckKernel({.aggregate = aggregate, .base = 1});
}

}  // namespace
}  // namespace mge::testing
