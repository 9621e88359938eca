// SPDX-License-Identifier: Apache-2.0
#include "core/plan/layout/missing_reorder.h"

#include <algorithm>

#include "core/kernel/layout.h"
#include "core/ops/op.h"
#include "core/plan/kernels/unable.h"
#include "fmt/format.h"

namespace mge {
namespace {

class ReorderCheck {
 public:
  ReorderCheck(const Graph& graph, const Cover& cover, const std::vector<GroupChoice>& choices, const PlanContext& context,
               ReorderCosts& reorders)
      : graph_(graph), cover_(cover), choices_(choices), context_(context), reorders_(reorders) {
    producers_.assign(static_cast<size_t>(graph.value_count()), {});
    for (size_t g = 0; g < cover.groups.size(); ++g) {
      const std::vector<ValueId>& outputs = cover.groups[g].outputs;
      for (size_t o = 0; o < std::min(outputs.size(), choices[g].outputs.size()); ++o) {
        if (outputs[o] != kNone && choices[g].candidate >= 0) producers_[outputs[o]] = {g, o, true};
      }
    }
  }

  void Run() {
    for (ValueId v : graph_.outputs()) CheckPlain(v);
    for (size_t g = 0; g < cover_.groups.size(); ++g) {
      const Group& group = cover_.groups[g];
      for (size_t i = 0; i < group.inputs.size(); ++i) {
        const ValueId v = group.inputs[i];
        if (v == kNone || IsConstantValue(graph_, v)) continue;
        const bool laid = choices_[g].candidate >= 0 && i < choices_[g].inputs.size();  // the group runs a kernel
        if (!laid || !IsFrom(v, group.device)) CheckPlain(v);
        if (laid) CheckInput(g, v, choices_[g].inputs[i]);
      }
    }
  }

 private:
  struct Producer {
    size_t group = 0, output = 0;
    bool is_kernel = false;
  };

  bool IsFrom(ValueId v, const Device* device) const {
    return producers_[v].is_kernel && cover_.groups[producers_[v].group].device == device;
  }
  const mge_layout& LayoutOf(const Producer& p) const { return choices_[p.group].outputs[p.output]; }

  // Drops the kernel that produces the value if the value cannot become plain.
  void CheckPlain(ValueId v) {
    const Producer& p = producers_[v];
    if (p.is_kernel) Check(*cover_.groups[p.group].device, v, LayoutOf(p), PlainLayout(), p.group);
  }
  // Drops the kernel that reads the value, or the one that produces it, if the value cannot get the layout.
  void CheckInput(size_t reader, ValueId v, const mge_layout& layout) {
    Device& device = *cover_.groups[reader].device;
    const bool local = IsFrom(v, &device);
    const mge_layout from = local ? LayoutOf(producers_[v]) : PlainLayout();
    Check(device, v, from, layout, IsPlain(layout) && local ? producers_[v].group : reader);
  }
  void Check(Device& device, ValueId v, const mge_layout& from, const mge_layout& to, size_t guilty) {
    const Value& value = graph_.value(v);
    if (!IsPlain(from) || !IsPlain(to)) {
      if (!reorders_.Exists(device, value.type, from, to)) Drop(guilty, value, from, to);
    }
  }

  void Drop(size_t g, const Value& value, const mge_layout& from, const mge_layout& to) {
    const Group& group = cover_.groups[g];
    const OwnedCandidate& candidate = group.candidates.offered[choices_[g].candidate];
    const std::string why =
        fmt::format("'{}' would need a reorder of {} from {} to {}, which backend {} does not offer", value.name,
                    value.type.ToString(), LayoutText(from), LayoutText(to), group.device->backend().name());
    if (!context_.caches->unable.Add(*group.device, ProblemOf(group, context_.threads), candidate.id, why)) return;
    context_.services->logger.Warning(
        "kernel '{}' of backend {} is not used for {}: {}; its author must offer mge.Reorder for every layout that a kernel "
        "names, both ways, or the kernel in the plain layout",
        candidate.id, group.device->backend().name(), NodePlace(graph_.node(group.nodes.front())), why);
  }

  const Graph& graph_;
  const Cover& cover_;
  const std::vector<GroupChoice>& choices_;
  const PlanContext& context_;
  ReorderCosts& reorders_;
  std::vector<Producer> producers_;  // by ValueId
};

}  // namespace

void DropWithoutReorder(const Graph& graph, const Cover& cover, const std::vector<GroupChoice>& choices,
                        const PlanContext& context, ReorderCosts& reorders) {
  ReorderCheck(graph, cover, choices, context, reorders).Run();
}

}  // namespace mge
