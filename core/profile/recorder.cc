// SPDX-License-Identifier: Apache-2.0
#include "core/profile/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/engine/compute_pool.h"

namespace mge {

Recorder::Recorder(std::shared_ptr<Profile> profile, uint32_t width, uint32_t pool_threads)
    : profile_(std::move(profile)), slots_(std::max(pool_threads, 1u)) {
  run_.width = std::max(std::min(width, pool_threads), 1u);
  run_.begin = -1;
}

void Recorder::Keep() {
  run_.end = profile_->Now();
  profile_->Add(std::move(run_));
}

void Recorder::BeginPlan(const std::shared_ptr<const Plan>& plan, std::string_view body) {
  const int32_t step = frames_.empty() ? -1 : frames_.back().step;
  const int64_t begin = profile_->Now();
  Frame frame = {.plan = profile_->IndexOf(plan, this->plan(), step, body), .device = plan->device, .begin = begin};
  run_.spans.reserve(run_.spans.size() + plan->steps.size() + 1);  // avoids allocations between steps
  frames_.push_back(frame);
  SampleMemory(begin);
}

void Recorder::SampleMemory(int64_t time) {
  if (!profile_->samples_memory()) return;
  Device& device = *frames_.back().device;
  run_.memory.push_back({time, device.budget().in_use(), device.name()});
}

void Recorder::EndPlan() {
  const int64_t end = profile_->Now();
  SampleMemory(end);
  const Frame frame = frames_.back();
  frames_.pop_back();
  run_.spans.push_back({.kind = ProfiledSpan::Kind::kPlan, .plan = frame.plan, .begin = frame.begin, .end = end});
  AddNested(end - frame.begin);
}

void Recorder::BeginStep(int32_t step) {
  Frame& frame = frames_.back();
  frame.step = step;
  frame.nested = 0;
  shared_ = 0;
  frame.step_begin = profile_->Now();
}

void Recorder::EndStep() {
  const int64_t end = profile_->Now();
  Frame& frame = frames_.back();
  ProfiledSpan span = {
      .plan = frame.plan, .step = frame.step, .begin = frame.step_begin, .end = end, .nested = frame.nested};
  span.device_us = std::exchange(device_us_, -1);
  TakeShares(span);
  run_.spans.push_back(span);
  frame.step = -1;
  SampleMemory(end);
}

void Recorder::TakeShares(ProfiledSpan& span) {
  span.first_share = static_cast<uint32_t>(run_.shares.size());
  // The calling thread is busy except between BeginShare() and EndShare(), where only its chunks count.
  Slot& own = slots_[0];
  own.busy += span.own() - shared_;
  own.begin = span.begin;
  own.end = span.end;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& s = slots_[i];
    if (s.begin >= 0) run_.shares.push_back({static_cast<uint32_t>(i), s.begin, s.end, std::max<int64_t>(s.busy, 0)});
    s = {};
  }
  span.share_count = static_cast<uint32_t>(run_.shares.size()) - span.first_share;
}

void Recorder::AddNested(int64_t ns) {
  if (!frames_.empty() && frames_.back().step >= 0) frames_.back().nested += ns;
}

void Recorder::BeginPlanning() {
  planning_begin_ = profile_->Now();
  if (run_.begin >= 0) return;
  run_.begin = planning_begin_;
  run_.caller = gettid();
}

void Recorder::EndPlanning() {
  const int64_t end = profile_->Now();
  const int32_t step = frames_.empty() ? -1 : frames_.back().step;
  run_.spans.push_back(
      {.kind = ProfiledSpan::Kind::kPlanning, .plan = plan(), .step = step, .begin = planning_begin_, .end = end});
  AddNested(end - planning_begin_);
}

// Ignores work that is shared from inside of a chunk: its time belongs to that chunk.
void Recorder::BeginShare() noexcept {
  if (ComputePool::ThisThread() != 0 || slots_[0].depth > 0) return;
  share_begin_ = profile_->Now();
}

void Recorder::EndShare() noexcept {
  if (ComputePool::ThisThread() != 0 || slots_[0].depth > 0) return;
  shared_ += profile_->Now() - share_begin_;
}

void Recorder::BeginChunk(uint32_t thread) noexcept {
  if (thread >= slots_.size()) return;  // a worker that started after this run
  Slot& s = slots_[thread];
  if (s.depth++ == 0) s.chunk_begin = profile_->Now();
}

void Recorder::EndChunk(uint32_t thread) noexcept {
  if (thread >= slots_.size()) return;  // a worker that started after this run
  Slot& s = slots_[thread];
  if (--s.depth > 0) return;
  s.end = profile_->Now();
  if (s.begin < 0) s.begin = s.chunk_begin;
  s.busy += s.end - s.chunk_begin;
}

}  // namespace mge
