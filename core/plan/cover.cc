// SPDX-License-Identifier: Apache-2.0
#include "core/plan/cover.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>

#include "absl/functional/function_ref.h"
#include "core/base/errors.h"
#include "core/kernel/claims.h"
#include "core/ops/effects.h"
#include "core/ops/op.h"
#include "core/plan/communicator.h"
#include "core/plan/group_order.h"
#include "core/plan/host_compute.h"
#include "core/plan/memory/value_sizes.h"
#include "core/plan/partition.h"
#include "core/plan/updates.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

class Coverer {
 public:
  Coverer(const Graph& graph, const PlanContext& context, std::span<const int32_t> uses, const ValueSizes& sizes,
          const std::vector<bool>* varies, const StopControl* stop)
      : graph_(graph),
        context_(context),
        uses_(uses),
        sizes_(sizes),
        varies_(varies),
        stop_(stop),
        group_of_(graph.node_count(), -1),
        refused_(graph.node_count()),
        nondeterministic_(graph.node_count()) {}

  absl::StatusOr<Cover> Run(const IoPlaces& places) {
    MGE_ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    position_.assign(graph_.node_count(), -1);
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int32_t>(i);
    Defer();
    MGE_ASSIGN_OR_RETURN(updates_, FindUpdates(graph_, context_, deferred_));
    group_order_.emplace(MakeGroupOrder());
    MGE_ASSIGN_OR_RETURN(wishes_, AssignDevices(graph_, context_, Visible(kAnyDevice), uses_, sizes_, stop_));
    if (context_.settings->Get<kPlanHostCompute>()) TakeHostComputable(places);
    MGE_RETURN_IF_ERROR(TakeCollectives());
    for (const Update& update : updates_.list) MGE_RETURN_IF_ERROR(TakeUpdate(update));
    for (size_t d = 0; d < context_.devices.size(); ++d) {
      if (!IsReady(static_cast<int>(d), true)) continue;
      MGE_RETURN_IF_ERROR(TakeClaims(static_cast<int>(d)));
      MGE_RETURN_IF_ERROR(TakeNodes(static_cast<int>(d), true));
    }
    // Nodes that their own device cannot compute go to the next device that can, else to the core.
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
  // Returns the nodes without a group that backends can see. With `its_own`, these are the nodes that may go to the device
  // (kAnyDevice: all), else the nodes that should go to another one.
  std::vector<NodeId> Visible(int device, bool its_own = true) const {
    std::vector<NodeId> nodes;
    for (NodeId id : order_) {
      if (deferred_[id] || group_of_[id] >= 0 || !VisibleToBackends(graph_, graph_.node(id))) continue;
      if (IsCollective(*graph_.node(id).def) || IsUpdate(*graph_.node(id).def)) continue;
      if (device != kAnyDevice && Allows(id, device) != its_own) continue;
      nodes.push_back(id);
    }
    return nodes;
  }
  // Opens a device if there are nodes for it. Returns false if there are none or if opening fails; the nodes then get the
  // reason.
  bool IsReady(int number, bool its_own) {
    std::vector<NodeId> left = Visible(number, its_own);
    if (std::all_of(left.begin(), left.end(), [&](NodeId id) { return IsAlias(graph_.node(id)); })) return false;
    absl::Status opened = context_.devices[number]->Open();
    if (opened.ok()) return true;
    for (NodeId id : left) refused_[id].push_back({context_.devices[number]->name(), std::string(ErrorTitle(opened))});
    return false;
  }

  bool Allows(NodeId id, int device) const { return wishes_[id].device == kAnyDevice || wishes_[id].device == device; }

  bool IsAlias(const Node& node) const { return node.def->KeepsBytes() && OnlyFirstOutput(node); }

  // Makes aliases of nodes that only change the shape. They cost nothing and belong to no device. Claims take such nodes
  // first.
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

  // Defers nodes that read a tensor of unknown shape, and nodes that depend on deferred ones.
  void Defer() {
    deferred_.assign(graph_.node_count(), false);
    cover_.deferred_values.assign(graph_.value_count(), false);
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
      if (!deferred_[id]) continue;
      cover_.deferred.push_back(id);
      for (ValueId v : node.outputs) {
        if (v != kNone) cover_.deferred_values[v] = true;
      }
    }
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

  // Makes a group of a claim. Returns "" if it did, else the reason why not.
  absl::StatusOr<std::string> TryClaim(Device& device, const AbiGraph& abi, const Claim& claim) {
    MGE_RETURN_IF_ERROR(CheckStop(stop_));
    if (!claim.fault.empty()) return claim.fault;
    if (context_.skip.Has(claim.name)) return std::string("skipped by a setting (plan.skip)");
    std::vector<NodeId> nodes;
    for (int32_t index : claim.nodes) nodes.push_back(abi.node(index));
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position_[a] < position_[b]; });
    for (NodeId id : nodes) {
      if (group_of_[id] >= 0) {
        const Group& other = cover_.groups[group_of_[id]];
        return fmt::format("node '{}' belongs to {}", graph_.node(id).name,
                           other.claim.empty() ? "another group" : "'" + other.claim + "'");
      }
    }
    const std::optional<GroupOrder::Join> join = group_order_->Find(nodes);
    if (!join && group_order_->gave_up()) return std::string("the search for paths that leave the group took too long");
    if (!join) return std::string("a path leaves the group and comes back");
    if (std::string why = WhyNotOutputs(abi, claim, nodes); !why.empty()) return why;
    Group group;
    group.nodes = nodes;
    group.device = &device;
    group.claim = claim.name;
    group.placement = wishes_[nodes.front()].reason;
    MGE_ASSIGN_OR_RETURN(bool taken, FillKernel(group));
    if (!taken) {
      std::string reason = "no kernel can compute the group";
      for (const Refusal& r : group.candidates.refused) reason += fmt::format("; {}: {}", r.id, r.reason);
      return reason;
    }
    group_order_->Apply(*join);
    Add(std::move(group));
    return std::string();
  }

  // Returns the reason if the claim's kernel does not write an inner value that is used outside of the group, else "".
  std::string WhyNotOutputs(const AbiGraph& abi, const Claim& claim, const std::vector<NodeId>& nodes) const {
    std::map<ValueId, int32_t> inner;  // uses in the group
    for (NodeId id : nodes) {
      for (ValueId v : graph_.node(id).inputs) {
        if (v != kNone) ++inner[v];
      }
    }
    std::vector<ValueId> extra;
    for (int32_t index : claim.extra_outputs) {
      if (index < 0 || index >= static_cast<int64_t>(abi.graph()->value_count)) return "names a value that does not exist";
      extra.push_back(abi.value(index));
    }
    for (NodeId id : nodes) {
      for (ValueId v : graph_.node(id).outputs) {
        auto used = v == kNone ? inner.end() : inner.find(v);
        if (used == inner.end() || uses_[v] <= used->second) continue;
        if (std::find(extra.begin(), extra.end(), v) != extra.end()) continue;
        return fmt::format("'{}' is used outside of the group, and is not one of its extra outputs", graph_.value(v).name);
      }
    }
    return {};
  }

  // Returns the order of the groups that exist. A node must run before the readers of its outputs, and before the updates of
  // what it reads.
  GroupOrder MakeGroupOrder() const {
    auto next = [this, consumers = graph_.Consumers()](NodeId id, absl::FunctionRef<void(NodeId)> visit) {
      for (ValueId v : graph_.node(id).outputs) {
        if (v == kNone) continue;
        for (NodeId consumer : consumers[v]) visit(consumer);
      }
      if (auto after = updates_.after.find(id); after != updates_.after.end()) {
        for (NodeId update : after->second) visit(update);
      }
    };
    return GroupOrder(order_, graph_.node_count(), std::move(next));
  }

  // Returns the bytes of a kernel's operand, which is a tensor of known size.
  int64_t PlainBytes(ValueId v) const {
    const TensorType& type = graph_.value(v).type;
    return Elements(type.dims) * ElementBytes(type.dtype);
  }

  absl::StatusOr<bool> FillKernel(Group& group) {
    MGE_RETURN_IF_ERROR(CheckStop(stop_));
    group.kind = Unit::Kind::kKernel;
    group.abi = std::make_unique<AbiGraph>(graph_, group.nodes, uses_);
    group.inputs = group.abi->inputs();
    group.outputs = group.abi->outputs();
    if (!sizes_.Fit(group.inputs) || !sizes_.Fit(group.outputs)) {
      group.candidates.refused.push_back({group.device->name(), "an operand is larger than any memory"});
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
    const bool tuned = context_.kernels.Tunes(*group.device, graph_, group.nodes);
    MGE_ASSIGN_OR_RETURN(group.candidates, CandidatesOf(context_, *group.device, problem,
                                                        context_.kernels.ConstraintsOn(*group.device, tuned)));
    if (AvoidsCompiling(group)) DropCompiled(group.candidates);
    if (context_.kernels.only_deterministic && group.candidates.offered.empty() && group.nodes.size() == 1) {
      mge_constraints any = context_.kernels.ConstraintsOn(*group.device, tuned);
      any.require &= ~MGE_KERNEL_DETERMINISTIC;
      MGE_ASSIGN_OR_RETURN(const CandidateList others, CandidatesOf(context_, *group.device, problem, any));
      if (!others.offered.empty()) nondeterministic_[group.nodes.front()] = true;
    }
    if (group.target >= 0) KeepUpdates(group);
    return !group.candidates.offered.empty();
  }

  // Returns whether the group should have no kernel that compiles code: the sizes of an operand differ between the plans of a
  // range, and a second packed form of its constants needs little memory.
  bool AvoidsCompiling(const Group& group) const {
    constexpr int64_t kManyBytes = int64_t{2} << 20;
    const auto varies = [&](ValueId v) { return (*varies_)[static_cast<size_t>(v)]; };
    if (!varies_ || (std::ranges::none_of(group.inputs, varies) && std::ranges::none_of(group.outputs, varies)))
      return false;
    return std::ranges::all_of(group.inputs,
                               [&](ValueId v) { return !IsConstantValue(graph_, v) || PlainBytes(v) <= kManyBytes; });
  }

  // Drops the candidates that compile code for each size of a range, unless those that do not are much slower. Compiling takes
  // from 0.2 to 10 ms, and a size may have few runs. A signature with many runs gets a plan of its own.
  void DropCompiled(CandidateList& list) {
    constexpr double kMuchUs = 400;
    const auto compiles = [](const OwnedCandidate& c) { return (c.attributes & MGE_KERNEL_COMPILES) != 0; };
    const auto cheapest = [&](bool compiled) {
      double us = -1;
      for (const OwnedCandidate& c : list.offered) {
        if (compiles(c) == compiled && c.cost_us >= 0 && (us < 0 || c.cost_us < us)) us = c.cost_us;
      }
      return us;
    };
    const double compiled_us = cheapest(true), other_us = cheapest(false);
    if (compiled_us < 0 || other_us < 0 || other_us > compiled_us + kMuchUs) return;
    std::erase_if(list.offered, [&](const OwnedCandidate& c) {
      if (compiles(c)) {
        list.refused.push_back({c.id, "compiles code for each size of the range, and another kernel is nearly as fast"});
      }
      return compiles(c);
    });
    ++cover_.avoided_compiling;
    cover_.avoided_us += std::max(other_us - compiled_us, 0.0);
  }

  // Makes a group of each node for which the device has a kernel. With `its_own`, tries nodes that may go there, else nodes
  // that should go to another device.
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
      group.placement = its_own ? wishes_[id].reason : "the device chosen for it has no kernel";
      if (its_own && group.placement.empty() && number > 0) {
        group.placement = fmt::format("{} has no kernel for it", context_.devices.front()->name());
        for (const Refusal& r : refused_[id]) group.placement += fmt::format("; {}: {}", r.id, r.reason);
      }
      Add(std::move(group));
    }
    return absl::OkStatus();
  }

  // Makes a group of each small node that the core computes in place of a device with queues.
  void TakeHostComputable(const IoPlaces& places) {
    if (!EvaluatorsAllowed()) return;
    const std::vector<bool> computable = HostComputable(graph_, places, order_);
    for (NodeId id : order_) {
      const int wish = std::max(wishes_[id].device, 0);
      if (!computable[id] || deferred_[id] || !HasQueues(*context_.devices[wish])) continue;
      Group group = OperandsOf(id);
      group.kind = Unit::Kind::kHost;
      group.device = &HostStepDevice(context_);
      Add(std::move(group));
    }
  }

  // Returns whether the settings for kernels allow the reference evaluators.
  bool EvaluatorsAllowed() const {
    return !(context_.kernels.require & ~kEvaluatorAttributes) && !(context_.kernels.forbid & kEvaluatorAttributes);
  }

  // Makes a group of each collective operator, if the session is one of several ranks.
  absl::Status TakeCollectives() {
    if (!context_.communicators) return absl::OkStatus();
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (deferred_[id] || !IsCollective(*node.def)) continue;
      auto at = std::find_if(context_.devices.begin(), context_.devices.end(),
                             [&](const Device* d) { return context_.communicators->Serve(*d); });
      if (at == context_.devices.end()) {
        return Fail(errors::kUnsupportedFeature, fmt::format("operator {} has no device for several ranks", node.op),
                    {.what = "no backend of the session's devices has collective operations",
                     .where = NodePlace(node),
                     .fix = "name a device whose backend has them, or run with one rank (collective.ranks = 1)"});
      }
      if (!VisibleToBackends(graph_, node)) {
        return Fail(errors::kUnsupportedFeature, fmt::format("operator {} needs tensors of known shape", node.op),
                    {.where = NodePlace(node), .fix = "fix the shapes of the model's inputs"});
      }
      MGE_RETURN_IF_ERROR((*at)->Open());
      Group group = OperandsOf(id);
      group.kind = Unit::Kind::kCollective;
      group.device = *at;
      Add(std::move(group));
    }
    return absl::OkStatus();
  }

  // Returns a group of one node with its operands.
  Group OperandsOf(NodeId id) const {
    const Node& node = graph_.node(id);
    Group group;
    group.nodes = {id};
    for (ValueId v : node.inputs) {
      if (v != kNone) group.inputs.push_back(v);
    }
    for (ValueId v : node.captures) group.inputs.push_back(v);
    for (ValueId v : node.outputs) {
      if (v != kNone) group.outputs.push_back(v);
    }
    return group;
  }

  // Makes a group of an update. An update names a value and the memory of a state to which it goes. The cheapest form joins
  // it with the node that computes the value: its kernel writes into the state, and no copy is needed. This requires that
  // nothing else reads the value or still needs the state's old elements (CanWriteTo), and that the order of groups allows it.
  // Otherwise the update is a group of its own: a copy that replaces the elements, or an addition, which needs a kernel.
  absl::Status TakeUpdate(const Update& update) {
    Device& home = *context_.devices.front();
    MGE_RETURN_IF_ERROR(home.Open());
    const Node& node = graph_.node(update.node);
    const ValueId target = node.inputs[0], value = node.inputs[1];
    const bool adds = node.def->Is(kAccumulates);
    const NodeId producer = graph_.value(value).producer;
    std::vector<Refusal> refused;
    if (CanWriteTo(producer, update)) {
      Group group;
      group.nodes = {producer};
      group.device = &home;
      group.write_modes = {adds ? int32_t{MGE_WRITE_ADD} : int32_t{MGE_WRITE}};
      const AbiGraph abi(graph_, group.nodes, uses_);
      for (size_t k = 0; k < abi.inputs().size(); ++k) {
        if (abi.inputs()[k] == target) group.aliases.push_back({0, static_cast<uint32_t>(k)});
      }
      group.target = static_cast<int>(abi.inputs().size());
      // A kernel that adds reads the target's elements before it writes them, but not those that are its input as well.
      const std::optional<GroupOrder::Join> join = group_order_->Find(std::vector<NodeId>{producer, update.node});
      if (join && abi.outputs().size() == 1 && !(adds && !group.aliases.empty())) {
        MGE_ASSIGN_OR_RETURN(bool taken, FillKernel(group));
        if (taken) {
          group.nodes.push_back(update.node);
          group.inputs.push_back(target);
          group.outputs = {node.outputs[0]};
          group_order_->Apply(*join);
          Add(std::move(group));
          return absl::OkStatus();
        }
        refused = std::move(group.candidates.refused);
      }
    }
    Group group = OperandsOf(update.node);
    group.device = &home;
    group.target = 0;
    group.refused = refused;
    if (!adds) {
      group.kind = Unit::Kind::kCopy;
      group.inputs = {value, target};
      group.target = 1;
    } else {
      group.aliases = {{0, 0}};
      MGE_ASSIGN_OR_RETURN(bool taken, FillKernel(group));
      if (!taken) {
        std::vector<std::string> why;
        for (const Refusal& r : group.candidates.refused) why.push_back(fmt::format("{}: {}", r.id, r.reason));
        return Fail(
            errors::kUnsupportedFeature,
            fmt::format("device {} has no kernel that adds to the memory of '{}'", home.name(), graph_.value(target).name),
            {.what = fmt::format("{}", fmt::join(why, "; ")), .where = NodePlace(node)});
      }
      group.candidates.refused.insert(group.candidates.refused.begin(), refused.begin(), refused.end());
    }
    Add(std::move(group));
    return absl::OkStatus();
  }

  // Returns true if the node's kernel may write the update's result: the update is the only reader of the node's value.
  bool CanWriteTo(NodeId producer, const Update& update) const {
    if (producer == kNone || deferred_[producer] || group_of_[producer] >= 0) return false;
    const Node& node = graph_.node(producer);
    const ValueId value = graph_.node(update.node).inputs[1];
    return uses_[value] == 1 && VisibleToBackends(graph_, node) && IsPure(*node.def) && !IsAlias(node) &&
           Allows(producer, 0);
  }

  // Makes a group that the reference evaluator computes in host memory.
  absl::Status TakeByHost(NodeId id) {
    const Node& node = graph_.node(id);
    MGE_RETURN_IF_ERROR(sizes_.Check(node));
    bool visible = VisibleToBackends(graph_, node);
    if (!node.def->eval) {
      return Fail(errors::kUnsupportedOp, fmt::format("operator {} is not implemented", node.op),
                  {.where = NodePlace(node)});
    }
    Group group = OperandsOf(id);
    group.kind = visible && IsPure(*node.def) ? Unit::Kind::kReference : Unit::Kind::kHost;
    // Host steps have no other implementation and are always allowed. A reference step replaces a missing kernel, so it must
    // have the attributes that the settings demand of kernels.
    const bool may_stand_in = EvaluatorsAllowed() && !nondeterministic_[id];
    if (group.kind == Unit::Kind::kReference && !may_stand_in) {
      std::vector<std::string> why = context_.kernels.texts;
      for (const Refusal& r : refused_[id]) why.push_back(fmt::format("{}: {}", r.id, r.reason));
      why.emplace_back("the settings also exclude the reference evaluator");
      return Fail(errors::kUnsupportedFeature, fmt::format("operator {} has no kernel that the settings allow", node.op),
                  {.what = fmt::format("{}", fmt::join(why, "; ")),
                   .where = NodePlace(node),
                   .fix = "name another device with such a kernel, as in --device gpu0,cpu0, or change the setting"});
    }
    group.device = &HostStepDevice(context_);
    group.refused = std::move(refused_[id]);
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

  // Sorts the groups topologically (Kahn's algorithm). If several groups are ready, takes the one with the earliest first
  // node.
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
    for (const auto& [reader, updates] : updates_.after) {
      for (NodeId update : updates) {
        if (group_of_[reader] < 0 || group_of_[reader] == group_of_[update]) continue;
        next[group_of_[reader]].push_back(group_of_[update]);
        ++waits[group_of_[update]];
      }
    }
    // Starts of sums go first: other ranks wait for them.
    auto place = [&](int32_t g) {
      const NodeId first = cover_.groups[g].nodes.front();
      return graph_.node(first).def->Is(kStartsSum) ? -1 : position_[first];
    };
    auto later = [&](int32_t a, int32_t b) { return place(a) > place(b); };
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
    MGE_CHECK(sorted.size() == n);  // GroupOrder ensures that the groups have no cycle
    cover_.groups = std::move(sorted);
    return absl::OkStatus();
  }

  const Graph& graph_;
  const PlanContext& context_;
  std::span<const int32_t> uses_;
  const ValueSizes& sizes_;
  const std::vector<bool>* varies_;  // by value; nullable
  const StopControl* stop_;
  std::vector<NodeId> order_;
  std::vector<int32_t> position_;
  std::vector<bool> deferred_;
  std::vector<int32_t> group_of_;
  Updates updates_;
  std::vector<DeviceWish> wishes_;             // by NodeId
  std::vector<std::vector<Refusal>> refused_;  // refusals by devices, by NodeId
  std::vector<bool> nondeterministic_;         // by NodeId: only_deterministic excludes all kernels of a device
  std::optional<GroupOrder> group_order_;
  Cover cover_;
};

}  // namespace

mge_problem ProblemOf(const Group& group, uint32_t threads) {
  return {sizeof(mge_problem),  threads,
          group.abi->graph(),   group.write_modes.empty() ? nullptr : group.write_modes.data(),
          group.aliases.data(), group.aliases.size()};
}

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

absl::StatusOr<Cover> CoverGraph(const Graph& graph, const IoPlaces& places, const PlanContext& context,
                                 const StopControl* stop, const std::vector<bool>* varies) {
  MGE_ASSIGN_OR_RETURN(ValueSizes sizes, ValueSizes::Of(graph, context));
  const std::vector<int32_t> uses = CountUses(graph);
  return Coverer(graph, context, uses, sizes, varies, stop).Run(places);
}

}  // namespace mge
