// SPDX-License-Identifier: Apache-2.0
// The plans of a program that are kept, one for each signature of inputs, within a number and a size.
#pragma once

#include <algorithm>
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

struct InputType {
  ValueKind kind = ValueKind::kTensor;
  DType dtype = DType::kUndefined;
  Shape shape;
  bool operator==(const InputType&) const = default;
};
InputType TypeOfValue(const HostValue& value);

struct PlanCacheLimits {
  int64_t plans = 0;  // 0: any number
  // Bytes that are held beside those of the plan that was used last: constants of which it has none, memory kept for the
  // next run, and kStepBytes for each step. 0: any number.
  int64_t bytes = 0;
};

// Not thread-safe. The caller holds a lock, and releases it before the Evicted object is destroyed.
class PlanCache {
 public:
  // An estimate of what a step takes of a plan itself: its kernel, arguments and texts.
  static constexpr int64_t kStepBytes = 4096;

  // Plans that left the cache, and plans whose memory for the next run is given up. The destructor frees both.
  class Evicted {
   public:
    ~Evicted();

   private:
    friend class PlanCache;
    std::vector<std::shared_ptr<const Plan>> plans_, idle_;
  };

  explicit PlanCache(const PlanCacheLimits& limits) : limits_(limits) {}

  // Returns the plan for these inputs and makes it the most recent one; nullptr if there is none.
  std::shared_ptr<const Plan> Find(std::span<const InputType> inputs, Evicted& evicted);
  // Adds a plan for inputs for which Find() has none.
  void Add(std::span<const InputType> inputs, std::shared_ptr<const Plan> plan, Evicted& evicted);
  // Evicts the plan used longest ago of those that hold constants and that nobody uses. False if there is none.
  bool EvictOldest(Evicted& evicted);

  int64_t IdleBytes() const;  // of all plans
  std::shared_ptr<const Plan> recent() const { return entries_.empty() ? nullptr : entries_.front().plan; }
  // All of them, the most recent one first.
  std::vector<std::shared_ptr<const Plan>> plans() const {
    std::vector<std::shared_ptr<const Plan>> out;
    for (const Entry& entry : entries_) out.push_back(entry.plan);
    return out;
  }
  // The number of plans that were added, and of those among them that had been evicted before.
  int64_t made() const { return made_; }
  int64_t made_again() const { return made_again_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::vector<InputType> signature;
    size_t hash;
    std::shared_ptr<const Plan> plan;
    bool Fits(std::span<const InputType> inputs) const {
      return std::equal(signature.begin(), signature.end(), inputs.begin(), inputs.end());
    }
  };
  using Entries = std::list<Entry>;

  Entries::iterator Locate(std::span<const InputType> inputs, size_t hash);
  void Evict(Entries::iterator entry, Evicted& evicted);
  void Trim(Evicted& evicted);
  // Counts the constants and steps of a plan in (1) or out (-1).
  void Count(const Plan& plan, int by);

  const PlanCacheLimits limits_;
  Entries entries_;  // most recent first
  std::unordered_multimap<size_t, Entries::iterator> by_hash_;
  struct Held {
    int64_t plans = 0, bytes = 0;
  };
  std::unordered_map<const void*, Held> constants_;  // packed and uploaded ones, by place
  int64_t held_bytes_ = 0;                           // of all of them, and of all steps
  std::unordered_set<size_t> evicted_;               // hashes of signatures
  int64_t made_ = 0, made_again_ = 0;
};

}  // namespace mge
