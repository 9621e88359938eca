// SPDX-License-Identifier: Apache-2.0
#include "core/profile/profile.h"

#include <algorithm>

namespace mge {
namespace {

std::vector<ProfiledStep> StepsOf(const Plan& plan) {
  std::vector<ProfiledStep> steps;
  for (const Step& step : plan.steps) {
    const Unit& u = plan.units[static_cast<size_t>(step.unit)];
    ProfiledStep& out = steps.emplace_back();
    out.unit = step.unit;
    out.kind = u.kind;
    out.nodes = u.nodes;
    out.ops = u.ops;
    out.label = UnitLabel(u);
    out.main_op = u.main_op.empty() ? std::string(UnitKindName(u.kind)) : u.main_op;
    out.device = u.device;
    out.queue = u.queue;
    out.kernel = u.kernel;
    out.estimated_us = u.cost_us;
    out.flops = u.flops;
    out.bytes = u.bytes;
  }
  for (const Segment& s : plan.segments) {
    if (s.step_count == 0) continue;
    steps[static_cast<size_t>(s.first_step)].waits = !s.waits.empty() || !s.host_waits.empty();
  }
  return steps;
}

}  // namespace

void KeepOnlyWaits(Recording& recording) {
  for (ProfiledRun& run : recording.runs) {
    std::erase_if(run.spans, [&](const ProfiledSpan& span) {
      if (span.kind != ProfiledSpan::Kind::kStep) return false;
      const ProfiledStep& step = recording.plans[static_cast<size_t>(span.plan)].steps[static_cast<size_t>(span.step)];
      return step.kind != Unit::Kind::kCopy && !step.waits;
    });
  }
}

void KeepSteps(Recording& recording, bool operators, bool added) {
  for (ProfiledRun& run : recording.runs) {
    std::erase_if(run.spans, [&](const ProfiledSpan& span) {
      if (span.kind != ProfiledSpan::Kind::kStep) return false;
      const ProfiledStep& step = recording.plans[static_cast<size_t>(span.plan)].steps[static_cast<size_t>(span.step)];
      return step.nodes.empty() ? !added : !operators;
    });
  }
}

int32_t Profile::IndexOf(const std::shared_ptr<const Plan>& plan, int32_t parent, int32_t parent_step,
                         std::string_view body) {
  std::lock_guard lock(mutex_);
  for (const Known& k : known_) {
    if (k.parent == parent && k.parent_step == parent_step && k.body == body && k.plan.lock() == plan) return k.index;
  }
  // A plan that was dropped from the cache and created again has the same index.
  ProfiledPlan fresh = {parent, parent_step, std::string(body), DeviceText(*plan), StepsOf(*plan)};
  std::vector<ProfiledPlan>& plans = recording_.plans;
  const auto index = static_cast<int32_t>(std::find(plans.begin(), plans.end(), fresh) - plans.begin());
  if (index == static_cast<int32_t>(plans.size())) plans.push_back(std::move(fresh));
  std::erase_if(known_, [](const Known& k) { return k.plan.expired(); });
  known_.push_back({parent, parent_step, std::string(body), plan, index});
  return index;
}

int32_t Profile::Find(const Plan& plan) const {
  std::lock_guard lock(mutex_);
  for (const Known& k : known_) {
    if (k.plan.lock().get() == &plan) return k.index;
  }
  return -1;
}

void Profile::Add(ProfiledRun run) {
  std::lock_guard lock(mutex_);
  if (spans_ >= kMaxSpans) {
    ++recording_.dropped;
    return;
  }
  spans_ += run.spans.size();
  recording_.runs.push_back(std::move(run));
}

Recording Profile::Read() const {
  std::lock_guard lock(mutex_);
  return recording_;
}

// Keeps the plans, because a run in progress uses their indices.
void Profile::Reset() {
  std::lock_guard lock(mutex_);
  recording_.runs.clear();
  recording_.dropped = 0;
  spans_ = 0;
}

}  // namespace mge
