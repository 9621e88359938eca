// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan_cache.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// An attachment that stands for memory kept for the next run of a plan.
class Kept : public PlanAttachment {
 public:
  explicit Kept(int64_t bytes) : bytes_(bytes) {}
  bool Close() override { return true; }
  int64_t IdleBytes() const override { return bytes_; }
  void GiveUpIdle() override { bytes_ = 0; }

 private:
  int64_t bytes_;
};

Tensor Constant(int64_t bytes) { return *Tensor::Create(DType::kU8, {bytes}); }

// Returns a plan with these packed constants that keeps `kept` bytes of memory for its next run.
std::shared_ptr<const Plan> PlanWith(const std::vector<Tensor>& packed, int64_t kept = 0) {
  auto plan = std::make_shared<Plan>();
  for (const Tensor& t : packed) {
    plan->constants.push_back({plan->base_count++, t, true});
    plan->report.packed_bytes += t.bytes();
  }
  plan->attachment = std::make_unique<Kept>(kept);
  return plan;
}

std::vector<InputType> Width(int64_t n) { return {{ValueKind::kTensor, DType::kF32, {1, n}}}; }

class Cache {
 public:
  explicit Cache(const PlanCacheLimits& limits) : cache_(limits) {}
  void Add(int64_t width, std::shared_ptr<const Plan> plan) {
    PlanCache::Evicted evicted;
    EXPECT_EQ(cache_.Find(Width(width), evicted), nullptr);
    cache_.Add(Width(width), std::move(plan), evicted);
  }
  std::shared_ptr<const Plan> Find(int64_t width) {
    PlanCache::Evicted evicted;
    return cache_.Find(Width(width), evicted);
  }
  // Returns the keys from 0 to 9 that the cache holds, in increasing order. The last one is then the most recently used.
  std::vector<int64_t> Widths() {
    std::vector<int64_t> out;
    for (int64_t w = 0; w < 10; ++w) {
      if (Find(w)) out.push_back(w);
    }
    return out;
  }
  const PlanCache& operator*() const { return cache_; }

 private:
  PlanCache cache_;
};

int64_t KeptBy(const std::shared_ptr<const Plan>& plan) { return plan->attachment->IdleBytes(); }

TEST(PlanCache, HasNoLimitUnlessOneIsSet) {
  Cache cache({});
  for (int64_t w = 0; w < 1000; ++w) cache.Add(w, PlanWith({}, 1 << 30));
  EXPECT_EQ((*cache).size(), 1000u);
  for (int64_t w = 0; w < 1000; ++w) EXPECT_NE(cache.Find(w), nullptr);
}

TEST(PlanCache, DistinguishesSignaturesByKindTypeAndShape) {
  PlanCache cache({});
  PlanCache::Evicted evicted;
  cache.Add(Width(4), PlanWith({}), evicted);
  EXPECT_NE(cache.Find(Width(4), evicted), nullptr);
  EXPECT_EQ(cache.Find({}, evicted), nullptr);
  for (const InputType& other :
       {InputType{ValueKind::kTensor, DType::kF64, {1, 4}}, InputType{ValueKind::kTensor, DType::kF32, {4, 1}},
        InputType{ValueKind::kTensor, DType::kF32, {1, 4, 1}}, InputType{ValueKind::kSequence, DType::kF32, {1, 4}}}) {
    EXPECT_EQ(cache.Find(std::span<const InputType>(&other, 1), evicted), nullptr);
  }
}

TEST(PlanCache, DistinguishesSignaturesByThePlacesOfInputsAndOutputs) {
  PlanCache cache({});
  PlanCache::Evicted evicted;
  char devices[2];  // the cache uses only their addresses
  Device *first = reinterpret_cast<Device*>(&devices[0]), *second = reinterpret_cast<Device*>(&devices[1]);
  std::vector<InputType> types = Width(1);
  std::vector<std::shared_ptr<const Plan>> plans;
  const std::vector<IoPlace> places = {{}, {first, false}, {first, true}, {second, false}};
  for (const IoPlace& place : places) {
    types[0].place = place;
    EXPECT_EQ(cache.Find(types, evicted), nullptr);
    cache.Add(types, plans.emplace_back(PlanWith({})), evicted);
    EXPECT_EQ(cache.Find(types, evicted, std::span(&places[1], 1)), nullptr);
    cache.Add(types, PlanWith({}), evicted, std::span(&places[1], 1));
  }
  for (size_t i = 0; i < places.size(); ++i) {
    types[0].place = places[i];
    EXPECT_EQ(cache.Find(types, evicted), plans[i]);
  }
}

TEST(PlanCache, EvictsTheLeastRecentlyUsedPlanBeyondItsMaximumNumber) {
  Cache cache({.plans = 2});
  cache.Add(1, PlanWith({}));
  cache.Add(2, PlanWith({}));
  EXPECT_NE(cache.Find(1), nullptr);
  cache.Add(3, PlanWith({}));
  EXPECT_THAT(cache.Widths(), ElementsAre(1, 3));
}

TEST(PlanCache, ReleasesMemoryOfRunsBeforeItEvictsPlans) {
  Cache cache({.bytes = 100});
  auto first = PlanWith({}, 60), second = PlanWith({}, 60), third = PlanWith({}, 60);
  cache.Add(1, first);
  cache.Add(2, second);
  EXPECT_EQ(KeptBy(first), 60);  // the plan used last does not count
  cache.Add(3, third);
  EXPECT_EQ(KeptBy(first), 0);
  EXPECT_EQ(KeptBy(second), 60);
  EXPECT_EQ(KeptBy(third), 60);
  EXPECT_THAT(cache.Widths(), ElementsAre(1, 2, 3));
}

TEST(PlanCache, CountsAConstantThatPlansShareOnce) {
  Cache cache({.bytes = 100});
  const Tensor shared = Constant(1000);
  for (int64_t w = 0; w < 5; ++w) cache.Add(w, PlanWith({shared}));
  EXPECT_EQ((*cache).size(), 5u);  // the plan used last owns the shared constant
}

TEST(PlanCache, EvictsPlansWhoseUnsharedConstantsExceedTheLimit) {
  Cache cache({.bytes = 100});
  const Tensor shared = Constant(1000);
  cache.Add(1, PlanWith({shared, Constant(60)}));
  cache.Add(2, PlanWith({shared, Constant(60)}));
  cache.Add(3, PlanWith({shared, Constant(60)}));
  EXPECT_THAT(cache.Widths(), ElementsAre(2, 3));
  cache.Add(4, PlanWith({}));  // this plan shares no constant, so both others exceed the limit
  EXPECT_THAT(cache.Widths(), ElementsAre(4));
}

TEST(PlanCache, EvictsPlansOfTooManySteps) {
  auto plan_of = [](size_t steps) {
    auto plan = std::make_shared<Plan>();
    plan->own_steps = steps;
    return plan;
  };
  Cache cache({.bytes = 10 * PlanCache::kStepBytes});
  for (int64_t w = 0; w < 6; ++w) cache.Add(w, plan_of(4));
  EXPECT_THAT(cache.Widths(), ElementsAre(3, 4, 5));  // the plan used last and two others
  cache.Add(6, plan_of(100));
  EXPECT_EQ((*cache).size(), 3u);               // the steps of the plan used last do not count
  EXPECT_THAT(cache.Widths(), ElementsAre(4));  // the steps of other plans count
}

TEST(PlanCache, NeverEvictsThePlanJustReturned) {
  Cache cache({.plans = 1, .bytes = 1});
  auto plan = PlanWith({Constant(1000)}, 1000);
  cache.Add(1, plan);
  EXPECT_EQ(cache.Find(1), plan);
  EXPECT_EQ(KeptBy(plan), 1000);
}

TEST(PlanCache, CountsPlansThatAreMadeAgain) {
  Cache cache({.plans = 1});
  for (int round = 0; round < 3; ++round) {
    cache.Add(1, PlanWith({}));
    cache.Add(2, PlanWith({}));
  }
  EXPECT_EQ((*cache).made(), 6);
  EXPECT_EQ((*cache).made_again(), 4);
}

TEST(PlanCache, ReleasesTheLeastRecentlyUsedIdlePlanWithConstants) {
  PlanCache cache({});
  PlanCache::Evicted evicted;
  cache.Add(Width(1), PlanWith({}), evicted);
  cache.Add(Width(2), PlanWith({Constant(8)}), evicted);
  auto used = PlanWith({Constant(8)});
  cache.Add(Width(3), used, evicted);
  EXPECT_TRUE(cache.EvictOldest(evicted));
  EXPECT_FALSE(cache.EvictOldest(evicted));
  EXPECT_NE(cache.Find(Width(1), evicted), nullptr);
  EXPECT_EQ(cache.Find(Width(2), evicted), nullptr);
  EXPECT_NE(cache.Find(Width(3), evicted), nullptr);
}

HostValue Value(int64_t width) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {1, width});
  return v;
}

TEST(PlanCache, FindsTheMostRecentlyUsedPlanWithoutALock) {
  PlanCache cache({});
  PlanCache::Evicted evicted;
  const std::vector<HostValue> one = {Value(1)}, two = {Value(2)};
  EXPECT_EQ(cache.FindRecent(one), nullptr);
  auto first = PlanWith({}), second = PlanWith({Constant(8)});
  cache.Add(Width(1), first, evicted);
  EXPECT_EQ(cache.FindRecent(one), first);
  EXPECT_EQ(cache.FindRecent({}), nullptr);
  cache.Add(Width(2), second, evicted);
  EXPECT_EQ(cache.FindRecent(one), nullptr);
  EXPECT_EQ(cache.FindRecent(two), second);
  EXPECT_EQ(cache.Find(Width(1), evicted), first);
  EXPECT_EQ(cache.FindRecent(one), first);
  EXPECT_EQ(cache.recent_finds(), 3);
  second.reset();
  EXPECT_TRUE(cache.EvictOldest(evicted));
  EXPECT_EQ(cache.FindRecent(two), nullptr);
}

TEST(PlanCache, FindsThatPlanWhileAnotherThreadEvictsPlans) {
  PlanCache cache({.plans = 2});
  std::vector<std::weak_ptr<const Plan>> made;
  std::atomic<bool> over{false};
  std::atomic<int64_t> found{0};
  std::vector<std::thread> readers;
  for (int64_t r = 0; r < 3; ++r) {
    readers.emplace_back([&, r] {
      const std::vector<HostValue> in = {Value(r)};
      while (!over) {
        if (auto plan = cache.FindRecent(in)) found += static_cast<int64_t>(plan->constants.size());
      }
    });
  }
  for (int64_t i = 0; i < 2000 || found == 0; ++i) {
    PlanCache::Evicted evicted;
    if (cache.Find(Width(i % 3), evicted)) continue;
    auto plan = PlanWith({Constant(8)});
    made.push_back(plan);
    cache.Add(Width(i % 3), std::move(plan), evicted);
  }
  over = true;
  for (std::thread& r : readers) r.join();
  {
    PlanCache::Evicted evicted;
    cache.Add(Width(9), PlanWith({}), evicted);
  }
  EXPECT_EQ(std::count_if(made.begin(), made.end(), [](const auto& p) { return !p.expired(); }), 1);
}

}  // namespace
}  // namespace mge
