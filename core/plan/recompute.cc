// SPDX-License-Identifier: Apache-2.0
#include "core/plan/recompute.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "core/ops/reports/flops.h"
#include "core/ops/reports/live_results.h"

namespace mge {
namespace {

constexpr double kFlopsPerByte = 8;     // arithmetic operations that take the time of writing a byte
constexpr size_t kLongest = 256;        // nodes that are computed again for one result
constexpr int kRoundsWithoutGain = 64;  // then the search ends

size_t At(ValueId v) { return static_cast<size_t>(v); }

// Returns the estimated time of a node, in the unit of writing a byte.
double StepWork(const Graph& graph, const Node& node) {
  if (!node.def || node.def->KeepsBytes()) return 0;
  double bytes = 0;
  for (ValueId v : node.outputs) bytes += v == kNone ? 0 : static_cast<double>(EstimatedBytes(graph.value(v)));
  return bytes + std::max(FlopsOf(graph, node), 0.0) / kFlopsPerByte;
}

class Recomputation {
 public:
  Recomputation(Graph& graph, int64_t budget) : graph_(graph), budget_(budget) {}

  absl::StatusOr<Recomputed> Run() {
    double all = 0;
    for (NodeId id = 0; id < graph_.node_count(); ++id) all += graph_.node(id).dead ? 0 : StepWork(graph_, graph_.node(id));
    for (int rounds = 0; rounds < kRoundsWithoutGain; ++rounds) {
      MGE_ASSIGN_OR_RETURN(live_, FindLiveResults(graph_));
      if (out_.before == 0) out_.before = out_.after = live_.peak;
      if (live_.peak < out_.after) {
        out_.after = live_.peak;
        rounds = 0;
      }
      out_.fits = live_.peak <= budget_;
      if (out_.fits) break;
      readers_ = graph_.Consumers();
      const std::optional<Choice> choice = Choose();
      if (!choice) break;
      Apply(*choice);
    }
    out_.work = all > 0 ? added_work_ / all : 0;
    return out_;
  }

 private:
  // A result to be computed again.
  struct Choice {
    ValueId value;
    int64_t saved;
    double work;
  };

  bool LivesAcross(ValueId source) const {
    const size_t first = live_.first[At(source)];
    return first == LiveResults::kNowhere || (first < live_.at && live_.last[At(source)] > live_.at);
  }
  // Returns whether the value need not be computed again for readers behind the peak, if `dropped` is.
  bool IsThere(ValueId v, ValueId dropped) const {
    const ValueId source = live_.memory[At(v)];
    return source != dropped && LivesAcross(source);
  }
  bool CanRepeat(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.def && IsPure(*node.def) && node.captures.empty() && !HasBody(node);
  }
  // Calls visit(reader, place) for each node that reads the memory of `v`.
  template <typename F>
  void ForEachReader(ValueId v, F visit) const {
    for (NodeId id : readers_[At(v)]) {
      const Node& node = graph_.node(id);
      visit(id);
      if (node.def && node.def->KeepsBytes() && node.outputs[0] != kNone && node.inputs[0] == v) {
        ForEachReader(node.outputs[0], visit);
      }
    }
  }
  size_t PlaceOf(NodeId id) const {
    for (ValueId v : graph_.node(id).outputs) {
      if (v != kNone) return live_.first[At(v)];
    }
    return LiveResults::kNowhere;
  }
  // Returns whether the value must stay where it is: it is read at the peak, written in place, or read by a body.
  bool IsPinned(ValueId v) const {
    bool pinned = false;
    ForEachReader(v, [&](NodeId id) {
      const Node& node = graph_.node(id);
      pinned |= PlaceOf(id) == live_.at || !node.captures.empty() || !node.def || IsUpdate(*node.def);
    });
    return pinned;
  }

  // Returns what it costs to compute `v` again behind the peak, or nothing if that is impossible or saves nothing.
  std::optional<Choice> CostOf(ValueId v) const {
    Choice out = {v, EstimatedBytes(graph_.value(v)), 0};
    std::vector<NodeId> open = {graph_.value(v).producer};
    std::unordered_set<NodeId> seen(open.begin(), open.end());
    for (size_t i = 0; i < open.size(); ++i) {
      if (open.size() > kLongest || !CanRepeat(open[i])) return std::nullopt;
      const Node& node = graph_.node(open[i]);
      out.work += StepWork(graph_, node);
      for (ValueId input : node.inputs) {
        if (input == kNone || IsThere(input, v)) continue;
        const NodeId producer = graph_.value(input).producer;
        if (seen.insert(producer).second) open.push_back(producer);
      }
    }
    return out;
  }

  // Returns the result that costs least time for each byte that it saves.
  std::optional<Choice> Choose() const {
    std::optional<Choice> best;
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      const bool lives = live_.memory[At(v)] == v && live_.first[At(v)] != LiveResults::kNowhere && LivesAcross(v);
      if (!lives || live_.last[At(v)] == live_.order.size() || EstimatedBytes(graph_.value(v)) == 0 || IsPinned(v)) {
        continue;
      }
      const std::optional<Choice> choice = CostOf(v);
      if (!choice) continue;
      const auto per_byte = [](const Choice& c) { return c.work / static_cast<double>(c.saved); };
      if (!best || std::pair(per_byte(*choice), -choice->saved) < std::pair(per_byte(*best), -best->saved)) best = choice;
    }
    return best;
  }

  // Returns a value equal to `v` that is there behind the peak. Adds the nodes that compute it.
  ValueId Again(ValueId v, ValueId dropped, std::unordered_map<ValueId, ValueId>& known) {
    if (v == kNone || IsThere(v, dropped)) return v;
    if (const auto found = known.find(v); found != known.end()) return found->second;
    Node copy = graph_.node(graph_.value(v).producer);
    copy.recomputed = true;
    for (ValueId& input : copy.inputs) input = Again(input, dropped, known);
    for (ValueId& output : copy.outputs) {
      if (output == kNone) continue;
      const ValueId twin = graph_.AddTemporary(graph_.value(output).name + "_again", graph_.value(output).type);
      known[std::exchange(output, twin)] = twin;
    }
    added_work_ += StepWork(graph_, copy);
    ++out_.nodes;
    graph_.AddNode(std::move(copy));
    return known.at(v);
  }

  // Lets the readers behind the peak read the result that is computed again.
  void Apply(const Choice& choice) {
    std::vector<NodeId> late;
    ForEachReader(choice.value, [&](NodeId id) {
      if (PlaceOf(id) > live_.at) late.push_back(id);
    });
    std::unordered_map<ValueId, ValueId> known;
    for (NodeId id : late) {
      for (size_t i = 0; i < graph_.node(id).inputs.size(); ++i) {
        const ValueId input = graph_.node(id).inputs[i];
        if (input == kNone || At(input) >= live_.memory.size()) continue;  // absent, or one that was added here
        if (live_.memory[At(input)] != choice.value || live_.first[At(input)] > live_.at) continue;
        const ValueId twin = Again(input, choice.value, known);
        graph_.node(id).inputs[i] = twin;
      }
    }
  }

  Graph& graph_;
  const int64_t budget_;
  LiveResults live_;
  std::vector<std::vector<NodeId>> readers_;  // by value
  Recomputed out_;
  double added_work_ = 0;
};

}  // namespace

absl::StatusOr<Recomputed> RecomputeWithin(Graph& graph, int64_t budget) { return Recomputation(graph, budget).Run(); }

}  // namespace mge
