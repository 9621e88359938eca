// SPDX-License-Identifier: Apache-2.0
#include "core/plan/cover.h"

#include <algorithm>
#include <queue>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/plan/claims.h"
#include "core/plan/partition.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

class Coverer {
 public:
  Coverer(const Graph& graph, const PlanContext& context, std::span<const int32_t> uses, const ValueSizes& sizes)
      : graph_(graph), context_(context), uses_(uses), sizes_(sizes), group_of_(graph.node_count(), -1),
        refused_(graph.node_count()) {}

  absl::StatusOr<Cover> Run() {
    MGE_ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    position_.assign(graph_.node_count(), -1);
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int32_t>(i);
    Defer();
    MGE_ASSIGN_OR_RETURN(wishes_, AssignDevices(graph_, context_, Visible(kAnyDevice), uses_, sizes_));
    for (size_t d = 0; d < context_.devices.size(); ++d) {
      if (!IsReady(static_cast<int>(d), true)) continue;
      MGE_RETURN_IF_ERROR(TakeClaims(static_cast<int>(d)));
      MGE_RETURN_IF_ERROR(TakeNodes(static_cast<int>(d), true));
    }
    // What a node's own device cannot do goes to the next one that can, and at last to the core.
    for (size_t d = 0; d < context_.devices.size(); ++d) {
      if (IsReady(static_cast<int>(d), false)) MGE_RETURN_IF_ERROR(TakeNodes(static_cast<int>(d), false));
    }
    TakeAliases();
    for (NodeId id : order_) {
      if (!deferred_[id] && group_of_[id] < 0) MGE_RETURN_IF_ERROR(TakeByHost(id));
    }
    MGE_RETURN_IF_ERROR(SortGroups());
    return std::move(cover_);
  }

 private:
  // Nodes left that a backend may see: those that may go to that device, or those that should go to another.
  std::vector<NodeId> Visible(int device, bool its_own = true) const {
    std::vector<NodeId> nodes;
    for (NodeId id : order_) {
      if (deferred_[id] || group_of_[id] >= 0 || !VisibleToBackends(graph_, graph_.node(id))) continue;
      if (device != kAnyDevice && Allows(id, device) != its_own) continue;
      nodes.push_back(id);
    }
    return nodes;
  }
  // A fallback is opened when there is something left for it; the nodes know why if that fails.
  bool IsReady(int number, bool its_own) {
    std::vector<NodeId> left = Visible(number, its_own);
    if (std::all_of(left.begin(), left.end(), [&](NodeId id) { return IsAlias(graph_.node(id)); })) return false;
    absl::Status opened = context_.devices[number]->Open();
    if (opened.ok()) return true;
    for (NodeId id : left) refused_[id].push_back({context_.devices[number]->name(), std::string(ErrorTitle(opened))});
    return false;
  }

  bool Allows(NodeId id, int device) const {
    return wishes_[id].device == kAnyDevice || wishes_[id].device == device;
  }

  bool IsAlias(const Node& node) const {
    return node.def->KeepsBytes() && OnlyFirstOutput(node);
  }

  // Another shape of the same bytes costs nothing and belongs to no device, unless a fusion took it.
  void TakeAliases() {
    for (NodeId id : Visible(kAnyDevice)) {
      const Node& node = graph_.node(id);
      if (!IsAlias(node)) continue;
      Group group;
      group.kind = Unit::Kind::kAlias;
      group.nodes = {id};
      group.device = context_.devices.front();
      group.inputs = {node.inputs[0]};
      group.outputs = {node.outputs[0]};
      Add(std::move(group));
    }
  }

  // A node waits for the continuation if it reads a tensor whose shape is not known, or something that waits.
  void Defer() {
    deferred_.assign(graph_.node_count(), false);
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      auto waits = [&](ValueId v) {
        if (v == kNone) return false;
        const Value& value = graph_.value(v);
        if (value.producer != kNone && deferred_[value.producer]) return true;
        bool unknown = value.producer != kNone && value.kind == ValueKind::kTensor && !value.type.IsStatic();
        return unknown && !node.def->Is(kHostOnly);
      };
      deferred_[id] = std::any_of(node.inputs.begin(), node.inputs.end(), waits) ||
                      std::any_of(node.captures.begin(), node.captures.end(), waits);
      if (deferred_[id]) cover_.deferred.push_back(id);
    }
  }

  bool Skipped(std::string_view name) const {
    return std::find(context_.skip.begin(), context_.skip.end(), name) != context_.skip.end();
  }

  absl::Status TakeClaims(int number) {
    Device& device = *context_.devices[number];
    std::vector<NodeId> visible = Visible(number);
    if (visible.empty()) return absl::OkStatus();
    AbiGraph abi(graph_, visible, uses_);
    MGE_ASSIGN_OR_RETURN(std::vector<Claim> claims, OfferedClaims(device, abi));
    for (const Claim& claim : claims) {
      MGE_ASSIGN_OR_RETURN(std::string why_not, TryClaim(device, abi, claim));
      if (!why_not.empty()) cover_.dropped_claims.push_back({claim.name, std::move(why_not)});
    }
    return absl::OkStatus();
  }

  // "" if the claim became a group.
  absl::StatusOr<std::string> TryClaim(Device& device, const AbiGraph& abi, const Claim& claim) {
    if (!claim.fault.empty()) return claim.fault;
    if (Skipped(claim.name)) return std::string("left out by setting");
    std::vector<NodeId> nodes;
    for (int32_t index : claim.nodes) {
      if (index < 0 || index >= static_cast<int64_t>(abi.graph()->node_count)) {
        return std::string("names a node that does not exist");
      }
      nodes.push_back(abi.node(index));
    }
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position_[a] < position_[b]; });
    if (std::adjacent_find(nodes.begin(), nodes.end()) != nodes.end()) return std::string("names a node twice");
    for (NodeId id : nodes) {
      if (group_of_[id] >= 0) {
        const Group& other = cover_.groups[group_of_[id]];
        return fmt::format("node '{}' went to {}", graph_.node(id).name,
                           other.claim.empty() ? "another group" : "'" + other.claim + "'");
      }
    }
    if (!Convex(nodes)) return std::string("a path leaves the group and comes back");
    Group group;
    group.nodes = nodes;
    group.device = &device;
    group.claim = claim.name;
    group.placement = wishes_[nodes.front()].reason;
    MGE_ASSIGN_OR_RETURN(bool taken, FillKernel(group));
    if (!taken) {
      std::string reason = "no kernel takes the group";
      for (const Refusal& r : group.candidates.refused) reason += fmt::format("; {}: {}", r.id, r.reason);
      return reason;
    }
    Add(std::move(group));
    return std::string();
  }

  // No path from the group through the outside (other groups taken as one) back into it.
  bool Convex(const std::vector<NodeId>& nodes) {
    std::vector<char> inside(graph_.node_count(), 0), reached(graph_.node_count(), 0);
    for (NodeId id : nodes) inside[id] = 1;
    int32_t first = position_[nodes.front()], last = position_[nodes.back()];
    // With whole groups as hubs the order of nodes no longer bounds paths, so fall back on a full walk then.
    bool hubs = !cover_.groups.empty();
    std::vector<NodeId> work;
    auto expand = [&](NodeId id) {
      for (ValueId v : graph_.node(id).outputs) {
        if (v == kNone) continue;
        for (NodeId consumer : Consumers()[v]) {
          if (!hubs && (position_[consumer] < first || position_[consumer] > last)) continue;
          if (!inside[consumer] && !reached[consumer]) {
            reached[consumer] = 1;
            work.push_back(consumer);
          }
        }
      }
    };
    for (NodeId id : nodes) expand(id);
    while (!work.empty()) {
      NodeId id = work.back();
      work.pop_back();
      std::vector<NodeId> same = {id};
      if (group_of_[id] >= 0) same = cover_.groups[group_of_[id]].nodes;
      for (NodeId member : same) {
        reached[member] = 1;
        for (ValueId v : graph_.node(member).outputs) {
          if (v == kNone) continue;
          for (NodeId consumer : Consumers()[v]) {
            if (inside[consumer]) return false;
          }
        }
        expand(member);
      }
    }
    return true;
  }

  const std::vector<std::vector<NodeId>>& Consumers() {
    if (consumers_.empty()) consumers_ = graph_.Consumers();
    return consumers_;
  }

  // Operands of kernels are tensors of known size.
  int64_t PlainBytes(ValueId v) const {
    const TensorType& type = graph_.value(v).type;
    return Elements(type.dims) * ElementBytes(type.dtype);
  }

  absl::StatusOr<bool> FillKernel(Group& group) {
    group.kind = Unit::Kind::kKernel;
    group.abi = std::make_unique<AbiGraph>(graph_, group.nodes, uses_);
    group.inputs = group.abi->inputs();
    group.outputs = group.abi->outputs();
    if (!sizes_.Fit(group.inputs) || !sizes_.Fit(group.outputs)) {
      group.candidates.refused.push_back({group.device->name(), "an operand fits into no memory"});
      return false;
    }
    for (std::span<const ValueId> operands :
         {std::span<const ValueId>(group.inputs), std::span<const ValueId>(group.outputs)}) {
      for (ValueId v : operands) {
        if (PlainBytes(v) <= LargestPiece(*group.device)) continue;
        absl::Status why = TooLargeAtOnce(*group.device, graph_.value(v).name, PlainBytes(v));
        group.candidates.refused.push_back({group.device->name(), PartsOf(why).what});
        return false;
      }
    }
    mge_problem problem = ProblemOf(group, context_.threads);
    MGE_ASSIGN_OR_RETURN(group.candidates,
                         CandidatesOf(context_, *group.device, problem, ConstraintsOn(context_, *group.device)));
    return !group.candidates.offered.empty();
  }

  // One by one, what the device has a kernel for: of the nodes that may go there, or of those that should go to another.
  absl::Status TakeNodes(int number, bool its_own) {
    for (NodeId id : Visible(number, its_own)) {
      if (IsAlias(graph_.node(id))) continue;
      Group group;
      group.nodes = {id};
      group.device = context_.devices[number];
      MGE_ASSIGN_OR_RETURN(bool taken, FillKernel(group));
      for (Refusal& r : group.candidates.refused) {
        if (!taken) refused_[id].push_back(std::move(r));
      }
      if (!taken) continue;
      group.placement = its_own ? wishes_[id].reason : "no device that it should go to has a kernel for it";
      if (its_own && group.placement.empty() && number > 0) {
        group.placement = fmt::format("{} has no kernel for it", context_.devices.front()->name());
        for (const Refusal& r : refused_[id]) group.placement += fmt::format("; {}: {}", r.id, r.reason);
      }
      Add(std::move(group));
    }
    return absl::OkStatus();
  }

  // The reference evaluator does it, in host memory.
  absl::Status TakeByHost(NodeId id) {
    const Node& node = graph_.node(id);
    MGE_RETURN_IF_ERROR(sizes_.Check(node));
    bool visible = VisibleToBackends(graph_, node);
    if (!node.def->eval) {
      return Fail(errors::kUnsupportedOp, fmt::format("operator {} is not implemented", node.op),
                  {.where = NodePlace(node)});
    }
    Group group;
    group.kind = visible && !node.def->Is(kRandom) ? Unit::Kind::kReference : Unit::Kind::kHost;
    // The core's own steps always compute alike. The evaluator stands in for a missing kernel only if it has the attributes
    // that the settings demand of kernels; the plan marks it as a reference step.
    const bool may_stand_in = !(context_.require & ~kEvaluatorAttributes) && !(context_.forbid & kEvaluatorAttributes);
    if (group.kind == Unit::Kind::kReference && !may_stand_in) {
      std::vector<std::string> why = context_.guard;
      for (const Refusal& r : refused_[id]) why.push_back(fmt::format("{}: {}", r.id, r.reason));
      why.emplace_back("the settings rule out the reference evaluator, too");
      return Fail(errors::kUnsupportedFeature,
                  fmt::format("operator {} has no kernel with the attributes that were asked for", node.op),
                  {.what = fmt::format("{}", fmt::join(why, "; ")),
                   .where = NodePlace(node),
                   .fix = "name a further device that has such a kernel, as in --device gpu0,cpu0, or drop what demands it"});
    }
    group.nodes = {id};
    group.device = &HostStepDevice(context_);
    group.refused = std::move(refused_[id]);
    for (ValueId v : node.inputs) {
      if (v != kNone) group.inputs.push_back(v);
    }
    for (ValueId v : node.captures) group.inputs.push_back(v);
    for (ValueId v : node.outputs) {
      if (v != kNone) group.outputs.push_back(v);
    }
    Add(std::move(group));
    return absl::OkStatus();
  }

  bool OnlyFirstOutput(const Node& node) const {
    for (size_t i = 1; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNone && uses_[node.outputs[i]] > 0) return false;
    }
    return true;
  }

  void Add(Group group) {
    for (NodeId id : group.nodes) group_of_[id] = static_cast<int32_t>(cover_.groups.size());
    cover_.groups.push_back(std::move(group));
  }

  // Kahn's algorithm over groups, earliest first node first.
  absl::Status SortGroups() {
    size_t n = cover_.groups.size();
    std::vector<std::vector<int32_t>> next(n);
    std::vector<int32_t> waits(n, 0);
    for (size_t g = 0; g < n; ++g) {
      for (ValueId v : cover_.groups[g].inputs) {
        NodeId producer = graph_.value(v).producer;
        if (producer == kNone || group_of_[producer] < 0 || group_of_[producer] == static_cast<int32_t>(g)) continue;
        next[group_of_[producer]].push_back(static_cast<int32_t>(g));
        ++waits[g];
      }
    }
    auto later = [&](int32_t a, int32_t b) {
      return position_[cover_.groups[a].nodes.front()] > position_[cover_.groups[b].nodes.front()];
    };
    std::priority_queue<int32_t, std::vector<int32_t>, decltype(later)> ready(later);
    for (size_t g = 0; g < n; ++g) {
      if (waits[g] == 0) ready.push(static_cast<int32_t>(g));
    }
    std::vector<Group> sorted;
    while (!ready.empty()) {
      int32_t g = ready.top();
      ready.pop();
      for (int32_t h : next[g]) {
        if (--waits[h] == 0) ready.push(h);
      }
      sorted.push_back(std::move(cover_.groups[g]));
    }
    MGE_CHECK(sorted.size() == n);  // Convex() kept the groups free of cycles
    cover_.groups = std::move(sorted);
    return absl::OkStatus();
  }

  const Graph& graph_;
  const PlanContext& context_;
  std::span<const int32_t> uses_;
  const ValueSizes& sizes_;
  std::vector<NodeId> order_;
  std::vector<int32_t> position_;
  std::vector<bool> deferred_;
  std::vector<int32_t> group_of_;
  std::vector<DeviceWish> wishes_;                // of each node
  std::vector<std::vector<Refusal>> refused_;     // of each node: by the devices that were asked
  std::vector<std::vector<NodeId>> consumers_;
  Cover cover_;
};

}  // namespace

std::vector<int32_t> CountUses(const Graph& graph) {
  std::vector<int32_t> uses(graph.value_count(), 0);
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead) continue;
    for (ValueId v : node.inputs) {
      if (v != kNone) ++uses[v];
    }
    for (ValueId v : node.captures) ++uses[v];
  }
  for (ValueId v : graph.outputs()) ++uses[v];
  return uses;
}

mge_problem ProblemOf(const Group& group, uint32_t threads) {
  return {sizeof(mge_problem), threads, group.abi->graph(), nullptr};
}

absl::StatusOr<Cover> CoverGraph(const Graph& graph, const PlanContext& context, std::span<const int32_t> uses,
                                 const ValueSizes& sizes) {
  return Coverer(graph, context, uses, sizes).Run();
}

}  // namespace mge
