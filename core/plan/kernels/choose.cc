// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/choose.h"

#include <algorithm>

#include "core/base/duration_text.h"
#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/plan/kernels/measure.h"
#include "core/plan/kernels/problem_key.h"
#include "core/plan/kernels/selection.h"
#include "core/plan/kernels/timing_workers.h"
#include "core/plan/layout/missing_reorder.h"
#include "core/plan/layout/reorder.h"
#include "core/plugin/strategy.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr double kUnknownUs = 1000;                            // least cost of a candidate without a time to compare with
constexpr double kPlace = 0.9;                                 // ratio of its cost to that of the next one in the order
constexpr double kNeverUs = 1e9;                               // cost of a candidate that failed
constexpr std::string_view kDeterministic = "-deterministic";  // suffix of the key for the best deterministic candidate
constexpr std::string_view kRecordAnew =
    "create it again with these shapes, threads and settings (select.strategy = profile, select.record = FILE)";

MeasureLimits MeasureLimitsOf(const Snapshot& settings) {
  const int64_t bytes = settings.Get<kSelectMeasuringBytes>().count;
  return {settings.Get<kSelectMeasuringTime>().count(),
          bytes == INT64_MAX ? UINT64_MAX : static_cast<uint64_t>(bytes)};  // a wild workspace is larger than INT64_MAX
}

// The choice of the kernel of one group: by the selection file, else by measured or estimated cost.
class Selector {
 public:
  Selector(const Graph& graph, Group& group, const PlanContext& context, const StopControl* stop)
      : graph_(graph),
        group_(group),
        tools_(context.services->selection),
        strategies_(context.caches->faulty_strategies),
        rules_(context.kernels),
        limits_(MeasureLimitsOf(*context.settings)),
        stop_(stop),
        threads_(context.threads),
        tuned_(rules_.Tunes(*group.device, graph, group.nodes)),
        mode_(rules_.ModeOn(*group.device, tuned_)),
        constraints_(rules_.ConstraintsOn(*group.device, tuned_)),
        problem_(ProblemOf(group, context.threads)),
        several_(group.candidates.offered.size() > 1) {}

  absl::Status Run() {
    bool keyed = tools_.replay || (several_ && (mode_ == MGE_SELECT_PROFILE || tools_.recorder));
    if (keyed) key_ = KeyOf(*group_.device, problem_, constraints_.require, constraints_.forbid);
    MGE_ASSIGN_OR_RETURN(bool replayed, TakeReplayed());
    if (replayed) return absl::OkStatus();
    int32_t mode = mode_;
    // An update is not timed: its result depends on what its output holds.
    if (mode == MGE_SELECT_PROFILE && group_.target >= 0) mode = MGE_SELECT_HEURISTIC;
    if (mode == MGE_SELECT_PROFILE) {
      MGE_RETURN_IF_ERROR(TakeTimes());
      bool timed = std::any_of(offered().begin(), offered().end(), [](const auto& c) { return c.measured_us >= 0; });
      if (!timed) mode = MGE_SELECT_HEURISTIC;
    }
    std::string fault;
    MGE_ASSIGN_OR_RETURN(order_, OrderCandidates(*group_.device, problem_, offered(), mode, &fault));
    if (!fault.empty()) return WarnOfStrategy(fault), absl::OkStatus();
    const mge_strategy_api* own = OwnOrder(group_.device->backend().plugin());
    if (own && !(own->flags & MGE_STRATEGY_BY_COST) && order_.size() > 1) {
      reason_ = fmt::format("the strategy of backend {} puts it first", group_.device->backend().name());
      decided_ = true;
    }
    return absl::OkStatus();
  }

  // Returns the candidates among which the layout choice may choose, best first. If the backend's strategy does not order by
  // cost, this is only its first candidate.
  std::vector<int> Eligible() const { return {order_.begin(), decided_ ? order_.begin() + 1 : order_.end()}; }

  // Returns the cost of each candidate: its time, but at least the cost of the candidates that the strategy put before it.
  // choose.h has the rule for candidates without a time.
  std::vector<double> Costs() const {
    std::vector<double> cost(offered().size(), kNeverUs);
    double next = -1;  // cost of the candidate behind; negative: unknown
    for (size_t i = order_.size(); i-- > 0;) {
      const OwnedCandidate& c = offered()[order_[i]];
      const double time = TimeOf(c);
      cost[order_[i]] = time >= 0 ? time : next * kPlace;
      // The time of a reference kernel says nothing about the others, since it is last in any order.
      if (!(c.attributes & MGE_KERNEL_REFERENCE) && time < kNeverUs) next = cost[order_[i]];
    }
    double least = 0;
    for (int c : order_) {
      if (cost[c] < 0) cost[c] = std::max(kUnknownUs, least / kPlace);
      cost[c] = least = std::max(least, cost[c]);
    }
    return cost;
  }

  // Returns the reason for a candidate that was chosen without a time, else "".
  std::string ReasonByRank(int chosen) const {
    if (order_.size() < 2 || TimeOf(offered()[chosen]) >= 0) return {};
    const auto place = std::find(order_.begin(), order_.end(), chosen) - order_.begin() + 1;
    return fmt::format("number {} of {} candidates in the order of their ranks{}", place, order_.size(),
                       place == 1 ? "" : ", because of reorders");
  }

  bool several() const { return several_; }
  bool replayed() const { return !replayed_.empty(); }  // true: the selection file has an entry for this problem
  const std::string& text() const { return key_.text; }
  const std::string& reason() const { return reason_; }

  // Records the choice. If it is not deterministic, also records the best deterministic candidate.
  void Note(int chosen) const {
    if (!tools_.recorder || !several_) return;
    auto note = [&](std::string key, const OwnedCandidate& c) {
      tools_.recorder->Note(key, c.id, key_.text,
                            c.measured_us >= 0 ? fmt::format("measured {}", DurationText(c.measured_us)) : "not measured");
    };
    auto repeats = [&](int c) { return (offered()[c].attributes & MGE_KERNEL_DETERMINISTIC) != 0; };
    note(key_.choice, offered()[chosen]);
    if (repeats(chosen)) return tools_.recorder->Forget(DeterministicKey());
    auto best = std::find_if(order_.begin(), order_.end(), repeats);
    if (best != order_.end()) note(DeterministicKey(), offered()[*best]);
  }

 private:
  const std::vector<OwnedCandidate>& offered() const { return group_.candidates.offered; }
  // Returns the measured or estimated time of a candidate in microseconds; negative: there is none.
  static double TimeOf(const OwnedCandidate& c) {
    return c.measured_us >= 0 ? c.measured_us : !c.fault.empty() ? kNeverUs : c.cost_us;
  }
  std::string DeterministicKey() const { return fmt::format("{}{}", key_.choice, kDeterministic); }
  std::vector<OwnedCandidate>& offered() { return group_.candidates.offered; }
  const Node& node() const { return graph_.node(group_.nodes.front()); }

  // Takes the candidate of the selection file. Returns false if it has no entry, or none that is offered. Looks up a single
  // candidate too: the machine that wrote the file may have had others.
  absl::StatusOr<bool> TakeReplayed() {
    if (!tools_.replay) return false;
    if (constraints_.require & MGE_KERNEL_DETERMINISTIC) replayed_ = tools_.replay->Find(DeterministicKey());
    if (!replayed()) replayed_ = tools_.replay->Find(key_.choice);
    if (!replayed() && !several_) return false;
    auto at = std::find_if(offered().begin(), offered().end(), [&](const auto& c) { return c.id == replayed_; });
    if (replayed() && at != offered().end()) {
      order_ = {static_cast<int>(at - offered().begin())};
      reason_ = fmt::format("replayed from '{}'", tools_.replay->path());
      return true;
    }
    if (!rules_.only_replayed) {
      if (replayed()) {
        std::string why = fmt::format("replayed from '{}', but not offered here", tools_.replay->path());
        tools_.logger.Warning("{}: kernel {} is {}; another is chosen", NodePlace(node()), replayed_, why);
        group_.candidates.refused.push_back({std::string(replayed_), std::move(why)});
      }
      return false;
    }
    return Fail(errors::kBadSetting, fmt::format("the selection file has no kernel for operator {}", node().op),
                {.what = replayed() ? fmt::format("'{}' names '{}', which is not offered for {} under this strategy",
                                                  tools_.replay->path(), replayed_, key_.text)
                                    : fmt::format("'{}' has no entry for {}", tools_.replay->path(), key_.text),
                 .where = NodePlace(node()),
                 .fix = std::string(kRecordAnew)});
  }

  // Measures the candidates in `missing`, in workers if there are some. Removes those that it must not measure in this
  // process, because a worker did not survive them.
  absl::StatusOr<std::vector<Measurement>> Measure(const TuningRecord& record, std::vector<int>& missing,
                                                   const MeasureLimits& limits) {
    if (tools_.workers) {
      std::optional<std::vector<Measurement>> measured =
          tools_.workers->Measure(graph_, group_, missing, threads_, constraints_, key_.timing, limits);
      if (measured) return *std::move(measured);
    }
    std::erase_if(missing, [&](int c) { return record.Find(offered()[c].id) != nullptr; });
    if (missing.empty()) return std::vector<Measurement>();
    return MeasureCandidates(graph_, group_, missing, threads_, limits);
  }

  // Sets the measured times: from the cache, else by measuring. Moves candidates with wrong results to the refusals.
  absl::Status TakeTimes() {
    if (!several_) return absl::OkStatus();
    TuningRecord record;
    if (tools_.cache) {
      if (std::optional<TuningRecord> known = tools_.cache->Find(key_.timing)) record = *std::move(known);
    }
    std::vector<int> missing;
    const double limit_s = tools_.workers ? tools_.workers->seconds() : 0;
    for (size_t c = 0; c < offered().size(); ++c) {
      const Timing* known = record.Find(offered()[c].id);
      if (!known || (known->limit_s > 0 && limit_s > known->limit_s)) missing.push_back(static_cast<int>(c));
    }
    if (!missing.empty() && (rules_.may_measure || tuned_)) {
      MeasureLimits limits = limits_;
      limits.stop = stop_;
      MGE_ASSIGN_OR_RETURN(std::vector<Measurement> measured, Measure(record, missing, limits));
      TuningRecord found, kept;
      for (size_t i = 0; i < measured.size(); ++i) {
        const Measurement& m = measured[i];
        found.timings.push_back({offered()[missing[i]].id, m.us, m.wrong, m.fault, m.limit_s});
        if (m.kept) kept.timings.push_back(found.timings.back());
      }
      auto unchecked = std::find_if(measured.begin(), measured.end(), [](const Measurement& m) { return m.unchecked; });
      if (unchecked != measured.end()) {
        tools_.logger.Warning("kernels of backend {} for {} are chosen by their times alone: {}",
                              group_.device->backend().name(), key_.text, unchecked->fault);
      }
      found.text = kept.text = key_.text;
      record.Merge(found);
      const bool timed = CheckStop(stop_).ok();
      if (tools_.cache && !kept.timings.empty()) tools_.cache->Add(key_.timing, kept, stop_);
      if (absl::Status stopped = CheckStop(stop_); !stopped.ok()) {
        return AddWhere(
            std::move(stopped),
            fmt::format("{} the kernels of {}", timed ? "waiting to write the times of" : "timing", NodePlace(node())));
      }
    }
    for (OwnedCandidate& c : offered()) {
      const Timing* t = record.Find(c.id);
      if (!t) continue;
      c.measured_us = t->us;
      c.fault = t->fault;
      if (t->wrong || t->limit_s > 0) Report(c);
    }
    auto refuse = [&](auto refused) {
      std::erase_if(offered(), [&](const OwnedCandidate& c) {
        const Timing* t = record.Find(c.id);
        if (!t || !refused(*t)) return false;
        group_.candidates.refused.push_back({c.id, c.fault});
        return true;
      });
    };
    refuse([](const Timing& t) { return t.wrong; });
    auto ended = [](const Timing& t) { return t.limit_s > 0; };
    auto remains = [&](const OwnedCandidate& c) {
      const Timing* t = record.Find(c.id);
      return !t || !ended(*t);
    };
    if (std::any_of(offered().begin(), offered().end(), remains)) {
      refuse(ended);
    } else if (!offered().empty()) {
      tools_.logger.Warning(
          "no kernel of backend {} for {} could be timed within select.profiling_timeout_seconds; one of them is chosen by "
          "estimates",
          group_.device->backend().name(), key_.text);
    }
    if (!offered().empty()) return absl::OkStatus();
    return Fail(errors::kKernelFailed,
                fmt::format("no kernel of device {} computes operator {} correctly", group_.device->name(), node().op),
                {.what = group_.candidates.refused.back().id + ": " + group_.candidates.refused.back().reason,
                 .where = NodePlace(node()),
                 .fix = "report it to the author of the backend, or choose another device"});
  }

  // Warns once per session that the host's order is used in place of the backend's.
  void WarnOfStrategy(std::string_view fault) const {
    const std::string& backend = group_.device->backend().name();
    if (!strategies_.Add(backend)) return;
    tools_.logger.Warning(
        "the strategy of backend {} is not used for {}: {}; MGE's own order is used. Its author must return each index once "
        "(`mge sdk test` checks it)",
        backend, NodePlace(node()), fault);
  }

  void Report(const OwnedCandidate& c) const {
    tools_.logger.Warning("kernel '{}' of backend {} is not used for {}: {}", c.id, group_.device->backend().name(),
                          key_.text, c.fault);
  }

  const Graph& graph_;
  Group& group_;
  const SelectionTools& tools_;
  FaultyStrategies& strategies_;
  const KernelRules& rules_;
  const MeasureLimits limits_;
  const StopControl* const stop_;
  const uint32_t threads_;
  const bool tuned_;  // by PlanContext::gpu_convolutions, which may measure whatever the strategy
  const int32_t mode_;
  const mge_constraints constraints_;
  const mge_problem problem_;
  const bool several_;  // counted before candidates with wrong results are removed
  ProblemKey key_;
  std::string_view replayed_;  // the id in the selection file
  std::string reason_;         // reason for the first candidate if it is not chosen by cost
  std::vector<int> order_;
  bool decided_ = false;  // true: the backend's strategy decides, so the first candidate is used
};

using Selectors = std::vector<std::pair<size_t, Selector>>;  // pairs of group index and selector

// Warns if the selection file has no entry for any group, since it was written for other shapes, threads or devices.
void WarnIfUnused(const SelectionTools& tools, const Selectors& selectors) {
  const Selector* choice = nullptr;
  for (const auto& [g, selector] : selectors) {
    if (selector.replayed()) return;
    if (selector.several() && !choice) choice = &selector;
  }
  if (!tools.replay || !choice) return;
  tools.logger.Warning(
      "'{}' (select.replay) has no entry for this plan's kernels, such as that of {}; select.strategy "
      "chooses them; {}",
      tools.replay->path(), choice->text(), kRecordAnew);
}

}  // namespace

absl::StatusOr<ChosenKernels> ChooseKernels(const Graph& graph, Cover cover, const PlanContext& context,
                                            const StopControl* stop) {
  const size_t count = cover.groups.size();
  std::vector<std::vector<int>> order(count);
  std::vector<std::vector<double>> cost(count);
  Selectors selectors;
  for (size_t g = 0; g < count; ++g) {
    if (cover.groups[g].kind != Unit::Kind::kKernel) continue;
    MGE_RETURN_IF_ERROR(CheckStop(stop));
    Selector selector(graph, cover.groups[g], context, stop);
    MGE_RETURN_IF_ERROR(selector.Run());
    order[g] = selector.Eligible();
    cost[g] = selector.Costs();
    selectors.emplace_back(g, std::move(selector));
  }
  WarnIfUnused(context.services->selection, selectors);
  ReorderCosts reorders(context);
  auto reorder_us = [&](Device& device, const TensorType& type, const mge_layout& from, const mge_layout& to) {
    return CheckStop(stop).ok() ? reorders.Us(device, type, from, to) : 0;
  };
  std::vector<GroupChoice> choices = ChooseLayouts(graph, cover.groups, order, cost, reorder_us, stop);
  MGE_RETURN_IF_ERROR(CheckStop(stop));
  DropWithoutReorder(graph, cover, choices, context, reorders);
  for (const auto& [g, selector] : selectors) {
    selector.Note(choices[g].candidate);
    if (std::string by_rank = selector.ReasonByRank(choices[g].candidate); !by_rank.empty()) choices[g].reason = by_rank;
    if (!selector.reason().empty()) choices[g].reason = selector.reason();
  }
  return ChosenKernels{std::move(cover), std::move(choices)};
}

}  // namespace mge
