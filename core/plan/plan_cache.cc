// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_cache.h"

#include <iterator>
#include <thread>
#include <utility>

#include "core/plan/plan.h"
#include "core/plugin/device_tensor.h"

namespace mge {
namespace {

constexpr size_t kMaxEvicted = 4096;  // limit of the signatures in evicted_

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
int64_t ConstantBytes(const Plan& plan) { return plan.report.packed_bytes + plan.report.uploaded_bytes; }

// Returns whether the value lies in that memory. A sequence lies in plain host memory. So does a tensor of a device without
// queues.
bool LiesIn(const HostValue& value, const IoPlace& place) {
  const DeviceMemory* memory = DeviceMemory::Of(value.tensor);
  if (!memory || !memory->device().queue_api()) return !place.device;
  return &memory->device() == place.device && memory->pinned() == place.pinned;
}

// Returns whether `type` is the type of the value with its place, without creating the type of a tensor.
bool HasType(const HostValue& value, const InputType& type) {
  if (!LiesIn(value, type.place)) return false;
  if (value.kind != ValueKind::kTensor) return TypeOfValue(value) == type;
  return type.kind == ValueKind::kTensor && value.tensor.dtype() == type.dtype && value.tensor.shape() == type.shape;
}

// Returns whether a plan of a range is to be replaced after some runs, which FindRecent() must not hide from Find().
bool ServesFewRuns(const Plan& plan) { return !plan.report.ranges.empty() && !plan.report.why_own.empty(); }

int64_t StepBytes(const Plan& plan) { return PlanCache::kStepBytes * static_cast<int64_t>(plan.own_steps); }

}  // namespace

InputType TypeOfValue(const HostValue& value) {
  InputType type;
  type.kind = value.kind;
  if (value.kind == ValueKind::kTensor) {
    type.dtype = value.tensor.dtype();
    type.shape = value.tensor.shape();
  } else if (!value.sequence.empty()) {
    type.dtype = value.sequence.back().dtype();  // of a map: the type of its values, which follow the keys
  } else {
    type.dtype = value.tensor.dtype();
  }
  return type;
}

PlanCache::Evicted::~Evicted() {
  for (const auto& plan : idle_) GiveUpIdle(*plan);
}

// An empty list of places stands for plain host memory.
inline bool PlanCache::Entry::FitsOutputs(std::span<const HostValue> given, const IoPlace& created) const {
  if (outputs.empty() && !created.device) {
    return std::all_of(given.begin(), given.end(), [](const HostValue& v) { return LiesIn(v, IoPlace()); });
  }
  if (outputs.size() != given.size()) return false;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!(given[i].tensor.defined() ? LiesIn(given[i], outputs[i]) : created == outputs[i])) return false;
  }
  return true;
}

std::shared_ptr<const Plan> PlanCache::FindRecent(std::span<const HostValue> inputs, std::span<const HostValue> outputs,
                                                  const IoPlace& created) const {
  std::shared_ptr<const Plan> plan;
  readers_.fetch_add(1);
  if (const Entry* entry = recent_.load()) {
    const auto& types = entry->signature;
    if (!entry->plan->RunsAlone() && !ServesFewRuns(*entry->plan) && entry->FitsOutputs(outputs, created) &&
        std::equal(inputs.begin(), inputs.end(), types.begin(), types.end(), HasType))
      plan = entry->plan;
  }
  readers_.fetch_sub(1);
  if (plan) recent_finds_.store(recent_finds_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return plan;
}

void PlanCache::Publish(Evicted& evicted) {
  constexpr int kTries = 100;  // a reader leaves after some nanoseconds, unless it is suspended
  recent_.store(entries_.empty() ? nullptr : &entries_.front());
  if (left_.empty()) return;
  for (int i = 0; readers_.load() != 0; ++i) {
    if (i == kTries) return;
    std::this_thread::yield();
  }
  for (Entry& entry : left_) evicted.plans_.push_back(std::move(entry.plan));
  left_.clear();
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
  Publish(evicted);
  return entries_.front().plan;
}

void PlanCache::Add(std::span<const InputType> inputs, std::shared_ptr<const Plan> plan, Evicted& evicted,
                    std::span<const IoPlace> outputs) {
  const size_t hash = HashOf(inputs, outputs);
  ++made_;
  if (auto known = Locate(inputs, outputs, hash); known != entries_.end()) {
    Evict(known);
    evicted_.erase(hash);
  } else if (evicted_.count(hash)) {
    ++made_again_;
  }
  Count(*plan, 1);
  entries_.push_front({{inputs.begin(), inputs.end()}, {outputs.begin(), outputs.end()}, hash, std::move(plan)});
  by_hash_.emplace(hash, entries_.begin());
  Trim(evicted);
  Publish(evicted);
}

bool PlanCache::EvictOldest(Evicted& evicted) {
  for (auto at = entries_.end(); at != entries_.begin();) {
    --at;
    if (ConstantBytes(*at->plan) == 0 || at->plan.use_count() > 1) continue;
    Evict(at);
    Publish(evicted);
    return true;
  }
  return false;
}

void PlanCache::Evict(Entries::iterator entry) {
  if (evicted_.size() >= kMaxEvicted) evicted_.clear();
  evicted_.insert(entry->hash);
  auto [first, last] = by_hash_.equal_range(entry->hash);
  by_hash_.erase(std::find_if(first, last, [&](const auto& known) { return known.second == entry; }));
  Count(*entry->plan, -1);
  left_.splice(left_.end(), entries_, entry);
}

int64_t PlanCache::IdleBytes() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += mge::IdleBytes(*entry.plan);
  return bytes;
}

// Releases idle memory before it evicts plans, since such memory is quickly allocated again. Both in least recently used
// order.
void PlanCache::Trim(Evicted& evicted) {
  while (entries_.size() > static_cast<size_t>(limits_.plans)) {
    Evict(std::prev(entries_.end()));
  }
  if (entries_.size() < 2) return;
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
  while (excess() && entries_.size() > 1) Evict(std::prev(entries_.end()));
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
