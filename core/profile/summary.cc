// SPDX-License-Identifier: Apache-2.0
#include "core/profile/summary.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "fmt/format.h"

namespace mge {
namespace {

constexpr double kUs = 1e-3;  // microseconds per nanosecond

bool Off(double estimated, double measured, double factor) {
  return estimated > 0 && (estimated > factor * measured || measured > factor * estimated);
}

// Returns the rate of `count` operations or bytes in `us` microseconds, in 10^9 per second; -1 if it is unknown.
double Rate(double count, double us) { return count < 0 || us <= 0 ? -1 : count / us * 1e-3; }

// The sums over the calls of a step.
struct Sums {
  std::vector<double> calls_us;   // times of every call in every run
  double time_us = 0, calls = 0;  // over the faster half of the runs
  std::vector<double> busy_us;
};

std::vector<const ProfiledRun*> FasterHalf(const Recording& recording) {
  std::vector<const ProfiledRun*> runs;
  for (const ProfiledRun& r : recording.runs) runs.push_back(&r);
  std::stable_sort(runs.begin(), runs.end(), [](auto* a, auto* b) { return a->end - a->begin < b->end - b->begin; });
  runs.resize((runs.size() + 1) / 2);
  return runs;
}

double Median(std::vector<double>& values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void AddShares(const ProfiledRun& run, const ProfiledSpan& span, Sums& sums) {
  for (uint32_t i = span.first_share; i < span.first_share + span.share_count; ++i) {
    const ThreadShare& share = run.shares[i];
    sums.busy_us.resize(std::max<size_t>(sums.busy_us.size(), share.thread + 1));
    sums.busy_us[share.thread] += static_cast<double>(share.busy) * kUs;
  }
}

std::vector<OperatorSummary> ByOperator(const Recording& recording, const Summary& summary) {
  struct Work {
    double flops = 0, bytes = 0;
  };
  std::map<std::string, std::pair<OperatorSummary, Work>> rows;
  for (const StepSummary& s : summary.steps) {
    const ProfiledStep& step = recording.plans[static_cast<size_t>(s.plan)].steps[static_cast<size_t>(s.step)];
    auto& [row, work] = rows[step.main_op];
    row.op = step.main_op;
    ++row.steps;
    row.calls += s.calls;
    row.time_us += s.time_us;
    row.share += s.share;
    work.flops = work.flops < 0 || step.flops < 0 ? -1 : work.flops + s.calls * step.flops;
    work.bytes = work.bytes < 0 || step.bytes < 0 ? -1 : work.bytes + s.calls * step.bytes;
  }
  std::vector<OperatorSummary> out;
  for (auto& [op, entry] : rows) {
    auto& [row, work] = entry;
    row.gflops = Rate(work.flops, row.time_us);
    row.gbytes = Rate(work.bytes, row.time_us);
    out.push_back(std::move(row));
  }
  std::stable_sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.time_us > b.time_us; });
  return out;
}

}  // namespace

std::string PathOf(const Recording& recording, int32_t plan) {
  const ProfiledPlan& p = recording.plans[static_cast<size_t>(plan)];
  if (p.parent < 0) return "";
  std::string path = PathOf(recording, p.parent);
  const std::vector<ProfiledStep>& steps = recording.plans[static_cast<size_t>(p.parent)].steps;
  if (p.parent_step >= 0) path += (path.empty() ? "" : "/") + steps[static_cast<size_t>(p.parent_step)].label;
  return fmt::format("{}{}{}", path, path.empty() ? "" : ".", p.body);
}

StepTimes TimesOf(const Profile& profile, const Recording& recording, const Summary& summary) {
  std::map<std::pair<int32_t, int32_t>, StepTime> times;  // by plan and unit
  for (const StepSummary& s : summary.steps) {
    const int32_t unit = recording.plans[static_cast<size_t>(s.plan)].steps[static_cast<size_t>(s.step)].unit;
    times[{s.plan, unit}] = {s.median_us, s.share, s.calls, s.off};
  }
  return [&profile, times = std::move(times)](const Plan& plan, int32_t unit) -> std::optional<StepTime> {
    auto at = times.find({profile.Find(plan), unit});
    return at == times.end() ? std::nullopt : std::optional<StepTime>(at->second);
  };
}

Summary Summarise(const Recording& recording) {
  Summary out;
  out.runs = recording.runs.size();
  if (out.runs == 0) return out;
  const std::vector<const ProfiledRun*> counted = FasterHalf(recording);
  out.counted = counted.size();
  const double per_run = 1 / static_cast<double>(out.counted);
  std::map<std::pair<int32_t, int32_t>, Sums> sums;
  for (const ProfiledRun& run : recording.runs) {
    out.width = std::max(out.width, run.width);
    for (const ProfiledSpan& span : run.spans) {
      if (span.kind != ProfiledSpan::Kind::kStep) continue;
      sums[{span.plan, span.step}].calls_us.push_back(static_cast<double>(span.own()) * kUs);
    }
  }
  for (const ProfiledRun* run : counted) {
    out.wall_us += static_cast<double>(run->end - run->begin) * kUs * per_run;
    for (const ProfiledSpan& span : run->spans) {
      const double us = static_cast<double>(span.own()) * kUs;
      if (span.kind == ProfiledSpan::Kind::kPlanning) out.planning_us += us * per_run;
      if (span.kind != ProfiledSpan::Kind::kStep) continue;
      Sums& s = sums[{span.plan, span.step}];
      s.time_us += us;
      s.calls += 1;
      AddShares(*run, span, s);
    }
  }
  out.between_us = out.wall_us - out.planning_us;
  for (auto& [at, s] : sums) {
    const ProfiledStep& step = recording.plans[static_cast<size_t>(at.first)].steps[static_cast<size_t>(at.second)];
    StepSummary row;
    row.plan = at.first;
    row.step = at.second;
    row.calls = s.calls * per_run;
    row.time_us = s.time_us * per_run;
    row.share = row.time_us / out.wall_us;
    row.least_us = *std::min_element(s.calls_us.begin(), s.calls_us.end());
    row.median_us = Median(s.calls_us);
    if (s.calls > 0) {
      row.gflops = Rate(step.flops < 0 ? -1 : step.flops * s.calls, s.time_us);
      row.gbytes = Rate(step.bytes < 0 ? -1 : step.bytes * s.calls, s.time_us);
    }
    if (step.queue.empty() && s.time_us > 0) {
      s.busy_us.resize(std::max<size_t>(s.busy_us.size(), out.width));
      for (double us : s.busy_us) row.busy.push_back(std::min(us / s.time_us, 1.0));
      row.balance = std::min(std::accumulate(row.busy.begin(), row.busy.end(), 0.0) / out.width, 1.0);
    }
    out.between_us -= row.time_us;
    if (step.estimated_us >= 0) {
      out.estimated_us += row.calls * step.estimated_us;
      out.estimated_steps_us += row.time_us;
    }
    row.off = row.share > kOffLeastShare && row.median_us > kOffLeastUs && Off(step.estimated_us, row.median_us, kOffFactor);
    out.steps.push_back(std::move(row));
  }
  out.off = out.estimated_steps_us > kOffLeastUs && Off(out.estimated_us, out.estimated_steps_us, kPlanOffFactor);
  out.operators = ByOperator(recording, out);
  return out;
}

}  // namespace mge
