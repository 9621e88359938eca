// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ranges/range_plans.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "core/ops/op.h"
#include "core/ops/reports/flops.h"
#include "core/plan/input_text.h"
#include "core/plan/value_records.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns whether both signatures have the same kinds, element types, ranks and places of inputs.
bool SameKinds(std::span<const InputType> a, std::span<const InputType> b) {
  return std::ranges::equal(a, b, [](const InputType& x, const InputType& y) {
    return x.kind == y.kind && x.dtype == y.dtype && x.place == y.place && x.shape.size() == y.shape.size();
  });
}

// Calls visit(i, d) for each size of each input.
template <typename F>
void EachSize(std::span<const InputType> inputs, F visit) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (size_t d = 0; d < inputs[i].shape.size(); ++d) visit(i, d);
  }
}

// Returns the work of each operator that computes something: the bytes that it writes, and what takes the time of writing a byte,
// which are 8 arithmetic operations.
std::map<std::string_view, double> WorkOf(const Graph& graph) {
  std::map<std::string_view, double> out;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.dead || node.def->KeepsBytes()) continue;
    double& work = out[node.def->name];
    for (const ValueId v : node.outputs) work += v == kNone ? 0 : std::max(BytesOf(graph.value(v).type), 0.0);
    work += std::max(FlopsOf(graph, node), 0.0) / 8;
  }
  return out;
}

constexpr double kLittleWork = 0.03;  // a share that is no reason for a plan of its own

// The work that the graph for a range has more than the graph for exact sizes.
struct MoreWork {
  double share = 0;          // of the latter's work
  std::string_view op = {};  // the operator of most of it
};

MoreWork Compare(const Graph& range, const Graph& exact) {
  std::map<std::string_view, double> left = WorkOf(range);
  double all = 0, more = 0, most = 0;
  MoreWork out;
  for (const auto& [op, bytes] : WorkOf(exact)) {
    all += bytes;
    left[op] -= bytes;
  }
  for (const auto& [op, bytes] : left) {
    more += bytes;
    if (bytes > most) most = bytes, out.op = op;
  }
  out.share = std::max(more, 0.0) / std::max(all, 1.0);
  return out;
}

// Returns the ranges as text: "input_ids[1,59..73]".
std::string RangesText(const Graph& graph, std::span<const InputType> first, std::span<const InputType> last) {
  return InputText(graph, [&](size_t i) {
    std::string sizes;
    for (size_t d = 0; d < first[i].shape.size() && first[i].shape != last[i].shape; ++d) {
      const int64_t from = first[i].shape[d], to = last[i].shape[d];
      sizes += fmt::format("{}{}", d ? "," : "[", from == to ? std::to_string(to) : fmt::format("{}..{}", from, to));
    }
    return sizes.empty() ? sizes : sizes + "]";
  });
}

}  // namespace

SizeRange SizeRange::Of(int64_t size) {
  if (size > std::numeric_limits<int64_t>::max() / 2) return {size, size};  // a tensor without elements
  SizeRange range = {0, 0};
  while (!range.Has(size)) {
    range.first = range.last + 1;
    range.last = range.first + range.first / 4;
  }
  return range;
}

std::unique_ptr<RangePlans> RangePlans::For(const PlanContext& context) {
  const auto reproducible = [&](Device* device) { return context.kernels.ModeOn(*device) == MGE_SELECT_REPRODUCIBLE; };
  const auto queues = [](Device* device) { return HasQueues(*device); };
  const SelectionTools& selection = context.services->selection;
  if (context.settings->Get<kPlanRanges>() == PlanRanges::kOff || context.training || selection.recorder ||
      selection.replay || context.settings->Get<kPlanStaticInputShape>() || RecordsValues(*context.settings) ||
      std::ranges::any_of(context.devices, queues) || std::ranges::any_of(context.devices, reproducible)) {
    return nullptr;
  }
  return std::make_unique<RangePlans>();
}

void RangePlans::Note(std::span<const InputType> inputs) {
  if (seen_ == 0 || !SameKinds(seen_types_, inputs)) {
    seen_types_.assign(inputs.begin(), inputs.end());
    seen_ = 0;
  }
  ++seen_;
  EachSize(inputs, [&](size_t i, size_t d) {
    if (seen_types_[i].shape[d] != inputs[i].shape[d]) seen_types_[i].shape[d] = kUnknownDim;
  });
}

absl::StatusOr<RangePlans::Pattern*> RangePlans::PatternFor(const Graph& graph, std::span<const InputType> inputs,
                                                            Types types, const PlanContext& context,
                                                            const StopControl* stop) {
  for (Pattern& known : patterns_) {
    if (known.types != types) continue;
    if (!known.made || known.made->branches.empty()) return &known;
    absl::StatusOr<bool> selects = RangeGraph(known.made).SetSizes(inputs, stop);
    if (selects.ok() && *selects) return &known;
  }
  if (patterns_.size() >= kKept) patterns_.pop_back();
  Pattern& pattern = patterns_.emplace_front(Pattern{std::move(types)});
  const auto pass = [&]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(RangePattern made, MakeRangePattern(graph, pattern.types, inputs, context, stop));
    auto shared = std::make_shared<const RangePattern>(std::move(made));
    RangeGraph sized(shared);
    MGE_ASSIGN_OR_RETURN(const bool set, sized.SetSizes(inputs, stop));
    if (!set) return absl::UnimplementedError("a shape depends on data or on these sizes");
    MGE_ASSIGN_OR_RETURN(const SpecialisedGraph exact, Specialise(graph, inputs, context, stop));
    const MoreWork more = Compare(sized.graph(), exact.graph);
    pattern.more_work = more.share;
    pattern.more_op = more.op;
    pattern.made = std::move(shared);
    return absl::OkStatus();
  };
  // Wrong sizes are for the plan of the sizes themselves to report.
  pattern.why = std::string(pass().message());
  if (absl::Status stopped = CheckStop(stop); !stopped.ok()) {
    patterns_.pop_front();
    return stopped;
  }
  return &pattern;
}

std::string RangePlans::MoreWorkText(const Pattern& pattern) {
  return fmt::format("with unknown sizes, {:.0f} % more work is left, most of it in nodes of {}", 100 * pattern.more_work,
                     pattern.more_op);
}

RangePlans::Range* RangePlans::Find(std::span<const InputType> inputs) {
  for (auto at = ranges_.begin(); at != ranges_.end(); ++at) {
    if (!SameKinds(at->first, inputs)) continue;
    bool has = true;
    EachSize(inputs, [&](size_t i, size_t d) {
      has &= SizeRange{at->first[i].shape[d], at->last[i].shape[d]}.Has(inputs[i].shape[d]);
    });
    if (!has) continue;
    ranges_.splice(ranges_.begin(), ranges_, at);
    return &ranges_.front();
  }
  return nullptr;
}

absl::StatusOr<RangePlans::Range*> RangePlans::Make(const Graph& graph, std::span<const InputType> inputs,
                                                    const std::shared_ptr<const PlanContext>& context,
                                                    const StopControl* stop, const ReclaimMemory& reclaim_memory) {
  Range range = {.first = {inputs.begin(), inputs.end()}, .last = {inputs.begin(), inputs.end()}, .plan = nullptr};
  Types types(inputs.begin(), inputs.end());
  int64_t largest = 0;
  EachSize(inputs, [&](size_t i, size_t d) {
    const int64_t size = inputs[i].shape[d];
    const SizeRange sizes = SizeRange::Of(size);
    if (seen_types_[i].shape[d] != kUnknownDim || sizes.first == sizes.last) return;
    types[i].shape[d] = kUnknownDim;
    largest = std::max(largest, size);
  });
  if (largest == 0) return nullptr;
  const SizeRange leader = SizeRange::Of(largest);
  EachSize(inputs, [&](size_t i, size_t d) {
    if (types[i].shape[d] != kUnknownDim) return;
    const int64_t size = inputs[i].shape[d];
    const int64_t down = largest - leader.first, up = leader.last - largest;
    const bool follows = std::max(down, up) <= size / 4 + 1;
    const SizeRange sizes = follows ? SizeRange{size - down, size + up} : SizeRange::Of(size);
    range.first[i].shape[d] = sizes.first;
    range.last[i].shape[d] = sizes.last;
  });
  MGE_ASSIGN_OR_RETURN(Pattern * pattern, PatternFor(graph, inputs, std::move(types), *context, stop));
  range.why = pattern->why;
  if (pattern->made) {
    // Largest sizes that contradict each other or do not fit into memory leave the sizes to plans of their own.
    absl::StatusOr<std::unique_ptr<RangePlan>> plan =
        RangePlan::Create(std::make_unique<RangeGraph>(pattern->made), range.last,
                          RangesText(graph, range.first, range.last), context, stop, reclaim_memory);
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    if (plan.ok()) {
      range.runs = (*plan)->RunsUntilExact(pattern->more_work);
      if (range.runs > 0) {
        range.plan = *std::move(plan);
        range.why_limited = fmt::format(
            "after {} runs: {}", range.runs,
            pattern->more_work > kLittleWork ? MoreWorkText(*pattern) : "kernels that compile code for a size are faster");
      } else {
        range.why = MoreWorkText(*pattern);
        *pattern = {std::move(pattern->types), nullptr, range.why};
      }
    } else {
      range.why = std::string(plan.status().message());
      // A plan that cannot serve other sizes was made in vain, so it is not tried for other ranges. The largest sizes of a range
      // may select other branches than its first ones.
      if (absl::IsUnimplemented(plan.status()) && pattern->made->branches.empty()) {
        *pattern = {std::move(pattern->types), nullptr, range.why};
      }
    }
  }
  if (ranges_.size() >= kKept) ranges_.pop_back();
  return &ranges_.emplace_front(std::move(range));
}

bool RangePlans::Forget() {
  return std::erase_if(ranges_, [](const Range& range) { return range.plan != nullptr; }) > 0;
}

absl::StatusOr<std::shared_ptr<Plan>> RangePlans::PlanFor(const Graph& graph, std::span<const InputType> inputs,
                                                          std::span<const IoPlace> outputs,
                                                          const std::shared_ptr<const PlanContext>& context,
                                                          const StopControl* stop, const ReclaimMemory& reclaim_memory,
                                                          std::string* why) {
  const auto own = [&](std::string reason) {
    *why = std::move(reason);
    return nullptr;
  };
  const auto elsewhere = [](const IoPlace& place) { return place != IoPlace(); };
  const auto unfit = [&](const InputType& type) { return type.kind != ValueKind::kTensor || elsewhere(type.place); };
  if (std::ranges::any_of(inputs, unfit) || std::ranges::any_of(outputs, elsewhere)) {
    return own("an input is no tensor, or an input or output is in the memory of a device");
  }
  if (std::exchange(skips_, false)) return own("they had so many runs that a plan of their own saves time");
  Note(inputs);
  if (seen_ < kFirstWithRanges) return nullptr;
  Range* range = Find(inputs);
  if (!range) {
    MGE_ASSIGN_OR_RETURN(range, Make(graph, inputs, context, stop, reclaim_memory));
  }
  if (!range) return own("no size that varies is in a range of several sizes");
  if (!range->plan) return own(range->why);
  absl::StatusOr<std::shared_ptr<Plan>> plan = range->plan->Derive(inputs, stop);
  MGE_RETURN_IF_ERROR(CheckStop(stop));
  if (plan.ok()) {
    ++range->served;
    if (range->runs == std::numeric_limits<int64_t>::max()) return plan;
    (*plan)->report.why_own = range->why_limited;
    std::lock_guard lock(mutex_);
    if (left_.size() >= kMaxCounted) left_.clear();  // these plans stay as they are
    left_[plan->get()] = range->runs;
    return plan;
  }
  std::string reason(plan.status().message());
  if (++range->refused >= kRefusals && range->refused > range->served) {
    range->plan = nullptr;
    range->why = reason;
  }
  return own(std::move(reason));
}

bool RangePlans::CountRun(const Plan& plan) {
  if (plan.report.ranges.empty() || plan.report.why_own.empty()) return false;
  std::lock_guard lock(mutex_);
  const auto at = left_.find(&plan);
  if (at == left_.end() || --at->second > 0) return false;
  left_.erase(at);
  return true;
}

}  // namespace mge
