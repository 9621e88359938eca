// SPDX-License-Identifier: Apache-2.0
// TreeEnsemble, float32 and float64. A walk waits for memory at each node, so several walks go on side by side: those of
// several rows in one tree or, for few rows, those of one row in several trees. The sums are in the order of the trees.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "support/kernel.h"
#include "support/trees.h"
#include "support/work.h"

namespace mge::cpu {
namespace {

constexpr int64_t kBlockBytes = 32 << 10;  // rows of one block, which all trees read
constexpr uint64_t kMaxWorkspace = 32 << 20;
constexpr double kStepUs = 0.8e-3;  // of a walk, per node

enum Aggregate : int64_t { kAverage = 0, kSum = 1, kMin = 2, kMax = 3 };

template <typename Real>
struct Args {
  const Forest<Real>* forest;
  Slot x, y, workspace;
  int64_t columns, targets;
  int64_t group;   // words of a group of rows: kTreeLanes of each feature
  int64_t groups;  // of a block
  int64_t aggregate;
  Chunks chunks;  // of rows
};

// Sets at[i], the root of a tree, to the leaf that lane i of a group of rows reaches in it.
template <typename Word, bool kNan>
void Walk(const Word* words, const Word* group, Word* at) {
  auto step = [&](Word place, int lane) -> Word {
    const Word offset = words[place + kTreeFeature];
    const Word x = *reinterpret_cast<const Word*>(reinterpret_cast<const char*>(group + lane) + offset);
    if constexpr (!kNan) return words[place + kTreeNext] + (words[place + kTreeSplit] < x);
    const bool missing = (x == static_cast<Word>(~Word{0})) & (words[place + kTreeValue] != 0);
    return words[place + kTreeNext] + ((words[place + kTreeSplit] < x) & !missing);
  };
  Word a = at[0], b = at[1], c = at[2], d = at[3], e = at[4], f = at[5], g = at[6], h = at[7], moved = 1;
  auto all = [&] {
    a = step(a, 0), b = step(b, 1), c = step(c, 2), d = step(d, 3);
    e = step(e, 4), f = step(f, 5), g = step(g, 6), h = step(h, 7);
  };
  while (moved) {
    all();
    all();
    const Word before[] = {a, b, c, d, e, f, g, h};
    all();
    moved = (a ^ before[0]) | (b ^ before[1]) | (c ^ before[2]) | (d ^ before[3]) | (e ^ before[4]) | (f ^ before[5]) |
            (g ^ before[6]) | (h ^ before[7]);
  }
  at[0] = a, at[1] = b, at[2] = c, at[3] = d, at[4] = e, at[5] = f, at[6] = g, at[7] = h;
}

// Fills groups with the keys of rows: lane i of a group gets row i, or all lanes get the same row if `step` is 0. Returns
// whether a feature is NaN.
template <typename Real>
bool Arrange(const Args<Real>& a, const Real* x, int64_t groups, int64_t step, TreeWord<Real>* to) {
  const std::vector<uint32_t>& features = a.forest->features;
  bool nan = false;
  for (int64_t g = 0; g < groups; ++g, x += kTreeLanes * step, to += a.group) {
    for (int64_t lane = 0; lane < kTreeLanes; ++lane) {
      const Real* row = x + lane * step;
      for (size_t f = 0; f < features.size(); ++f) {
        const TreeWord<Real> key = TreeKey(row[features[f]]);
        to[static_cast<int64_t>(f) * kTreeLanes + lane] = key;
        nan |= key == kNanKey<Real>;
      }
    }
  }
  return nan;
}

template <typename Real>
void AddLeaf(const Forest<Real>& f, TreeWord<Real> at, int64_t aggregate, Real* scores) {
  const TreeWord<Real> value = f.words[at + kTreeValue];
  if (f.single) {
    const Real weight = std::bit_cast<Real>(value);
    switch (aggregate) {
      case kMin: *scores = std::min(*scores, weight); return;
      case kMax: *scores = std::max(*scores, weight); return;
      default: *scores += weight; return;
    }
  }
  for (uint32_t i = f.leaves[value]; i < f.leaves[value + 1]; ++i) scores[f.targets[i]] += f.weights[i];
}

// Computes the scores of at most a.groups * kTreeLanes rows.
template <typename Real>
void ScoreRows(const Args<Real>& a, const Real* x, Real* y, int64_t rows, TreeWord<Real>* block) {
  using Word = TreeWord<Real>;
  const Forest<Real>& f = *a.forest;
  const Real first = a.aggregate == kMin   ? std::numeric_limits<Real>::infinity()
                     : a.aggregate == kMax ? -std::numeric_limits<Real>::infinity()
                                           : Real(0);
  std::fill_n(y, rows * a.targets, first);
  Word at[kTreeLanes];
  const int64_t groups = rows / kTreeLanes;
  const size_t trees = f.roots.size();
  auto* walk = Arrange(a, x, groups, a.columns, block) && f.nan ? Walk<Word, true> : Walk<Word, false>;
  for (size_t t = 0; t < trees && groups > 0; ++t) {
    for (int64_t g = 0; g < groups; ++g) {
      std::fill_n(at, kTreeLanes, f.roots[t]);
      walk(f.words.data(), block + g * a.group, at);
      for (int64_t i = 0; i < kTreeLanes; ++i) AddLeaf(f, at[i], a.aggregate, y + (g * kTreeLanes + i) * a.targets);
    }
  }
  for (int64_t r = groups * kTreeLanes; r < rows; ++r) {
    walk = Arrange(a, x + r * a.columns, 1, 0, block) && f.nan ? Walk<Word, true> : Walk<Word, false>;
    for (size_t t = 0; t < trees; t += kTreeLanes) {
      const size_t count = std::min<size_t>(kTreeLanes, trees - t);
      std::fill_n(at, kTreeLanes, f.roots[t]);
      std::copy_n(f.roots.begin() + static_cast<int64_t>(t), count, at);
      walk(f.words.data(), block, at);
      for (size_t i = 0; i < count; ++i) AddLeaf(f, at[i], a.aggregate, y + r * a.targets);
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
  auto* workspace = At<TreeWord<Real>>(run, a.workspace);
  ParallelFor(run, a.chunks.count, [&](uint64_t chunk) {
    TreeWord<Real>* block = workspace + static_cast<int64_t>(chunk) * a.groups * a.group;
    const auto end = static_cast<int64_t>(a.chunks.end(chunk));
    for (auto r = static_cast<int64_t>(a.chunks.begin(chunk)); r < end; r += a.groups * kTreeLanes) {
      ScoreRows(a, x + r * a.columns, y + r * a.targets, std::min(a.groups * kTreeLanes, end - r), block);
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

// Returns a bound of the workspace of one chunk. All columns may be features.
uint64_t BlockBytes(const Node& n) {
  const auto row = static_cast<uint64_t>(std::min(n.input(0).dim(-1), n.input(1).dim(0)) + 1) * SizeOf(n.input(0).dtype());
  return std::max<uint64_t>(row * static_cast<uint64_t>(kTreeLanes), kBlockBytes);
}

// Splits the rows. Rows with very many features are split less, because each chunk has a workspace.
Chunks ChunksOf(const Node& n) {
  const auto rows = static_cast<uint64_t>(n.output(0).dim(0));
  Chunks c = SplitWork(rows, rows ? SerialUs(n) / static_cast<double>(rows) : 0);
  const uint64_t most = std::max<uint64_t>(1, kMaxWorkspace / BlockBytes(n));
  if (c.count > most) {
    c.per_chunk = (rows + most - 1) / most;
    c.count = (rows + c.per_chunk - 1) / c.per_chunk;
  }
  return c;
}

template <typename Real>
class TreeKernel : public Kernel {
 public:
  TreeKernel(const Problem& p, std::shared_ptr<const Forest<Real>> forest) : forest_(std::move(forest)) {
    const Node n = p.node();
    input_ = p.operand(0, 0);
    args_ = {};
    args_.forest = forest_.get();
    args_.columns = n.input(0).dim(-1);
    args_.targets = n.output(0).dim(-1);
    args_.group = static_cast<int64_t>(std::max<size_t>(1, forest_->features.size())) * kTreeLanes;
    args_.groups = std::max<int64_t>(1, kBlockBytes / (args_.group * static_cast<int64_t>(sizeof(Real))));
    args_.aggregate = n.Int("aggregate_function");
    args_.chunks = ChunksOf(n);
  }
  uint32_t args_bytes() const override { return sizeof(Args<Real>); }
  uint64_t workspace_bytes() const override {
    return args_.chunks.count * static_cast<uint64_t>(args_.groups * args_.group) * sizeof(Real);
  }
  Result Bind(const Binding& b, void* args, StepFn* step) override {
    auto* a = new (args) Args<Real>(args_);
    a->x = b.input(input_);
    a->y = b.output(0);
    a->workspace = b.workspace();
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
  const int64_t aggregate = p.node().Int("aggregate_function");
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
    const int64_t aggregate = n.Int("aggregate_function");
    if (n.Int("post_transform") != 0 || aggregate < kAverage || aggregate > kMax) {
      return offers.Refuse("only sums, averages and extremes, without a transform");
    }
    if (aggregate >= kMin && n.output(0).dim(-1) != 1) return offers.Refuse("extremes of one target only");
    offers.Add({.id = "cpu.tree_ensemble",
                .attributes = kExact,
                .workspace = ChunksOf(n).count * BlockBytes(n),
                .cost_us = RunUs(p, SerialUs(n))});
  }

  static KernelPtr Make(const Problem& p, const Candidate&) {
    return p.node().input(0).dtype() == MGE_DTYPE_F32 ? MakeKernel<float>(p) : MakeKernel<double>(p);
  }
};

constexpr KernelRow kRows[] = {Row<TreeRow>("TreeEnsemble", "ai.onnx.ml")};

}  // namespace

MGE_KERNELS(tree_ensemble) = kRows;

}  // namespace mge::cpu
