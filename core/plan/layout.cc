// SPDX-License-Identifier: Apache-2.0
#include "core/plan/layout.h"

#include <algorithm>
#include <limits>

#include "fmt/format.h"

namespace mge {
namespace {

constexpr int kSweeps = 8;
constexpr double kReorderBytesPerUs = 8000;  // read and write
constexpr double kReorderCallUs = 1;

class Chooser {
 public:
  Chooser(const Graph& graph, const std::vector<Group>& groups, const std::vector<std::vector<int>>& order,
          const std::vector<std::vector<double>>& cost)
      : graph_(graph), groups_(groups), order_(order), cost_(cost), choices_(groups.size()),
        layout_(graph.value_count(), PlainLayout()), consumers_(graph.value_count()) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (size_t k = 0; k < groups[g].inputs.size(); ++k) {
        consumers_[groups[g].inputs[k]].push_back({static_cast<int>(g), static_cast<int>(k)});
      }
    }
  }

  std::vector<GroupChoice> Run() {
    for (size_t g = 0; g < groups_.size(); ++g) Improve(static_cast<int>(g), false);
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool changed = false;
      for (size_t g = groups_.size(); g-- > 0;) changed |= Improve(static_cast<int>(g), true);
      for (size_t g = 0; g < groups_.size(); ++g) changed |= Improve(static_cast<int>(g), true);
      if (!changed) break;
    }
    return std::move(choices_);
  }

 private:
  struct Use {
    int group;
    int operand;
  };

  double ReorderCost(ValueId v, const mge_layout& from, const mge_layout& to) const {
    if (SameLayout(from, to)) return 0;
    const TensorType& type = graph_.value(v).type;
    return kReorderCallUs + 2.0 * static_cast<double>(Elements(type.dims) * ElementBytes(type.dtype)) / kReorderBytesPerUs;
  }

  bool Constant(ValueId v) const { return graph_.value(v).role == Role::kConstant; }

  // Every way to run group g: a candidate, with its ANY operands at one of the layouts that its neighbours have or want.
  std::vector<GroupChoice> Options(int g, bool look_ahead) const {
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
      auto any = [](const mge_layout& l) { return l.kind == MGE_LAYOUT_ANY; };
      bool flexible = std::any_of(candidate.inputs.begin(), candidate.inputs.end(), any) ||
                      std::any_of(candidate.outputs.begin(), candidate.outputs.end(), any);
      std::vector<mge_layout> tries = {PlainLayout()};
      auto add_try = [&](const mge_layout& l) {
        if (l.kind == MGE_LAYOUT_ANY) return;
        if (std::none_of(tries.begin(), tries.end(), [&](const mge_layout& t) { return SameLayout(t, l); })) {
          tries.push_back(l);
        }
      };
      if (flexible) {
        for (size_t k = 0; k < group.inputs.size(); ++k) {
          if (any(candidate.inputs[k]) && !Constant(group.inputs[k])) add_try(layout_[group.inputs[k]]);
        }
        for (size_t k = 0; look_ahead && k < group.outputs.size(); ++k) {
          for (const Use& use : consumers_[group.outputs[k]]) add_try(choices_[use.group].inputs[use.operand]);
        }
      }
      for (const mge_layout& chosen : tries) {
        GroupChoice c;
        c.candidate = index;
        c.cost_us = cost_[g][index];
        bool fits = true;
        auto resolve = [&](const mge_layout& l, ValueId v) {
          const mge_layout& r = any(l) ? chosen : l;
          const Shape& dims = graph_.value(v).type.dims;
          if (any(l) && r.kind == MGE_LAYOUT_PERMUTED && r.rank != static_cast<int32_t>(dims.size())) fits = false;
          if (any(l) && r.kind == MGE_LAYOUT_OPAQUE) fits = false;
          return fits ? Canonical(r, dims) : PlainLayout();
        };
        for (size_t k = 0; k < group.inputs.size(); ++k) {
          // Constants come plain; a kernel that wants them otherwise packs them.
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
      if (!Constant(v)) total += ReorderCost(v, layout_[v], c.inputs[k]);
    }
    for (size_t k = 0; k < group.outputs.size(); ++k) {
      ValueId v = group.outputs[k];
      std::vector<const mge_layout*> wanted;
      mge_layout plain = PlainLayout();
      if (graph_.OutputUses(v) > 0) wanted.push_back(&plain);
      for (const Use& use : consumers_[v]) {
        if (look_ahead) wanted.push_back(&choices_[use.group].inputs[use.operand]);
      }
      for (size_t i = 0; i < wanted.size(); ++i) {  // each distinct layout is made once
        bool seen = std::any_of(wanted.begin(), wanted.begin() + i, [&](auto* l) { return SameLayout(*l, *wanted[i]); });
        if (!seen) total += ReorderCost(v, c.outputs[k], *wanted[i]);
      }
    }
    return total;
  }

  bool Improve(int g, bool look_ahead) {
    std::vector<GroupChoice> options = Options(g, look_ahead);
    double best = std::numeric_limits<double>::infinity();
    size_t at = 0;
    for (size_t i = 0; i < options.size(); ++i) {
      double total = Total(g, options[i], look_ahead);
      if (total < best - 1e-9) {
        best = total;
        at = i;
      }
    }
    GroupChoice& present = choices_[g];
    GroupChoice& next = options[at];
    bool same = present.candidate == next.candidate && present.outputs.size() == next.outputs.size() &&
                std::equal(present.inputs.begin(), present.inputs.end(), next.inputs.begin(), SameLayout) &&
                std::equal(present.outputs.begin(), present.outputs.end(), next.outputs.begin(), SameLayout);
    if (same && look_ahead) return false;
    if (groups_[g].kind == Unit::Kind::kKernel) {
      next.reason = options.size() == 1 ? "the only way that is offered"
                                        : fmt::format("least of {} with {:.2f} us, reorders around it included",
                                                      options.size(), best);
    }
    present = std::move(next);
    for (size_t k = 0; k < groups_[g].outputs.size(); ++k) layout_[groups_[g].outputs[k]] = present.outputs[k];
    return true;
  }

  const Graph& graph_;
  const std::vector<Group>& groups_;
  const std::vector<std::vector<int>>& order_;
  const std::vector<std::vector<double>>& cost_;
  std::vector<GroupChoice> choices_;
  std::vector<mge_layout> layout_;
  std::vector<std::vector<Use>> consumers_;
};

}  // namespace

std::vector<GroupChoice> ChooseLayouts(const Graph& graph, const std::vector<Group>& groups,
                                       const std::vector<std::vector<int>>& order,
                                       const std::vector<std::vector<double>>& cost) {
  return Chooser(graph, groups, order, cost).Run();
}

mge_layout Canonical(const mge_layout& layout, std::span<const int64_t> dims) {
  if (layout.kind != MGE_LAYOUT_PERMUTED || layout.block_count > 0) return layout;
  int32_t last = -1;
  for (int32_t i = 0; i < layout.rank; ++i) {
    int32_t axis = layout.perm[i];
    if (dims[axis] == 1) continue;
    if (axis < last) return layout;
    last = axis;
  }
  return PlainLayout();
}

}  // namespace mge
