// SPDX-License-Identifier: Apache-2.0
// The plan cache: the plans of a program, one for each signature of inputs, limited in number and bytes.
//
// A plan takes long to create, so a program keeps its plans. A model that is called with many shapes would otherwise keep
// the constants and arenas of all of them. Algorithm: least recently used. If there are too many plans, the cache evicts
// some. If the bytes exceed the limit, it first releases the memory that plans keep for their next runs, since such memory
// is quickly allocated again. If that is not enough, it evicts whole plans. Each step begins with the least recently used
// plan. The limits never evict the most recently used plan. Constants that several plans share are counted once.
//
// Most runs have the inputs of the run before, so FindRecent() finds the most recently used plan without a lock: a reader
// announces itself in a counter, reads the pointer to the entry, copies the reference to the plan, and leaves. Entries that
// left the cache are destroyed when the counter is 0. A reader that announces itself later sees the new pointer, since all
// these operations have one total order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/tensor.h"
#include "core/plan/plan.h"

namespace mge {

// The type and the place of one input. A signature is a list of them, with the places of the outputs.
struct InputType {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;
  Shape shape;
  IoPlace place = {};
  bool operator==(const InputType&) const = default;
};
// Returns the type of a value, in plain host memory. A sequence has the element type of its first tensor and no shape.
InputType TypeOfValue(const HostValue& value);

// The limits of a plan cache.
struct PlanCacheLimits {
  int64_t plans = INT64_MAX;
  // Bytes held beside those of the most recently used plan: packed and uploaded constants, memory kept for the next run, and
  // kStepBytes per step.
  int64_t bytes = INT64_MAX;
};

// Not thread-safe, except FindRecent(). The caller of other functions holds a lock, and releases it before the Evicted
// object is destroyed.
class PlanCache {
 public:
  // The estimated bytes of a step in a plan: its kernel, arguments and texts.
  static constexpr int64_t kStepBytes = 4096;

  // Plans that left the cache, and plans whose memory for the next run is to be released. The destructor releases both.
  class Evicted {
   public:
    ~Evicted();

   private:
    friend class PlanCache;
    std::vector<std::shared_ptr<const Plan>> plans_, idle_;
  };

  explicit PlanCache(const PlanCacheLimits& limits) : limits_(limits) {}

  // Returns the most recently used plan if it is for inputs and outputs of these types and places, and it need not run
  // alone; else nullptr. `created` is the place of outputs that are not defined. Allocates nothing. Safe on any thread,
  // without a lock.
  std::shared_ptr<const Plan> FindRecent(std::span<const HostValue> inputs, std::span<const HostValue> outputs = {},
                                         const IoPlace& created = {}) const;
  // Returns the plan for these inputs and makes it the most recently used one. Returns nullptr if there is none. `outputs`
  // are the places of the outputs; empty: plain host memory.
  std::shared_ptr<const Plan> Find(std::span<const InputType> inputs, Evicted& evicted,
                                   std::span<const IoPlace> outputs = {});
  // Adds the plan of a signature. Evicts the one that it had.
  void Add(std::span<const InputType> inputs, std::shared_ptr<const Plan> plan, Evicted& evicted,
           std::span<const IoPlace> outputs = {});
  // Evicts the least recently used plan that holds packed or uploaded constants and has no other user. Returns false if
  // there is none.
  bool EvictOldest(Evicted& evicted);

  int64_t IdleBytes() const;  // bytes that all plans keep for their next runs
  std::shared_ptr<const Plan> recent() const { return entries_.empty() ? nullptr : entries_.front().plan; }
  // Returns all plans, the most recently used one first.
  std::vector<std::shared_ptr<const Plan>> plans() const {
    std::vector<std::shared_ptr<const Plan>> out;
    for (const Entry& entry : entries_) out.push_back(entry.plan);
    return out;
  }
  // Returns the number of plans that were added.
  int64_t made() const { return made_; }
  // Returns how many of them had been evicted before.
  int64_t made_again() const { return made_again_; }
  size_t size() const { return entries_.size(); }
  // Returns how often FindRecent() returned a plan. Calls at the same time may be counted once.
  int64_t recent_finds() const { return recent_finds_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::vector<InputType> signature;
    std::vector<IoPlace> outputs;
    size_t hash;
    std::shared_ptr<const Plan> plan;
    bool Fits(std::span<const InputType> inputs, std::span<const IoPlace> places) const {
      return std::equal(signature.begin(), signature.end(), inputs.begin(), inputs.end()) &&
             std::equal(outputs.begin(), outputs.end(), places.begin(), places.end());
    }
    bool FitsOutputs(std::span<const HostValue> given, const IoPlace& created) const;
  };
  using Entries = std::list<Entry>;

  Entries::iterator Locate(std::span<const InputType> inputs, std::span<const IoPlace> outputs, size_t hash);
  void Evict(Entries::iterator entry);
  // Lets FindRecent() see the first entry. Destroys entries that left the cache, if no reader can see them.
  void Publish(Evicted& evicted);
  void Trim(Evicted& evicted);
  // Adds the constants and steps of a plan to the counts (by = 1), or removes them (by = -1).
  void Count(const Plan& plan, int by);

  const PlanCacheLimits limits_;
  Entries entries_;                            // most recent first
  Entries left_;                               // entries that left the cache, which a reader may still see
  std::atomic<const Entry*> recent_{nullptr};  // the first entry; nullptr: none
  mutable std::atomic<int64_t> readers_{0}, recent_finds_{0};
  std::unordered_multimap<size_t, Entries::iterator> by_hash_;
  struct Held {
    int64_t plans = 0, bytes = 0;
  };
  std::unordered_map<const void*, Held> constants_;  // packed and uploaded constants, by address
  int64_t held_bytes_ = 0;                           // bytes of these constants and of all steps
  std::unordered_set<size_t> evicted_;               // hashes of signatures whose plans were evicted
  int64_t made_ = 0, made_again_ = 0;
};

}  // namespace mge
