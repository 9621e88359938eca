// SPDX-License-Identifier: Apache-2.0
#include "core/autodiff/sublinear.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <thread>
#include <tuple>
#include <utility>

#include "core/base/dtype.h"
#include "core/base/thread.h"
#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "core/ops/reports/flops.h"
#include "core/ops/reports/live_results.h"

namespace mge {
namespace {

constexpr int64_t kMinBlock = 1024;  // bytes
constexpr uint64_t kSeed = 2333;     // of the genetic search

// The places behind which the order is cut, ascending. The last block ends with the order.
using Cuts = std::vector<size_t>;

// A node of the order.
struct Step {
  int64_t bytes = 0;                   // of its results
  size_t last_reader = 0;              // place of the last node that reads one of them
  int64_t gradient = 0;                // bytes of the gradients of its results
  std::vector<size_t> producers = {};  // places of the nodes whose results it reads, each once
  bool kept = false;                   // its results are never computed again
  double cost = 0;
};

class Search {
 public:
  Search(const Graph& graph, std::span<const NodeId> order, const SublinearOptions& options, const PeakOfPlan& peak_of)
      : graph_(graph), order_(order), o_(options), peak_of_(peak_of), random_(kSeed) {
    std::vector<size_t> place(static_cast<size_t>(graph.value_count()), 0);
    std::vector<size_t> place_of_node(static_cast<size_t>(graph.node_count()), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = graph.node(order[i]);
      place_of_node[static_cast<size_t>(order[i])] = i;
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
        const int64_t bytes = EstimatedBytes(graph.value(v));
        step.bytes += bytes;
        if (kFloating.Contains(graph.value(v).type.dtype)) step.gradient += bytes;
        step.last_reader = std::max(step.last_reader, place[static_cast<size_t>(v)]);
      }
      for (ValueId v : node.inputs) {
        const NodeId producer = v == kNone ? kNone : graph.value(v).producer;
        if (producer == kNone) continue;
        const size_t at = place_of_node[static_cast<size_t>(producer)];
        if (std::ranges::find(step.producers, at) == step.producers.end()) step.producers.push_back(at);
      }
      step.kept = !node.def || !IsPure(*node.def) || !node.captures.empty();
      step.cost = CostOf(node);
      steps_.push_back(step);
    }
  }

  // More tries and more generations extend the search of fewer ones, so they never give a plan with a higher estimate.
  SublinearPlan Run() {
    const int64_t whole = std::transform_reduce(steps_.begin(), steps_.end(), int64_t{0}, std::plus(),
                                                [](const Step& step) { return step.bytes; });
    std::vector<int64_t> halves, linear, local;
    for (int64_t t = whole / 2; t >= kMinBlock; t /= 2) halves.push_back(t);
    for (int64_t i = 1; i <= o_.tries; ++i) linear.push_back(At(i, 0, whole));
    Take({Cuts()});
    Tried best = BestOf(TakeBlocks(halves), {std::numeric_limits<int64_t>::max(), whole});
    const std::vector<Tried> tried = TakeBlocks(linear);
    for (int64_t i = 1; i <= o_.tries; ++i) {
      best = BestOf({tried[static_cast<size_t>(i - 1)]}, best);
      local.push_back(At(i, best.block / 2, 2 * best.block));
    }
    TakeBlocks(local);
    if (peak_of_) RateExactly();
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
  // A size of blocks, and the peak of the plan that it gives.
  struct Tried {
    int64_t peak, block;
  };
  // Returns the one with the lowest peak, and of those the largest block.
  static Tried BestOf(const std::vector<Tried>& tried, Tried best) {
    for (const Tried& t : tried) {
      if (t.peak < best.peak || (t.peak == best.peak && t.block > best.block)) best = t;
    }
    return best;
  }
  // Returns member i of a sequence that fills the range evenly however long it is: van der Corput's, with base 2.
  static int64_t At(int64_t i, int64_t from, int64_t to) {
    double fraction = 0, digit = 0.5;
    for (; i > 0; i /= 2, digit /= 2) fraction += digit * static_cast<double>(i % 2);
    return from + static_cast<int64_t>(fraction * static_cast<double>(to - from));
  }
  std::vector<Tried> TakeBlocks(const std::vector<int64_t>& blocks) {
    std::vector<Cuts> plans;
    for (int64_t bytes : blocks) plans.push_back(CutsAt(std::max<int64_t>(bytes, 1)));
    const std::vector<int64_t> peaks = Take(plans);
    std::vector<Tried> out;
    for (size_t i = 0; i < blocks.size(); ++i) out.push_back({peaks[i], blocks[i]});
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
  // Returns the most bytes that are alive at the same time in a training step: results until their last reader, or until the
  // gradients of the node that computes them are done, and the gradients on their way. A block is computed again as a whole,
  // just before the gradients of its last node.
  int64_t Peak(const Cuts& cuts) const {
    std::vector<char> again(steps_.size(), 0), reached(steps_.size(), 0);
    std::vector<std::vector<size_t>> ends(steps_.size());  // the results that nobody reads behind a place for now
    ForEach(cuts, [&](size_t i, bool is_again) {
      again[i] = is_again;
      if (is_again) ends[std::max(i, steps_[i].last_reader)].push_back(i);
    });
    int64_t live = 0, peak = 0;
    const auto grow = [&](int64_t bytes) { peak = std::max(peak, live += bytes); };
    for (size_t i = 0; i < steps_.size(); ++i) {
      grow(steps_[i].bytes);
      for (size_t j : ends[i]) live -= steps_[j].bytes;
    }
    size_t block = cuts.size();
    for (size_t i = steps_.size(); i-- > 0;) {
      while (block > 0 && i <= cuts[block - 1]) {
        --block;
        for (size_t j = block > 0 ? cuts[block - 1] + 1 : 0; j <= cuts[block]; ++j) {
          if (again[j]) grow(steps_[j].bytes);
        }
      }
      if (!reached[i]) grow(steps_[i].gradient);
      for (size_t j : steps_[i].producers) {
        if (!std::exchange(reached[j], 1)) grow(steps_[j].gradient);
      }
      live -= steps_[i].bytes + steps_[i].gradient;
    }
    return peak;
  }
  // Returns f(plan) for each plan, computed by several threads.
  template <typename F>
  std::vector<int64_t> ForAll(const std::vector<Cuts>& plans, F f) const {
    std::vector<int64_t> peaks(plans.size());
    std::atomic<size_t> next = 0;
    const auto work = [&] {
      for (size_t i = next++; i < plans.size(); i = next++) peaks[i] = f(plans[i]);
    };
    const size_t half = std::max(1u, std::thread::hardware_concurrency() / 2);
    const size_t workers = std::min(plans.size(), o_.workers > 0 ? static_cast<size_t>(o_.workers) : half);
    std::vector<Thread> threads;
    for (size_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
    for (Thread& t : threads) t.join();
    return peaks;
  }
  int64_t RatingOf(const Cuts& cuts) const { return exact_ ? peak_of_(AgainOf(cuts)) : Peak(cuts); }
  // Compares plans by the caller's peaks from now on. An estimate cannot guide the generations: it takes other plans for the
  // best ones, and they would not get below the blocks that were tried.
  void RateExactly() {
    exact_ = true;
    std::vector<Cuts> plans;
    for (auto& [peak, cuts] : std::exchange(population_, {})) plans.push_back(std::move(cuts));
    Take(plans);
  }
  // Rates plans, and adds them to the population. Returns their peaks.
  std::vector<int64_t> Take(const std::vector<Cuts>& plans) {
    const std::vector<int64_t> peaks = ForAll(plans, [&](const Cuts& cuts) { return RatingOf(cuts); });
    evaluations_ += static_cast<int64_t>(plans.size());
    for (size_t i = 0; i < plans.size(); ++i) population_.emplace_back(peaks[i], plans[i]);
    return peaks;
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

  std::vector<bool> AgainOf(const Cuts& cuts) const {
    std::vector<bool> again(static_cast<size_t>(graph_.node_count()), false);
    ForEach(cuts, [&](size_t i, bool is_again) { again[static_cast<size_t>(order_[i])] = is_again; });
    return again;
  }
  SublinearPlan Finish() {
    Sort();
    const Cuts cuts = population_[0].second;
    SublinearPlan plan = {.again = AgainOf(cuts), .peak = Peak(cuts)};
    std::vector<size_t> by_cost;
    ForEach(cuts, [&](size_t i, bool again) {
      if (again) by_cost.push_back(i);
    });
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
  const PeakOfPlan& peak_of_;
  std::vector<Step> steps_;
  std::vector<std::pair<int64_t, Cuts>> population_;  // peaks and plans
  bool exact_ = false;                                // true: the peaks are the caller's
  int64_t evaluations_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

SublinearPlan PlanSublinearMemory(const Graph& graph, std::span<const NodeId> order, const SublinearOptions& options,
                                  const PeakOfPlan& peak_of) {
  if (order.empty()) return {.again = std::vector<bool>(static_cast<size_t>(graph.node_count()), false)};
  return Search(graph, order, options, peak_of).Run();
}

}  // namespace mge
