// SPDX-License-Identifier: Apache-2.0
#include "core/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/kernel/abi_graph.h"
#include "core/kernel/candidate.h"
#include "core/kernel/claims.h"
#include "core/ops/op.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr double kTolerance = 0.15;    // range of a cut around its ideal place, as a fraction of a device's share
constexpr double kBytesPerUs = 10000;  // assumed speed of a kernel without an estimate

class Partition {
 public:
  Partition(const Graph& graph, const PlanContext& context, std::span<const NodeId> nodes, std::span<const int32_t> uses,
            const ValueSizes& sizes, const StopControl* stop)
      : graph_(graph),
        context_(context),
        nodes_(nodes),
        uses_(uses),
        sizes_(sizes),
        stop_(stop),
        wishes_(graph.node_count()) {}

  absl::StatusOr<std::vector<DeviceWish>> Run() {
    FollowAnnotations();
    if (context_.split > 1) {
      MGE_RETURN_IF_ERROR(Estimate());
      FollowAbilities();
      MGE_ASSIGN_OR_RETURN(std::vector<double> across, BytesAcross());
      CutTheRest(across);
    }
    return std::move(wishes_);
  }

 private:
  int DeviceNamed(std::string_view name) const {
    for (size_t d = 0; d < context_.devices.size(); ++d) {
      const Device& device = *context_.devices[d];
      if (device.name() == name || (!device.gpu_name().empty() && device.gpu_name() == name)) return static_cast<int>(d);
    }
    return kAnyDevice;
  }

  void FollowAnnotations() {
    for (NodeId id : nodes_) {
      const std::string& name = graph_.node(id).device;
      if (name.empty()) continue;
      int device = DeviceNamed(name);
      wishes_[id] = {device, device == kAnyDevice
                                 ? fmt::format("the model asks for {}, which this session does not have", name)
                                 : "the model asks for it"};
    }
  }

  // Sets cost_[i][d], the cost of nodes_[i] on device d in microseconds. It is infinite if the device has no kernel.
  absl::Status Estimate() {
    cost_.assign(nodes_.size(), std::vector<double>(context_.split, 0));
    for (size_t i = 0; i < nodes_.size(); ++i) {
      MGE_RETURN_IF_ERROR(CheckStop(stop_));
      const Node& node = graph_.node(nodes_[i]);
      if (node.def->KeepsBytes() || !sizes_.Fit(node.inputs) || !sizes_.Fit(node.outputs)) continue;
      AbiGraph abi(graph_, nodes_.subspan(i, 1), uses_);
      mge_problem problem = {sizeof(mge_problem), context_.threads, abi.graph(), nullptr, nullptr, 0};
      for (size_t d = 0; d < context_.split; ++d) {
        Device& device = *context_.devices[d];
        const bool tuned = context_.kernels.Tunes(device, graph_, nodes_.subspan(i, 1));
        MGE_ASSIGN_OR_RETURN(CandidateList list,
                             CandidatesOf(context_, device, problem, context_.kernels.ConstraintsOn(device, tuned)));
        double best = INFINITY;
        for (const OwnedCandidate& c : list.offered) {
          best = std::min(best, c.cost_us >= 0 ? c.cost_us : BytesTouched(nodes_[i]) / kBytesPerUs + 1);
        }
        cost_[i][d] = best;
      }
    }
    return absl::OkStatus();
  }

  double Bytes(ValueId v) const {
    if (v == kNone) return 0;
    const Value& value = graph_.value(v);
    if (value.kind != ValueKind::kTensor || !value.type.IsStatic()) return 0;
    return static_cast<double>(Elements(value.type.dims) * ElementBytes(value.type.dtype));
  }

  double BytesTouched(NodeId id) const {
    double bytes = 0;
    for (ValueId v : graph_.node(id).inputs) bytes += Bytes(v);
    for (ValueId v : graph_.node(id).outputs) bytes += Bytes(v);
    return bytes;
  }

  void FollowAbilities() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      DeviceWish& wish = wishes_[nodes_[i]];
      if (wish.device != kAnyDevice) continue;
      auto able = [](double cost) { return std::isfinite(cost); };
      if (std::count_if(cost_[i].begin(), cost_[i].end(), able) != 1) continue;
      wish.device = static_cast<int>(std::find_if(cost_[i].begin(), cost_[i].end(), able) - cost_[i].begin());
      wish.reason = "it is the only device with a kernel";
    }
  }

  double CostOn(size_t i, int device) const {
    if (device < 0 || device >= static_cast<int>(context_.split)) return 0;
    return std::isfinite(cost_[i][device]) ? cost_[i][device] : 0;
  }

  // Returns, for each place c, the bytes of values that nodes before c write and nodes from c on read. Infinite if a cut at
  // c divides a group that a device offers to compute together.
  absl::StatusOr<std::vector<double>> BytesAcross() const {
    std::vector<int> place(graph_.node_count(), -1);
    for (size_t i = 0; i < nodes_.size(); ++i) place[nodes_[i]] = static_cast<int>(i);
    std::vector<double> change(nodes_.size() + 1, 0);
    std::vector<int> last(graph_.value_count(), -1);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (ValueId v : graph_.node(nodes_[i]).inputs) {
        if (v != kNone) last[v] = static_cast<int>(i);
      }
    }
    for (ValueId v = 0; v < graph_.value_count(); ++v) {
      NodeId producer = graph_.value(v).producer;
      if (producer == kNone || place[producer] < 0 || last[v] < 0) continue;
      change[place[producer] + 1] += Bytes(v);
      change[last[v] + 1] -= Bytes(v);
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    AbiGraph abi(graph_, nodes_, uses_);
    std::vector<int32_t> claims_across(change.size(), 0);  // by place: the change of the number of claims that it divides
    for (size_t d = 0; d < context_.split; ++d) {
      MGE_ASSIGN_OR_RETURN(std::vector<Claim> claims, OfferedClaims(*context_.devices[d], abi));
      for (const Claim& claim : claims) {
        auto [first, last] = std::minmax_element(claim.nodes.begin(), claim.nodes.end());
        if (first == claim.nodes.end()) continue;
        ++claims_across[static_cast<size_t>(*first) + 1];
        --claims_across[static_cast<size_t>(*last) + 1];
      }
    }
    std::partial_sum(claims_across.begin(), claims_across.end(), claims_across.begin());
    for (size_t i = 0; i < change.size(); ++i) {
      if (claims_across[i] > 0) change[i] = INFINITY;
    }
    return change;
  }

  // Gives each device a contiguous range, in topological order, of the nodes without a wish. A device that has nodes already
  // gets a smaller range.
  void CutTheRest(const std::vector<double>& across) {
    std::vector<double> load(context_.split, 0);
    std::vector<size_t> free;
    double total = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      int device = wishes_[nodes_[i]].device;
      if (device != kAnyDevice) {
        if (static_cast<size_t>(device) < load.size()) load[static_cast<size_t>(device)] += CostOn(i, device);
        total += CostOn(i, device);
      } else {
        free.push_back(i);
        total += CostOn(i, 0);
      }
    }
    double share = total / static_cast<double>(context_.split);
    size_t begin = 0;
    for (size_t d = 0; d < context_.split; ++d) {
      bool last = d + 1 == context_.split;
      size_t end = last ? free.size() : CutAfter(free, begin, static_cast<int>(d), share - load[d], share, across);
      for (size_t k = begin; k < end; ++k) {
        DeviceWish& wish = wishes_[nodes_[free[k]]];
        wish.device = static_cast<int>(d);
        if (!wish.reason.empty()) wish.reason += "; ";
        wish.reason += fmt::format("part {} of {} of about equal cost", d + 1, context_.split);
      }
      begin = end;
    }
  }

  // Returns the end of the part that begins at free[begin]. Within the tolerance around the cost `wanted`, chooses the place
  // where the fewest bytes cross. If there is none, chooses the nearest place that divides no group, else the nearest place.
  size_t CutAfter(const std::vector<size_t>& free, size_t begin, int device, double wanted, double share,
                  const std::vector<double>& across) const {
    enum Rank { kUnset, kAnywhere, kWhole, kNear } best_rank = kUnset;
    double cost = 0, least = INFINITY, nearest = INFINITY;
    size_t best = begin;
    for (size_t end = begin; end <= free.size(); ++end) {
      if (end > begin) cost += CostOn(free[end - 1], device);
      double away = std::abs(cost - wanted);
      double bytes = end < free.size() ? across[free[end]] : 0;
      bool inside = end > begin && end < free.size();
      Rank rank = !std::isfinite(bytes) ? kAnywhere : away <= kTolerance * share ? kNear : inside ? kWhole : kAnywhere;
      bool closer = rank == kNear && bytes != least ? bytes < least : away < nearest;
      if (rank > best_rank || (rank == best_rank && closer)) {
        best_rank = rank;
        best = end;
        least = bytes;
        nearest = away;
      }
      if (cost > wanted + kTolerance * share && best_rank >= kWhole) break;
    }
    return best;
  }

  const Graph& graph_;
  const PlanContext& context_;
  std::span<const NodeId> nodes_;
  std::span<const int32_t> uses_;
  const ValueSizes& sizes_;
  const StopControl* stop_;
  std::vector<DeviceWish> wishes_;
  std::vector<std::vector<double>> cost_;
};

}  // namespace

absl::StatusOr<std::vector<DeviceWish>> AssignDevices(const Graph& graph, const PlanContext& context,
                                                      std::span<const NodeId> nodes, std::span<const int32_t> uses,
                                                      const ValueSizes& sizes, const StopControl* stop) {
  return Partition(graph, context, nodes, uses, sizes, stop).Run();
}

}  // namespace mge
