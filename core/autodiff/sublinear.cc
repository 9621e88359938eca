// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/sublinear.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

#include "core/base/dtype.h"
#include "core/base/thread.h"
#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "core/ops/reports/flops.h"

namespace mge {
namespace {

constexpr int64_t kMinBlock = 1024;  // bytes
constexpr uint64_t kSeed = 2333;     // of the genetic search

// The places behind which the order is cut, ascending. The last block ends with the order.
using Cuts = std::vector<size_t>;

// A node of the order.
struct Step {
  int64_t bytes = 0;       // of its results
  size_t last_reader = 0;  // place of the last node that reads one of them
  bool kept = false;       // its results are never computed again
  double cost = 0;
};

int64_t BytesOfResult(const Value& v) {
  if (v.kind != ValueKind::kTensor || !v.type.has_rank) return 0;
  int64_t elements = 1;
  for (int64_t size : v.type.dims) elements *= std::max<int64_t>(size, 1);
  return elements * ElementBytes(v.type.dtype);
}

class Search {
 public:
  Search(const Graph& graph, std::span<const NodeId> order, const SublinearOptions& options)
      : graph_(graph), order_(order), o_(options), random_(kSeed) {
    std::vector<size_t> place(static_cast<size_t>(graph.value_count()), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = graph.node(order[i]);
      for (const auto* list : {&node.inputs, &node.captures}) {
        for (ValueId v : *list) {
          if (v != kNone) place[static_cast<size_t>(v)] = i;
        }
      }
    }
    for (ValueId v : graph.outputs()) place[static_cast<size_t>(v)] = order.size();
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = graph.node(order[i]);
      Step step;
      for (ValueId v : node.outputs) {
        if (v == kNone) continue;
        step.bytes += BytesOfResult(graph.value(v));
        step.last_reader = std::max(step.last_reader, place[static_cast<size_t>(v)]);
      }
      step.kept = !node.def || !IsPure(*node.def) || !node.captures.empty();
      step.cost = CostOf(node);
      steps_.push_back(step);
    }
  }

  SublinearPlan Run() {
    const int64_t whole = Peak({});
    std::vector<int64_t> blocks;
    for (int64_t t = whole / 2; t >= kMinBlock; t /= 2) blocks.push_back(t);
    for (int64_t i = 1; i <= o_.tries; ++i) blocks.push_back(whole / (o_.tries + 1) * i);
    Take({Cuts()});
    Take(CutsOf(blocks));
    blocks.clear();
    const int64_t around = best_block_ > 0 ? best_block_ : whole;
    for (int64_t i = 0; i < o_.tries; ++i) {
      blocks.push_back(around / 2 + (o_.tries == 1 ? 0 : around * 3 / 2 / (o_.tries - 1) * i));
    }
    Take(CutsOf(blocks));
    for (int64_t i = 0; i < o_.generations; ++i) Breed();
    return Finish();
  }

 private:
  double CostOf(const Node& node) const { return node.def ? FlopsOf(graph_, node) : 0; }
  // Closes a block when its results have `bytes`.
  Cuts CutsAt(int64_t bytes) const {
    Cuts cuts;
    int64_t sum = 0;
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      sum += steps_[i].bytes;
      if (sum < bytes) continue;
      cuts.push_back(i);
      sum = 0;
    }
    return cuts;
  }
  std::vector<Cuts> CutsOf(const std::vector<int64_t>& blocks) {
    tried_ = blocks;
    std::vector<Cuts> out;
    for (int64_t bytes : blocks) out.push_back(CutsAt(std::max<int64_t>(bytes, 1)));
    return out;
  }
  // Calls f(place, again) for each node. The gradients of the last block come first, when all of it is still there.
  template <typename F>
  void ForEach(const Cuts& cuts, F f) const {
    size_t block = 0;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (block < cuts.size() && i > cuts[block]) ++block;
      f(i, block < cuts.size() && !steps_[i].kept && steps_[i].last_reader <= cuts[block]);
    }
  }
  // Returns the most bytes that are alive at the same time: the kept results of earlier blocks, and all of one block.
  int64_t Peak(const Cuts& cuts) const {
    int64_t kept = 0, block = 0, peak = 0, kept_here = 0;
    size_t next = 0;
    ForEach(cuts, [&](size_t i, bool again) {
      if (next < cuts.size() && i > cuts[next]) {
        ++next;
        kept += kept_here;
        block = kept_here = 0;
      }
      block += steps_[i].bytes;
      if (!again) kept_here += steps_[i].bytes;
      peak = std::max(peak, kept + block);
    });
    return peak;
  }
  // Estimates plans with several threads, and adds them to the population.
  void Take(const std::vector<Cuts>& plans) {
    std::vector<int64_t> peaks(plans.size());
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < plans.size(); i = next++) peaks[i] = Peak(plans[i]);
    };
    const size_t half = std::max(1u, std::thread::hardware_concurrency() / 2);
    const size_t workers = std::min(plans.size(), o_.workers > 0 ? static_cast<size_t>(o_.workers) : half);
    std::vector<Thread> threads;
    for (size_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (Thread& t : threads) t.join();
    evaluations_ += static_cast<int64_t>(plans.size());
    for (size_t i = 0; i < plans.size(); ++i) {
      const bool better = peaks[i] < best_peak_;
      const bool larger = peaks[i] == best_peak_ && i < tried_.size() && tried_[i] > best_block_;
      if (i < tried_.size() && (better || larger)) {
        best_peak_ = peaks[i];
        best_block_ = tried_[i];
      }
      population_.emplace_back(peaks[i], plans[i]);
    }
    tried_.clear();
  }

  // Orders the population by peak; among equals, fewer cuts are better.
  void Sort() {
    const auto key = [](const auto& p) { return std::tuple(p.first, p.second.size(), p.second); };
    std::ranges::sort(population_, [&](const auto& a, const auto& b) { return key(a) < key(b); });
    const auto rest = std::ranges::unique(population_);
    population_.erase(rest.begin(), rest.end());
  }
  // Keeps the best plans, and adds two children of each.
  void Breed() {
    Sort();
    population_.resize(std::min(population_.size(), static_cast<size_t>(o_.population)));
    std::vector<Cuts> children;
    for (size_t i = 0; i < population_.size(); ++i) {
      children.push_back(Mutated(Mutated(population_[i].second)));
      children.push_back(Crossed(population_[i].second, population_[random_() % population_.size()].second));
    }
    Take(children);
  }
  Cuts Mutated(Cuts cuts) {
    const size_t places = steps_.size() > 1 ? steps_.size() - 1 : 1, place = random_() % places;
    const auto kind = cuts.empty() ? 0 : random_() % 3;
    if (kind != 0) cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(random_() % cuts.size()));
    if (kind != 1 && std::ranges::find(cuts, place) == cuts.end()) cuts.push_back(place);
    std::ranges::sort(cuts);
    return cuts;
  }
  // Returns the cuts of one plan before a place, and those of the other one behind it.
  Cuts Crossed(const Cuts& a, const Cuts& b) {
    const size_t place = random_() % (steps_.size() / 2 + 1);
    Cuts out;
    std::ranges::copy_if(a, std::back_inserter(out), [&](size_t cut) { return cut < place; });
    std::ranges::copy_if(b, std::back_inserter(out), [&](size_t cut) { return cut >= place; });
    return out;
  }

  SublinearPlan Finish() {
    Sort();
    const Cuts& cuts = population_[0].second;
    SublinearPlan plan = {.again = std::vector<bool>(static_cast<size_t>(graph_.node_count()), false)};
    std::vector<size_t> by_cost;
    ForEach(cuts, [&](size_t i, bool again) {
      plan.again[static_cast<size_t>(order_[i])] = again;
      if (again) by_cost.push_back(i);
    });
    plan.peak = population_[0].first;
    std::ranges::stable_sort(by_cost, std::greater(), [&](size_t i) { return steps_[i].cost; });
    for (size_t i : by_cost) {
      if (plan.peak >= o_.lower_bound) break;
      steps_[i].kept = true;
      plan.again[static_cast<size_t>(order_[i])] = false;
      plan.peak = Peak(cuts);
    }
    plan.evaluations = evaluations_;
    return plan;
  }

  const Graph& graph_;
  const std::span<const NodeId> order_;
  const SublinearOptions o_;
  std::vector<Step> steps_;
  std::vector<std::pair<int64_t, Cuts>> population_;  // peaks and plans
  std::vector<int64_t> tried_;                        // sizes of the blocks of the plans that Take() gets next
  int64_t best_peak_ = std::numeric_limits<int64_t>::max(), best_block_ = 0, evaluations_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

SublinearPlan PlanSublinearMemory(const Graph& graph, std::span<const NodeId> order, const SublinearOptions& options) {
  if (order.empty()) return {.again = std::vector<bool>(static_cast<size_t>(graph.node_count()), false)};
  return Search(graph, order, options).Run();
}

}  // namespace mge
