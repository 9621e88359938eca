// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_cache.h"

#include <iterator>
#include <utility>

namespace mge {
namespace {

constexpr size_t kMostEvicted = 4096;  // limit of the signatures in evicted_

size_t HashOf(std::span<const InputType> inputs, std::span<const IoPlace> outputs) {
  uint64_t hash = inputs.size();
  auto mix = [&](uint64_t n) { hash = (hash ^ n) * 0x9e3779b97f4a7c15u + (hash >> 29); };
  auto mix_place = [&](const IoPlace& place) {
    if (place.device) mix(reinterpret_cast<uintptr_t>(place.device) + place.pinned);
  };
  for (const InputType& in : inputs) {
    mix(static_cast<uint64_t>(in.kind));
    mix(static_cast<uint64_t>(in.dtype));
    for (int64_t d : in.shape) mix(static_cast<uint64_t>(d));
    mix_place(in.place);
  }
  for (const IoPlace& place : outputs) mix_place(place);
  return static_cast<size_t>(hash ^ (hash >> 32));
}

// Returns the bytes of the constants that a plan packed or uploaded.
int64_t ConstantBytes(const Plan& plan) { return plan.packed_bytes + plan.uploaded_bytes; }

int64_t StepBytes(const Plan& plan) { return PlanCache::kStepBytes * static_cast<int64_t>(plan.steps.size()); }

}  // namespace

InputType TypeOfValue(const HostValue& value) {
  InputType type;
  type.kind = value.kind;
  if (value.kind == ValueKind::kTensor) {
    type.dtype = value.tensor.dtype();
    type.shape = value.tensor.shape();
  } else if (!value.sequence.empty()) {
    type.dtype = value.sequence.front().dtype();
  } else {
    type.dtype = value.tensor.dtype();
  }
  return type;
}

PlanCache::Evicted::~Evicted() {
  for (const auto& plan : idle_) GiveUpIdle(*plan);
}

PlanCache::Entries::iterator PlanCache::Locate(std::span<const InputType> inputs, std::span<const IoPlace> outputs,
                                               size_t hash) {
  auto [first, last] = by_hash_.equal_range(hash);
  auto at = std::find_if(first, last, [&](const auto& known) { return known.second->Fits(inputs, outputs); });
  return at == last ? entries_.end() : at->second;
}

std::shared_ptr<const Plan> PlanCache::Find(std::span<const InputType> inputs, Evicted& evicted,
                                            std::span<const IoPlace> outputs) {
  if (!entries_.empty() && entries_.front().Fits(inputs, outputs)) return entries_.front().plan;
  auto at = Locate(inputs, outputs, HashOf(inputs, outputs));
  if (at == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at);
  Trim(evicted);
  return entries_.front().plan;
}

void PlanCache::Add(std::span<const InputType> inputs, std::shared_ptr<const Plan> plan, Evicted& evicted,
                    std::span<const IoPlace> outputs) {
  const size_t hash = HashOf(inputs, outputs);
  ++made_;
  if (evicted_.count(hash)) ++made_again_;
  Count(*plan, 1);
  entries_.push_front({{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, hash, std::move(plan)});
  by_hash_.emplace(hash, entries_.begin());
  Trim(evicted);
}

bool PlanCache::EvictOldest(Evicted& evicted) {
  for (auto at = entries_.end(); at != entries_.begin();) {
    --at;
    if (ConstantBytes(*at->plan) == 0 || at->plan.use_count() > 1) continue;
    Evict(at, evicted);
    return true;
  }
  return false;
}

void PlanCache::Evict(Entries::iterator entry, Evicted& evicted) {
  if (evicted_.size() >= kMostEvicted) evicted_.clear();
  evicted_.insert(entry->hash);
  auto [first, last] = by_hash_.equal_range(entry->hash);
  by_hash_.erase(std::find_if(first, last, [&](const auto& known) { return known.second == entry; }));
  Count(*entry->plan, -1);
  evicted.plans_.push_back(std::move(entry->plan));
  entries_.erase(entry);
}

int64_t PlanCache::IdleBytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += mge::IdleBytes(*entry.plan);
  return bytes;
}

// Releases idle memory before it evicts plans, since such memory is quickly allocated again. Both in least recently used
// order.
void PlanCache::Trim(Evicted& evicted) {
  while (limits_.plans > 0 && entries_.size() > static_cast<size_t>(limits_.plans)) {
    Evict(std::prev(entries_.end()), evicted);
  }
  if (limits_.bytes == 0 || entries_.size() < 2) return;
  int64_t idle = 0;
  for (auto at = std::next(entries_.begin()); at != entries_.end(); ++at) idle += mge::IdleBytes(*at->plan);
  const Plan& last = *entries_.front().plan;
  auto excess = [&] { return held_bytes_ - ConstantBytes(last) - StepBytes(last) + idle > limits_.bytes; };
  for (auto at = entries_.rbegin(); excess() && idle > 0 && at != std::prev(entries_.rend()); ++at) {
    const int64_t bytes = mge::IdleBytes(*at->plan);
    if (bytes == 0) continue;
    idle -= bytes;
    evicted.idle_.push_back(at->plan);
  }
  while (excess() && entries_.size() > 1) Evict(std::prev(entries_.end()), evicted);
}

void PlanCache::Count(const Plan& plan, int by) {
  auto count = [&](const void* place, int64_t bytes) {
    Held& held = constants_[place];
    if (held.plans == 0) held_bytes_ += held.bytes = bytes;
    held.plans += by;
    if (held.plans > 0) return;
    held_bytes_ -= held.bytes;
    constants_.erase(place);
  };
  for (const ConstantBase& c : plan.constants) {
    if (c.packed) count(c.tensor.data(), c.tensor.bytes());
  }
  for (const auto& c : plan.device_constants) count(c->address(), c->bytes());
  held_bytes_ += by * StepBytes(plan);
}

}  // namespace mge
