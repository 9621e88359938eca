// SPDX-License-Identifier: Apache-2.0
#include "core/plan/layout/layout_choice.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kSweeps = 8;
constexpr double kGainUs = 1e-6;  // smaller gains are rounding errors

bool IsAny(const mge_layout& l) { return l.kind == MGE_LAYOUT_ANY; }

void AddNew(std::vector<mge_layout>& list, const mge_layout& l) {
  if (IsAny(l) || std::any_of(list.begin(), list.end(), [&](const mge_layout& t) { return SameLayout(t, l); })) return;
  list.push_back(l);
}

class Chooser {
 public:
  Chooser(const Graph& graph, const std::vector<Group>& groups, const std::vector<std::vector<int>>& order,
          const std::vector<std::vector<double>>& cost, const ReorderUs& reorder_us, const StopControl* stop)
      : graph_(graph),
        groups_(groups),
        order_(order),
        cost_(cost),
        reorder_us_(reorder_us),
        stop_(stop),
        choices_(groups.size()),
        layout_(graph.value_count(), PlainLayout()),
        producer_(graph.value_count(), -1),
        given_out_(graph.value_count(), false),
        consumers_(graph.value_count()) {
    for (ValueId v : graph.outputs()) given_out_[v] = true;
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t k = 0; k < groups[g].inputs.size(); ++k) {
        consumers_[groups[g].inputs[k]].push_back({static_cast<int>(g), static_cast<int>(k)});
      }
      for (ValueId v : groups[g].outputs) producer_[v] = static_cast<int>(g);
    }
  }

  std::vector<GroupChoice> Run() {
    std::vector<int> all(groups_.size());
    std::iota(all.begin(), all.end(), 0);
    for (int g : all) Improve(g, false);
    Sweep(all);
    bool moved = false;
    auto move = [&](const Target& target) {
      if (Stopped()) return;
      for (const std::vector<int>& region : RegionsOf(target)) moved |= MoveTogether(region, target);
    };
    for (const Target& target : Targets()) move(target);
    move(Plain());
    if (moved) Sweep(all);
    return std::move(choices_);
  }

 private:
  struct Use {
    int group;
    int operand;
  };
  // A layout to try for whole regions of groups.
  struct Target {
    mge_layout layout;
    const Backend* backend;  // owner of an opaque layout; else nullptr
    std::vector<int> seeds;  // groups where regions start: those that require the layout; for plain, those that use another
  };

  bool Stopped() const { return !CheckStop(stop_).ok(); }

  // ---- costs

  // Returns the cost of reordering value v from the layout of its producer, for a reader on that device (nullptr: the
  // caller).
  double ReorderCost(ValueId v, const mge_layout& from, const mge_layout& to, Device* reader) const {
    Device* maker = producer_[v] < 0 ? nullptr : groups_[producer_[v]].device;
    // Between two devices, a reorder from one non-plain layout to another goes through the plain layout. Opaque layouts do
    // so always.
    const bool differs = from.kind == MGE_LAYOUT_OPAQUE || !SameLayout(from, to);
    if (differs && !IsPlain(from) && !IsPlain(to) && maker && reader && maker != reader) {
      return ReorderCost(v, from, PlainLayout(), reader) + ReorderCost(v, PlainLayout(), to, reader);
    }
    if (SameLayout(from, to)) return 0;
    Device* device = (IsPlain(to) && maker) || !reader ? maker : reader;
    if (!device) return 0;
    return reorder_us_(*device, graph_.value(v).type, from, to);
  }

  // Returns the cost of the reorders for all readers of v if its producer writes the layout `from`. Each layout is counted
  // once. Without `look_ahead`, counts only the use as an output of the graph.
  double ReadersCost(ValueId v, const mge_layout& from, bool look_ahead) const {
    std::vector<mge_layout> made;
    double total = 0;
    auto want = [&](const mge_layout& l, Device* reader) {
      const size_t before = made.size();
      AddNew(made, l);
      if (made.size() > before) total += ReorderCost(v, from, l, reader);
    };
    if (given_out_[v]) want(PlainLayout(), nullptr);
    for (const Use& use : consumers_[v]) {
      if (look_ahead) want(choices_[use.group].inputs[use.operand], groups_[use.group].device);
    }
    return total;
  }

  // Returns the cost of the groups' current choices plus every reorder of the values that they read and write.
  double CostOf(const std::vector<int>& groups) const {
    double total = 0;
    std::vector<ValueId> values;
    for (int g : groups) {
      total += choices_[g].cost_us;
      std::copy_if(groups_[g].inputs.begin(), groups_[g].inputs.end(), std::back_inserter(values),
                   [&](ValueId v) { return !Constant(v); });
      values.insert(values.end(), groups_[g].outputs.begin(), groups_[g].outputs.end());
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (ValueId v : values) total += ReadersCost(v, layout_[v], true);
    return total;
  }

  bool Constant(ValueId v) const { return graph_.value(v).role == Role::kConstant; }

  // ---- single groups

  // Returns every way to run group g: each candidate, with its ANY operands in one of the layouts `tries`.
  std::vector<GroupChoice> Options(int g, std::vector<mge_layout> tries) const {
    const Group& group = groups_[g];
    std::vector<GroupChoice> out;
    if (group.kind != Unit::Kind::kKernel) {
      GroupChoice c;
      c.inputs.assign(group.inputs.size(), PlainLayout());
      c.outputs.assign(group.outputs.size(), PlainLayout());
      out.push_back(std::move(c));
      return out;
    }
    for (int index : order_[g]) {
      const OwnedCandidate& candidate = group.candidates.offered[index];
      const bool flexible = std::any_of(candidate.inputs.begin(), candidate.inputs.end(), IsAny) ||
                            std::any_of(candidate.outputs.begin(), candidate.outputs.end(), IsAny);
      for (const mge_layout& chosen : tries) {
        if (!flexible && &chosen != &tries.front()) break;
        GroupChoice c;
        c.candidate = index;
        c.cost_us = cost_[g][index];
        bool fits = true;
        auto resolve = [&](const mge_layout& l, ValueId v) {
          const mge_layout& r = IsAny(l) ? chosen : l;
          const Shape& dims = graph_.value(v).type.dims;
          if (IsAny(l) && r.kind == MGE_LAYOUT_PERMUTED && r.rank != static_cast<int32_t>(dims.size())) fits = false;
          if (IsAny(l) && r.kind == MGE_LAYOUT_OPAQUE) fits = false;
          return fits ? Canonical(r, dims) : PlainLayout();
        };
        for (size_t k = 0; k < group.inputs.size(); ++k) {
          // Constants are always passed plain. A kernel that needs another form packs them.
          c.inputs.push_back(Constant(group.inputs[k]) ? PlainLayout() : resolve(candidate.inputs[k], group.inputs[k]));
        }
        for (size_t k = 0; k < group.outputs.size(); ++k) {
          c.outputs.push_back(resolve(candidate.outputs[k], group.outputs[k]));
        }
        if (fits) out.push_back(std::move(c));
      }
    }
    return out;
  }

  double Total(int g, const GroupChoice& c, bool look_ahead) const {
    const Group& group = groups_[g];
    double total = c.cost_us;
    for (size_t k = 0; k < group.inputs.size(); ++k) {
      ValueId v = group.inputs[k];
      if (!Constant(v)) total += ReorderCost(v, layout_[v], c.inputs[k], group.device);
    }
    for (size_t k = 0; k < group.outputs.size(); ++k) total += ReadersCost(group.outputs[k], c.outputs[k], look_ahead);
    return total;
  }

  // Returns the layouts of the values that group g reads and, with `look_ahead`, those that its readers want. Plain is the
  // first.
  std::vector<mge_layout> Around(int g, bool look_ahead) const {
    std::vector<mge_layout> out = {PlainLayout()};
    for (ValueId v : groups_[g].inputs) {
      if (!Constant(v)) AddNew(out, layout_[v]);
    }
    for (size_t k = 0; look_ahead && k < groups_[g].outputs.size(); ++k) {
      for (const Use& use : consumers_[groups_[g].outputs[k]]) AddNew(out, choices_[use.group].inputs[use.operand]);
    }
    return out;
  }

  void Set(int g, GroupChoice choice) {
    choices_[g] = std::move(choice);
    for (size_t k = 0; k < groups_[g].outputs.size(); ++k) layout_[groups_[g].outputs[k]] = choices_[g].outputs[k];
  }

  static bool IsSame(const GroupChoice& a, const GroupChoice& b) {
    return a.candidate == b.candidate && a.outputs.size() == b.outputs.size() &&
           std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), SameLayout) &&
           std::equal(a.outputs.begin(), a.outputs.end(), b.outputs.begin(), SameLayout);
  }

  bool Improve(int g, bool look_ahead) {
    std::vector<GroupChoice> options = Options(g, Around(g, look_ahead));
    double best = std::numeric_limits<double>::infinity();
    size_t at = 0;
    for (size_t i = 0; i < options.size(); ++i) {
      double total = Total(g, options[i], look_ahead);
      if (total < best - 1e-9) {
        best = total;
        at = i;
      }
    }
    GroupChoice& next = options[at];
    if (look_ahead && IsSame(choices_[g], next)) return false;
    if (groups_[g].kind == Unit::Kind::kKernel) {
      next.reason = options.size() == 1
                        ? "the only candidate and layout"
                        : fmt::format("fastest of {} candidates: {:.2f} us including reorders", options.size(), best);
    }
    Set(g, std::move(next));
    return true;
  }

  // Improves each of `groups`, which are in topological order, backwards and forwards until nothing changes.
  void Sweep(const std::vector<int>& groups) {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool changed = false;
      for (size_t i = groups.size(); i-- > 0 && !Stopped();) changed |= Improve(groups[i], true);
      for (size_t i = 0; i < groups.size() && !Stopped(); ++i) changed |= Improve(groups[i], true);
      if (!changed || Stopped()) break;
    }
  }

  // ---- regions: where each group alone would pay for two reorders, all of them together may pay for none

  // Returns the layouts, other than plain, that some candidate requires.
  std::vector<Target> Targets() const {
    std::vector<Target> out;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Backend* backend = groups_[g].kind == Unit::Kind::kKernel ? &groups_[g].device->backend() : nullptr;
      auto add = [&](const mge_layout& l) {
        if (IsPlain(l) || IsAny(l)) return;
        const bool opaque = l.kind == MGE_LAYOUT_OPAQUE;
        auto at = std::find_if(out.begin(), out.end(), [&](const Target& t) {
          return opaque ? t.backend == backend && Has(l, t.layout, {}) : SameLayout(t.layout, l);
        });
        if (at == out.end()) at = out.insert(at, {l, opaque ? backend : nullptr, {}});
        if (at->seeds.empty() || at->seeds.back() != static_cast<int>(g)) at->seeds.push_back(static_cast<int>(g));
      };
      for (int index : order_[g]) {
        const OwnedCandidate& c = groups_[g].candidates.offered[index];
        std::for_each(c.inputs.begin(), c.inputs.end(), add);
        std::for_each(c.outputs.begin(), c.outputs.end(), add);
      }
    }
    return out;
  }

  // Returns the plain layout. Its seeds are the groups that use another layout.
  Target Plain() const {
    Target out = {PlainLayout(), nullptr, {}};
    for (size_t g = 0; g < groups_.size(); ++g) {
      auto plain = [](const std::vector<mge_layout>& list) { return std::all_of(list.begin(), list.end(), IsPlain); };
      if (!plain(choices_[g].inputs) || !plain(choices_[g].outputs)) out.seeds.push_back(static_cast<int>(g));
    }
    return out;
  }

  // Returns true if the layout `l` of a tensor of `dims` is `layout`. Opaque layouts are compared without their sizes, which
  // depend on the tensor.
  static bool Has(const mge_layout& l, const mge_layout& layout, const Shape& dims) {
    if (layout.kind == MGE_LAYOUT_OPAQUE) return l.kind == MGE_LAYOUT_OPAQUE && l.opaque_id == layout.opaque_id;
    const bool fits = layout.kind != MGE_LAYOUT_PERMUTED || layout.rank == static_cast<int32_t>(dims.size());
    return fits && SameLayout(l, Canonical(layout, dims));
  }

  // Returns the cheapest way to run group g with an operand in that layout, or with all operands if it is plain. `candidate`
  // is -1 if there is none.
  GroupChoice In(int g, const Target& target) const {
    GroupChoice best;
    const Group& group = groups_[g];
    if (group.kind != Unit::Kind::kKernel || (target.backend && target.backend != &group.device->backend())) return best;
    for (GroupChoice& c : Options(g, {PlainLayout(), target.layout})) {
      // Returns true if some operand that is no constant has the layout, or does not have it.
      auto some = [&](bool has) {
        auto found = [&](const std::vector<mge_layout>& laid, const std::vector<ValueId>& values) {
          for (size_t k = 0; k < laid.size(); ++k) {
            if (!Constant(values[k]) && Has(laid[k], target.layout, graph_.value(values[k]).type.dims) == has) return true;
          }
          return false;
        };
        return found(c.inputs, group.inputs) || found(c.outputs, group.outputs);
      };
      if (IsPlain(target.layout) ? some(false) : !some(true)) continue;
      if (best.candidate < 0 || c.cost_us < best.cost_us) best = std::move(c);
    }
    return best;
  }

  // Returns the connected sets of groups that can use the layout and contain a seed.
  std::vector<std::vector<int>> RegionsOf(const Target& target) const {
    std::vector<std::vector<int>> regions;
    std::set<int> seen;
    for (int seed : target.seeds) {
      std::vector<int> region;
      auto add = [&](int g) {
        if (g >= 0 && seen.insert(g).second && In(g, target).candidate >= 0) region.push_back(g);
      };
      add(seed);
      for (size_t i = 0; i < region.size(); ++i) {
        const Group& group = groups_[region[i]];
        for (ValueId v : group.inputs) add(producer_[v]);
        for (ValueId v : group.outputs) {
          for (const Use& use : consumers_[v]) add(use.group);
        }
      }
      std::sort(region.begin(), region.end());
      if (!region.empty()) regions.push_back(std::move(region));
    }
    return regions;
  }

  // Gives the layout to all groups of the region, and improves each. Keeps the result if the region then costs less. Returns
  // true if it did.
  bool MoveTogether(const std::vector<int>& region, const Target& target) {
    const double before = CostOf(region);
    std::vector<GroupChoice> old;
    for (int g : region) {
      old.push_back(choices_[g]);
      Set(g, In(g, target));
    }
    Sweep(region);
    const double saved = before - CostOf(region);
    const bool better = saved > kGainUs;
    for (size_t i = 0; i < region.size(); ++i) {
      GroupChoice& now = choices_[region[i]];
      if (!better) {
        Set(region[i], std::move(old[i]));
      } else if (now.reason.empty()) {
        now.reason = fmt::format("chosen together with its neighbours: {} groups can use layout {}, which saves {:.2f} us",
                                 region.size(), LayoutText(target.layout), saved);
      }
    }
    return better;
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const std::vector<std::vector<int>>& order_;
  const std::vector<std::vector<double>>& cost_;
  const ReorderUs& reorder_us_;
  const StopControl* stop_;
  std::vector<GroupChoice> choices_;
  std::vector<mge_layout> layout_;
  std::vector<int> producer_;  // group that writes each value, or -1
  std::vector<bool> given_out_;
  std::vector<std::vector<Use>> consumers_;
};

}  // namespace

std::vector<GroupChoice> ChooseLayouts(const Graph& graph, const std::vector<Group>& groups,
                                       const std::vector<std::vector<int>>& order,
                                       const std::vector<std::vector<double>>& cost, const ReorderUs& reorder_us,
                                       const StopControl* stop) {
  return Chooser(graph, groups, order, cost, reorder_us, stop).Run();
}

}  // namespace mge
