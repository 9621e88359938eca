// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble, float32 and float64. A walk waits for memory at each node, so several walks go on side by side: those of
// several rows in one tree or, for few rows, those of one row in several trees. The sums are in the order of the trees.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>

#include "support/kernel.h"
#include "support/trees.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int kWalks = 8;                  // side by side
constexpr int64_t kBlockBytes = 64 << 10;  // rows of one block, which all trees read
constexpr double kStepUs = 1.2e-3;         // of a walk, per node

enum Aggregate : int64_t { kAverage = 0, kSum = 1, kMin = 2, kMax = 3 };

template <typename Real>
struct Args {
  const Forest<Real>* forest;
  Slot x, y;
  int64_t columns, targets, block;
  int64_t aggregate;
  Chunks chunks;  // of rows
};

// Sets at[i], the root of a tree, to the leaf that rows[i] reaches in it.
template <typename Real, bool kStrict, bool kNan, int N>
void Walk(const TreeNode<Real>* nodes, const Real* const* rows, uint32_t* at) {
  uint32_t moved = 1;
  auto step = [&](int i) {
    const TreeNode<Real>& node = nodes[at[i]];
    const Real x = rows[i][kNan ? node.feature & ~kNanHolds : node.feature];
    bool holds = kStrict ? x < node.split : x <= node.split;
    if constexpr (kNan) holds = holds | ((x != x) & (node.feature >= kNanHolds));
    return node.next[holds];
  };
  while (moved) {
    for (int k = 0; k < 2; ++k) {
      for (int i = 0; i < N; ++i) at[i] = step(i);
    }
    moved = 0;
    for (int i = 0; i < N; ++i) {
      const uint32_t next = step(i);
      moved |= next ^ at[i];
      at[i] = next;
    }
  }
}

template <typename Real>
void AddLeaf(const Forest<Real>& f, uint32_t at, int64_t aggregate, Real* scores) {
  const TreeNode<Real>& leaf = f.nodes[at];
  if (f.single) {
    switch (aggregate) {
      case kMin: *scores = std::min(*scores, leaf.split); return;
      case kMax: *scores = std::max(*scores, leaf.split); return;
      default: *scores += leaf.split; return;
    }
  }
  uint32_t number;
  std::memcpy(&number, &leaf.split, sizeof(number));
  for (uint32_t i = f.leaves[number]; i < f.leaves[number + 1]; ++i) scores[f.targets[i]] += f.weights[i];
}

template <typename Real, bool kStrict, bool kNan>
void ScoreRows(const Args<Real>& a, const Real* x, Real* y, int64_t rows) {
  const Forest<Real>& f = *a.forest;
  const Real first = a.aggregate == kMin   ? std::numeric_limits<Real>::infinity()
                     : a.aggregate == kMax ? -std::numeric_limits<Real>::infinity()
                                           : Real(0);
  std::fill_n(y, rows * a.targets, first);
  uint32_t at[kWalks];
  const Real* from[kWalks];
  const int64_t side = rows - rows % kWalks;
  for (uint32_t root : f.roots) {
    for (int64_t r = 0; r < side; r += kWalks) {
      for (int i = 0; i < kWalks; ++i) {
        at[i] = root;
        from[i] = x + (r + i) * a.columns;
      }
      Walk<Real, kStrict, kNan, kWalks>(f.nodes.data(), from, at);
      for (int i = 0; i < kWalks; ++i) AddLeaf(f, at[i], a.aggregate, y + (r + i) * a.targets);
    }
  }
  const size_t trees = f.roots.size();
  for (int64_t r = side; r < rows; ++r) {
    std::fill_n(from, kWalks, x + r * a.columns);
    size_t t = 0;
    for (; t + kWalks <= trees; t += kWalks) {
      std::copy_n(f.roots.begin() + static_cast<int64_t>(t), kWalks, at);
      Walk<Real, kStrict, kNan, kWalks>(f.nodes.data(), from, at);
      for (uint32_t leaf : at) AddLeaf(f, leaf, a.aggregate, y + r * a.targets);
    }
    for (; t < trees; ++t) {
      at[0] = f.roots[t];
      Walk<Real, kStrict, kNan, 1>(f.nodes.data(), from, at);
      AddLeaf(f, at[0], a.aggregate, y + r * a.targets);
    }
  }
  for (Real* row = y; row < y + rows * a.targets; row += a.targets) {
    for (int64_t i = 0; i < a.targets; ++i) {
      if (a.aggregate == kAverage) row[i] /= static_cast<Real>(trees);
      if (!f.base.empty()) row[i] += f.base[static_cast<size_t>(i)];
    }
  }
}

template <typename Real>
mge_code Launch(const Args<Real>& a, const mge_run* run) {
  auto* x = At<const Real>(run, a.x);
  auto* y = At<Real>(run, a.y);
  auto* score = a.forest->strict ? (a.forest->nan ? ScoreRows<Real, true, true> : ScoreRows<Real, true, false>)
                                 : (a.forest->nan ? ScoreRows<Real, false, true> : ScoreRows<Real, false, false>);
  ForChunks(run, a.chunks, [&](uint64_t begin, uint64_t end) {
    for (auto r = static_cast<int64_t>(begin); r < static_cast<int64_t>(end); r += a.block) {
      const int64_t rows = std::min(a.block, static_cast<int64_t>(end) - r);
      score(a, x + r * a.columns, y + r * a.targets, rows);
    }
  });
  return MGE_OK;
}

// Returns the estimated time of one thread. The length of the paths is estimated from the number of nodes.
double SerialUs(const Node& n) {
  const auto trees = static_cast<double>(n.input(3).elements()), nodes = static_cast<double>(n.input(1).dim(0));
  const double steps = trees > 0 ? std::log2(nodes / trees + 1) + 2 : 1;
  return static_cast<double>(n.output(0).dim(0)) * (trees * steps * kStepUs + 0.01);
}

template <typename Real>
class TreeKernel : public Kernel {
 public:
  TreeKernel(const Problem& p, std::shared_ptr<const Forest<Real>> forest) : forest_(std::move(forest)) {
    const Node n = p.node();
    input_ = p.operand(0, 0);
    const auto rows = static_cast<uint64_t>(n.output(0).dim(0));
    args_ = {};
    args_.forest = forest_.get();
    args_.columns = n.input(0).dim(-1);
    args_.targets = n.output(0).dim(-1);
    const int64_t row_bytes = args_.columns * static_cast<int64_t>(sizeof(Real));
    args_.block = std::clamp<int64_t>(kBlockBytes / row_bytes / kWalks, 4, 64) * kWalks;
    args_.aggregate = n.Int("aggregate_function", kSum);
    args_.chunks = SplitWork(rows, rows ? SerialUs(n) / static_cast<double>(rows) : 0);
  }
  uint32_t args_bytes() const override { return sizeof(Args<Real>); }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* a = new (args) Args<Real>(args_);
    a->x = b.input(input_);
    a->y = b.output(0);
    *step = StepFn::Of<Launch<Real>>();
    return {};
  }
  std::unique_ptr<Kernel> Rebind(const Problem& p) override { return std::make_unique<TreeKernel>(p, forest_); }

 private:
  std::shared_ptr<const Forest<Real>> forest_;
  int input_ = 0;
  Args<Real> args_;
};

template <typename Real>
KernelPtr MakeKernel(const Problem& p) {
  std::shared_ptr<const Forest<Real>> forest = MakeForest<Real>(p.node());
  const int64_t aggregate = p.node().Int("aggregate_function", kSum);
  if (!forest || ((aggregate == kMin || aggregate == kMax) && (!forest->single || forest->roots.empty()))) return nullptr;
  return std::make_unique<TreeKernel<Real>>(p, std::move(forest));
}

struct TreeRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const Node n = p.node();
    const mge_dtype type = n.input(0).dtype();
    if (type != MGE_DTYPE_F32 && type != MGE_DTYPE_F64) return offers.Refuse("only float32 and float64");
    if (n.output(0).elements() == 0 || n.input(0).dim(-1) == 0) return offers.Refuse("an operand is empty");
    for (int i = 1; i < n.input_count(); ++i) {
      if (!n.has_input(i)) continue;
      if (!n.input(i).is_constant()) return offers.Refuse("the trees are not constants");
      if (type == MGE_DTYPE_F32 && n.input(i).dtype() == MGE_DTYPE_F64)
        return offers.Refuse("float64 trees of a float32 input");
    }
    const int64_t aggregate = n.Int("aggregate_function", kSum);
    if (n.Int("post_transform", 0) != 0 || aggregate < kAverage || aggregate > kMax) {
      return offers.Refuse("only sums, averages and extremes, without a transform");
    }
    if (aggregate >= kMin && n.output(0).dim(-1) != 1) return offers.Refuse("extremes of one target only");
    offers.Add({.id = "cpu.tree_ensemble", .attributes = kExact, .cost_us = RunUs(p, SerialUs(n))});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    return p.node().input(0).dtype() == MGE_DTYPE_F32 ? MakeKernel<float>(p) : MakeKernel<double>(p);
  }
};

constexpr KernelRow kRows[] = {Row<TreeRow>("TreeEnsemble", "ai.onnx.ml")};

}  // namespace

MGE_KERNELS(tree_ensemble) = kRows;

}  // namespace mge::cpu
