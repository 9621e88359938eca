// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/memory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "core/base/errors.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A driver of a device with `total` bytes that records its calls.
class Driver : public SlabProvider {
 public:
  explicit Driver(uint64_t total = uint64_t{1} << 40) : total_(total) {}
  ~Driver() override { EXPECT_EQ(held_, 0u) << "slabs were kept"; }

  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    EXPECT_LE(bytes, largest);
    if (bytes > total_ - held_) return Fail(errors::kOutOfMemory, "the device is full");
    held_ += bytes;
    acquired.push_back(bytes);
    // Slabs above 64 MiB get an address without memory; the tests do not access them.
    void* address =
        bytes <= (64u << 20) ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : reinterpret_cast<void*>(fake_ += 64);
    slabs_.push_back({sizeof(mge_slab), 0, address, address, nullptr, bytes});
    return slabs_.back();
  }
  void Release(const mge_slab& slab) override {
    std::lock_guard lock(mutex_);
    held_ -= slab.bytes;
    released.push_back(slab.bytes);
    if (slab.bytes <= (64u << 20)) std::free(slab.address);
    std::erase_if(slabs_, [&](const mge_slab& s) { return s.address == slab.address; });
  }
  bool Limited() const override { return limited; }
  uint64_t Largest() const override { return largest; }
  MemoryInfo Info() const override { return {total_ - held_, total_}; }
  bool Reached(const mge_fence_point& point, bool wait) const override {
    if (!point.fence) return true;
    if (wait) ++waits;
    return wait || point.value <= reached;
  }

  // Checks whether the whole reservation lies in one slab.
  bool Covers(const mge_reservation& r) {
    std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(r.address);
    return std::any_of(slabs_.begin(), slabs_.end(), [&](const mge_slab& s) {
      const auto slab = reinterpret_cast<uintptr_t>(s.address);
      return slab <= begin && begin + r.bytes <= slab + s.bytes;
    });
  }

  std::vector<uint64_t> acquired, released;
  bool limited = false;
  uint64_t largest = UINT64_MAX;  // largest allowed size of a slab in bytes
  uint64_t reached = 0;           // value that all fences have reached
  mutable int waits = 0;

 private:
  std::mutex mutex_;
  std::vector<mge_slab> slabs_;
  uint64_t total_, held_ = 0;
  uintptr_t fake_ = uintptr_t{1} << 46;
};

mge_fence_point At(uint64_t value, uintptr_t fence = 1) {
  return {sizeof(mge_fence_point), 0, reinterpret_cast<mge_fence*>(fence), value};
}

std::unique_ptr<Pool> Make(std::string_view name, Driver& driver, const PoolOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Pool>> pool = MakePool(name, options, &driver);
  EXPECT_TRUE(pool.ok()) << FormatError(pool.status());
  return *std::move(pool);
}

mge_reservation Take(Pool& pool, uint64_t bytes, const mge_fence_point* after = nullptr) {
  absl::StatusOr<mge_reservation> r = pool.Acquire(bytes, kDefaultAlignment, after);
  EXPECT_TRUE(r.ok()) << FormatError(r.status());
  return *r;
}

void KeepFree(Pool& pool, uint64_t bytes) {
  mge_reserve_decision decision = {};
  decision.struct_size = sizeof(decision);
  decision.keep_free = bytes;
  pool.SetPolicy(decision);
}

// ---------------------------------------------------------------- sizes

TEST(Pools, RespectTheLargestAllocationOfTheDevice) {
  for (std::string_view name : PoolNames()) {
    Driver driver;
    driver.largest = 3'000'000;
    auto pool = Make(name, driver);
    KeepFree(*pool, 0);
    for (uint64_t bytes : {64u, 1'000'000u, 2'500'000u, 3'000'000u}) {
      mge_reservation r = Take(*pool, bytes);
      EXPECT_GE(r.bytes, bytes) << name;
      pool->Release(r);
      EXPECT_LE(pool->Footprint(std::array<PoolRequest, 1>{{{bytes}}}), std::max<uint64_t>(driver.largest, 4096)) << name;
    }
    pool->Trim(MGE_TRIM_ALL);
  }
}

TEST(NaivePool, RoundsAsDocumented) {
  const std::pair<uint64_t, uint64_t> rows[] = {{1, 4096},          {5000, 5000},       {2097152, 2097152},
                                                {2097153, 4194304}, {5 << 20, 6 << 20}, {100000000, 100663296}};
  for (auto [bytes, size] : rows) EXPECT_EQ(NaiveRound(bytes, {}), size) << bytes;
  EXPECT_EQ(NaiveRound(2097153, {.large_round_bytes = 1}), 2097153u);
}

TEST(RoundPool, RoundsAsDocumented) {
  const uint64_t m = 1 << 20, g = 1 << 24;
  const std::pair<uint64_t, uint64_t> rows[] = {{1, 4096},      {4097, 8192},       {m + 1, 2 * m},
                                                {g, g},         {g + 1, 2 * g},     {33 * m, 3 * g},
                                                {2 * g, 2 * g}, {2 * g + 1, 3 * g}, {100000000, 100663296}};
  for (auto [bytes, size] : rows) EXPECT_EQ(LogRound(bytes, {}), size) << bytes;
  EXPECT_EQ(LogRound(3 * m + 1, {.linear_cutoff = 20}), 4 * m);
  EXPECT_EQ(LogRound(3 * m + 1, {}), 4 * m);
  EXPECT_EQ(LogRound(5 * m, {.linear_cutoff = 20}), 5 * m);
  EXPECT_EQ(LogRound(5 * m, {}), 8 * m);
}

TEST(Pools, NumbersOutOfRangeAreRefusedWithTheLimits) {
  Driver driver;
  auto what = [&](std::string_view name, PoolOptions options) {
    absl::Status status = MakePool(name, options, &driver).status();
    EXPECT_EQ(ErrorId(status), errors::kBadSetting.id);
    return PartsOf(status).what;
  };
  EXPECT_THAT(what("round", {.linear_cutoff = 19}), HasSubstr("20..34"));
  EXPECT_THAT(what("round", {.linear_cutoff = 35}), HasSubstr("20..34"));
  EXPECT_THAT(what("round", {.page_bytes = 5000}), HasSubstr("power of two"));
  EXPECT_THAT(what("naive", {.page_bytes = 31}), HasSubstr("32"));
  EXPECT_THAT(what("naive", {.large_round_bytes = 0}), HasSubstr("above 0"));
  EXPECT_THAT(what("Round", {}), HasSubstr("Did you mean \"round\"?"));
}

// ---------------------------------------------------------------- calls of the driver

TEST(Pools, DifferInTheirCallsOfTheDriver) {
  auto run = [](std::string_view name) {
    Driver driver;
    std::unique_ptr<Pool> pool = Make(name, driver);
    pool->Release(Take(*pool, 5000));
    pool->Release(Take(*pool, 6000));
    return std::pair(driver.acquired, driver.released.size());
  };
  EXPECT_EQ(run("naive"), std::pair(std::vector<uint64_t>({5000, 6000}), size_t{0}));
  EXPECT_EQ(run("round"), std::pair(std::vector<uint64_t>({8192}), size_t{0}));
  EXPECT_EQ(run("unpooled"), std::pair(std::vector<uint64_t>({5000, 6000}), size_t{2}));
  EXPECT_EQ(run("growing"), std::pair(std::vector<uint64_t>({1 << 20}), size_t{0}));
}

class AnyPool : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Pools, AnyPool, testing::Values("naive", "round", "unpooled", "growing"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(AnyPool, TakesNoMemoryForZeroBytes) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  mge_reservation r = Take(*pool, 0);
  EXPECT_EQ(r.address, nullptr);
  pool->Release(r);
  EXPECT_THAT(driver.acquired, IsEmpty());
}

TEST_P(AnyPool, KeepsAlignment) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  std::vector<mge_reservation> all;
  for (uint64_t alignment : {1, 64, 128, 4096, 65536}) {
    for (int i = 0; i < 3; ++i) {
      all.push_back(*pool->Acquire(100, alignment));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(all.back().address) % std::max<uint64_t>(alignment, 64), 0u);
      EXPECT_TRUE(driver.Covers(all.back())) << alignment;
    }
  }
  for (const mge_reservation& r : all) pool->Release(r);
  EXPECT_EQ(pool->Stats().in_use, 0u);
}

TEST_P(AnyPool, PredictsTheMemoryOfSeveralRequests) {
  const PoolRequest requests[] = {{93184, 256}, {256, 256}, {2'500'000, 256}, {700'001}, {65536, 4096}, {8192}};
  Driver unlimited;
  const uint64_t needed = Make(GetParam(), unlimited)->Footprint(requests);
  for (uint64_t missing : {0, 1}) {
    Driver driver(needed - missing);
    driver.limited = true;
    std::unique_ptr<Pool> pool = Make(GetParam(), driver);
    std::vector<mge_reservation> all;
    for (const PoolRequest& r : requests) {
      if (auto taken = pool->Acquire(r.bytes, r.alignment); taken.ok()) all.push_back(*taken);
    }
    EXPECT_EQ(all.size(), std::size(requests) - missing);
    for (const mge_reservation& r : all) pool->Release(r);
  }
}

TEST_P(AnyPool, CountsItsMemory) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  mge_reservation a = Take(*pool, 8192), b = Take(*pool, 8192);
  EXPECT_EQ(pool->Stats().in_use, 16384u);
  pool->Release(a);
  EXPECT_EQ(pool->Stats().in_use, 8192u);
  EXPECT_EQ(pool->Stats().peak_in_use, 16384u);
  EXPECT_EQ(pool->Stats().slab_acquires, driver.acquired.size());
  EXPECT_EQ(pool->Stats().slab_releases, driver.released.size());
  pool->Release(b);
  pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(pool->Stats().committed, 0u);
  EXPECT_EQ(pool->name(), GetParam());
}

TEST_P(AnyPool, ReleasesItsCacheBeforeARequestFails) {
  Driver driver(1 << 20);
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  std::vector<mge_reservation> small;
  for (int i = 0; i < 4; ++i) small.push_back(Take(*pool, 100000));
  for (const mge_reservation& r : small) pool->Release(r);
  pool->Release(Take(*pool, 1 << 20));
  EXPECT_EQ(ErrorId(pool->Acquire((1 << 20) + 1).status()), errors::kOutOfMemory.id);
  pool->Release(Take(*pool, 100));  // the pool still works
}

TEST_P(AnyPool, DoesNotReuseMemoryThatAQueueStillUses) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  mge_reservation a = Take(*pool, 8192);
  mge_fence_point busy = At(5);
  pool->Release(a, &busy);
  mge_reservation b = Take(*pool, 8192);
  EXPECT_NE(b.address, a.address);
  pool->Trim(MGE_TRIM_ALL);
  EXPECT_THAT(driver.released, IsEmpty());
  driver.reached = 5;
  pool->Release(b);
  pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(pool->Stats().committed, 0u);
}

TEST_P(AnyPool, WaitsForTheQueueBeforeItFails) {
  Driver driver(1 << 20);
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  mge_fence_point busy = At(5);
  pool->Release(Take(*pool, 1 << 20), &busy);
  pool->Release(Take(*pool, 1 << 20));
  EXPECT_GE(driver.waits, 1);
}

TEST_P(AnyPool, IsThreadSafe) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  std::atomic<int> broken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<std::pair<mge_reservation, uint64_t>> live;
      for (int i = 0; i < 400; ++i) {
        if (live.size() > 8 || (!live.empty() && random() % 2)) {
          auto [r, bytes] = live.back();
          live.pop_back();
          auto* p = static_cast<unsigned char*>(r.address);
          if (p[0] != t || p[bytes - 1] != t) ++broken;
          pool->Release(r);
        } else {
          uint64_t bytes = 1 + random() % 20000;
          mge_reservation r = Take(*pool, bytes);
          std::memset(r.address, t, bytes);
          live.emplace_back(r, bytes);
        }
      }
      for (auto& [r, bytes] : live) pool->Release(r);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(pool->Stats().in_use, 0u);
}

// ---------------------------------------------------------------- caching pools

TEST(NaivePool, ReusesTheLastReleasedBlockFirst) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("naive", driver);
  mge_reservation a = Take(*pool, 5000), b = Take(*pool, 5000);
  pool->Release(a);
  pool->Release(b);
  EXPECT_EQ(Take(*pool, 5000).address, b.address);
  EXPECT_EQ(Take(*pool, 5000).address, a.address);
  EXPECT_EQ(pool->Stats().hits, 2u);
  pool->Release(a);
  pool->Release(b);
}

TEST(NaivePool, TheReserveTriggersTheReleaseOfTheCache) {
  // The device has 1000 units. The pool caches 500; a request asks for 350.
  constexpr uint64_t kUnit = 10000;
  auto releases = [&](uint64_t percent) {
    Driver driver(1000 * kUnit);
    std::unique_ptr<Pool> pool = Make("naive", driver, {.page_bytes = 32, .large_round_bytes = 1});
    KeepFree(*pool, 1000 * kUnit * percent / 100);
    pool->Release(Take(*pool, 500 * kUnit));
    pool->Release(Take(*pool, 350 * kUnit));
    return driver.released.size();
  };
  EXPECT_EQ(releases(20), 1u);
  EXPECT_EQ(releases(5), 0u);
}

TEST(NaivePool, OneFenceInOrderReusesWithoutWaiting) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("naive", driver);
  mge_reservation a = Take(*pool, 5000);
  mge_fence_point last = At(5), later = At(6), earlier = At(4), other = At(9, 2);
  pool->Release(a, &last);
  mge_reservation b = Take(*pool, 5000, &earlier), c = Take(*pool, 5000, &other);
  EXPECT_NE(b.address, a.address);
  EXPECT_NE(c.address, a.address);
  EXPECT_EQ(Take(*pool, 5000, &later).address, a.address);
  for (const mge_reservation& r : {a, b, c}) pool->Release(r);
}

TEST(Pools, WithoutGrowthUseOnlyTheCache) {
  for (const char* name : {"naive", "growing"}) {
    Driver driver;
    std::unique_ptr<Pool> pool = Make(name, driver);
    EXPECT_EQ(ErrorId(pool->Acquire(5000, 64, nullptr, MGE_POOL_NO_GROWTH).status()), errors::kGrowthRequired.id);
    pool->Release(Take(*pool, 5000));
    absl::StatusOr<mge_reservation> r = pool->Acquire(5000, 64, nullptr, MGE_POOL_NO_GROWTH);
    ASSERT_TRUE(r.ok());
    pool->Release(*r);
  }
}

TEST(Pools, TrimmingTheExcessKeepsThePolicysRetainedBytes) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("naive", driver);
  mge_reserve_decision decision = {};
  decision.struct_size = sizeof(decision);
  decision.retain = 10000;
  pool->SetPolicy(decision);
  std::vector<mge_reservation> all = {Take(*pool, 5000), Take(*pool, 50000), Take(*pool, 4096)};
  for (const mge_reservation& r : all) pool->Release(r);
  pool->Trim(MGE_TRIM_EXCESS);
  EXPECT_THAT(driver.released, ElementsAre(50000));
  EXPECT_EQ(pool->Stats().committed, 9096u);
}

TEST(Pools, ACallerThatMayWaitGetsABlockInUseWithItsFence) {
  for (const char* name : {"naive", "round", "growing"}) {
    Driver driver;
    std::unique_ptr<Pool> pool = Make(name, driver);
    mge_reservation a = Take(*pool, 8192);
    mge_fence_point last = At(5), earlier = At(4), later = At(6);
    pool->Release(a, &last);
    const uint32_t flags = MGE_POOL_MAY_WAIT | MGE_POOL_NO_GROWTH;
    if (pool->name() != "growing") {  // this pool holds more than was requested
      EXPECT_EQ(ErrorId(pool->Acquire(8192, 64, nullptr, MGE_POOL_NO_GROWTH).status()), errors::kGrowthRequired.id) << name;
      mge_reservation b = *pool->Acquire(8192, 64, &earlier, flags);
      EXPECT_EQ(b.address, a.address) << name;
      EXPECT_EQ(b.ready, last.fence) << name;
      EXPECT_EQ(b.ready_value, 5u) << name;
      pool->Release(b, &last);
      b = *pool->Acquire(8192, 64, &later, flags);  // ordered by the fence: nothing to wait for
      EXPECT_EQ(b.address, a.address) << name;
      EXPECT_EQ(b.ready, nullptr) << name;
      pool->Release(b, &last);
    }
    driver.reached = 5;
    mge_reservation c = *pool->Acquire(8192, 64, nullptr, flags);
    EXPECT_EQ(c.ready, nullptr) << name;
    pool->Release(c);
  }
}

TEST(Pools, ReportTheLargestFreeBlockAndTheRefusalsOfTheBudget) {
  for (const char* name : {"naive", "round", "growing"}) {
    Driver driver;
    std::unique_ptr<Pool> pool = Make(name, driver);
    EXPECT_EQ(pool->Stats().largest_free, 0u);
    pool->Release(Take(*pool, 3 << 20));
    EXPECT_EQ(pool->Stats().presence, uint32_t{MGE_POOL_STATS_ALL});
    const uint64_t largest = pool->Stats().largest_free;
    EXPECT_GE(largest, 3u << 20) << name;
    absl::StatusOr<mge_reservation> all = pool->Acquire(largest, 64, nullptr, MGE_POOL_NO_GROWTH);
    ASSERT_TRUE(all.ok()) << name;
    EXPECT_EQ(pool->Stats().largest_free, 0u) << name;
    mge_fence_point last = At(1);
    pool->Release(*all, &last);
    EXPECT_EQ(pool->Stats().largest_free, 0u) << name;  // the block is in use until the fence is reached
    driver.reached = 1;
  }
}

// ---------------------------------------------------------------- growing

TEST(GrowingPool, SplitsABlockThatIsStillInUse) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("growing", driver);
  mge_reservation whole = Take(*pool, 1 << 20);
  mge_fence_point last = At(5);
  pool->Release(whole, &last);
  std::vector<mge_reservation> parts;
  for (uint64_t bytes : {uint64_t{64}, uint64_t{1 << 19}}) {
    parts.push_back(*pool->Acquire(bytes, 64, nullptr, MGE_POOL_MAY_WAIT | MGE_POOL_NO_GROWTH));
    EXPECT_EQ(parts.back().ready, last.fence);
    EXPECT_EQ(parts.back().bytes, bytes);
  }
  EXPECT_EQ(static_cast<char*>(parts[1].address) - static_cast<char*>(parts[0].address), 64);
  for (const mge_reservation& r : parts) pool->Release(r);  // nobody waited for the fence, so the parts are still in use
  EXPECT_EQ(pool->Stats().largest_free, 0u);
  driver.reached = 5;
  EXPECT_EQ(Take(*pool, 1 << 20).address, whole.address);  // the parts were joined
  pool->Release(whole);
}

TEST(GrowingPool, GrowsByTheStepOfThePolicy) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("growing", driver);
  mge_reserve_decision decision = {};
  decision.struct_size = sizeof(decision);
  decision.step = 5 << 20;
  pool->SetPolicy(decision);
  pool->Release(Take(*pool, 1000));
  EXPECT_THAT(driver.acquired, ElementsAre(5 << 20));
}

TEST(GrowingPool, SplitsAndJoinsBlocks) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("growing", driver);
  mge_reservation a = Take(*pool, 1000), b = Take(*pool, 2000), c = Take(*pool, 3000);
  EXPECT_EQ(static_cast<char*>(b.address) - static_cast<char*>(a.address), 1024);
  EXPECT_EQ(driver.acquired.size(), 1u);
  pool->Release(a);
  pool->Release(c);
  pool->Release(b);  // the middle block joins its neighbours
  mge_reservation whole = Take(*pool, 1 << 20);
  EXPECT_EQ(whole.address, a.address);
  EXPECT_EQ(driver.acquired.size(), 1u);
  pool->Release(whole);
}

TEST(GrowingPool, UsesTheSmallestBlockThatFits) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("growing", driver);
  mge_reservation big = Take(*pool, 8192), wall = Take(*pool, 64), small = Take(*pool, 1024), wall2 = Take(*pool, 64);
  pool->Release(big);
  pool->Release(small);
  mge_reservation r = Take(*pool, 1000);
  EXPECT_EQ(r.address, small.address);
  for (const mge_reservation& x : {r, wall, wall2}) pool->Release(x);
}

TEST(GrowingPool, ALargeRequestGetsASlabOfItsSize) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("growing", driver);
  mge_reservation r = Take(*pool, 10 << 20);
  EXPECT_THAT(driver.acquired, ElementsAre(10 << 20));
  pool->Release(r);
}

TEST(GrowingPool, UsesTheLastBytesOfAFullDevice) {
  Driver driver(100000);
  std::unique_ptr<Pool> pool = Make("growing", driver);
  mge_reservation r = Take(*pool, 64000);  // less than the pool's first slab would be
  EXPECT_THAT(driver.acquired, ElementsAre(64000));
  pool->Release(r);
}

TEST(GrowingPool, NeighboursInDifferentSlabsStayApart) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make("growing", driver);
  std::vector<mge_reservation> all;
  for (int i = 0; i < 40; ++i) all.push_back(Take(*pool, 1 << 19));
  for (const mge_reservation& r : all) pool->Release(r);
  pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(pool->Stats().committed, 0u);
  EXPECT_EQ(driver.released.size(), driver.acquired.size());
}

TEST_P(AnyPool, GivesBlocksThatNeverOverlap) {
  Driver driver;
  std::unique_ptr<Pool> pool = Make(GetParam(), driver);
  std::mt19937 random(7);
  std::vector<mge_reservation> live;
  for (int i = 0; i < 5000; ++i) {
    if (live.empty() || random() % 3) {
      live.push_back(*pool->Acquire(1 + random() % 50000, uint64_t{64} << random() % 5));
    } else {
      size_t at = random() % live.size();
      driver.reached = static_cast<uint64_t>(i) / 2;
      mge_fence_point use = At(static_cast<uint64_t>(i));
      pool->Release(live[at], random() % 2 ? &use : nullptr);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (live.size() > 60) {
      pool->Release(live.front());
      live.erase(live.begin());
    }
  }
  std::sort(live.begin(), live.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  for (size_t i = 1; i < live.size(); ++i) {
    EXPECT_LE(static_cast<char*>(live[i - 1].address) + live[i - 1].bytes, live[i].address);
  }
  for (const mge_reservation& r : live) pool->Release(r);
  driver.reached = UINT64_MAX;
  pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(pool->Stats().committed, 0u);
}

// ---------------------------------------------------------------- reserve policies

TEST(ReservePolicy, DecidesAsDocumented) {
  auto decide = [](std::string_view text, uint64_t free_bytes, uint64_t total) {
    mge_plan_summary plan = {};
    plan.memory_free = free_bytes;
    plan.memory_total = total;
    return ReservePolicy::Parse(text)->Decide(plan);
  };
  EXPECT_EQ(decide("percent:5", 500, 1000).keep_free, 50u);
  EXPECT_EQ(decide("percent:100", 0, UINT64_MAX).keep_free, UINT64_MAX);
  EXPECT_EQ(decide("bytes:1000000", 500, 1000).initial, 1000000u);
  EXPECT_EQ(decide("bytes:64MiB", 0, 0).initial, 64u << 20);
  EXPECT_EQ(decide("none", 500, 1000).initial, 0u);
  constexpr uint64_t m = 1 << 20, g = 1 << 30;
  EXPECT_EQ(decide("all", g, 4 * g).initial, g - 225 * m);
  EXPECT_EQ(decide("all", 4 * g, 4 * g).initial, 4 * g - 300 * m);
  EXPECT_EQ(decide("all", 40 * g, 80 * g).initial, 38 * g);
  EXPECT_EQ(decide("all", 100 * m, 4 * g).initial, 0u);
}

TEST(ReservePolicy, OnlyKnownTextsAreAccepted) {
  for (const char* text : {"percent", "percent:", "percent:101", "percent:-1", "percent:5%", "bytes:", "bytes:1X",
                           "bytes:-1", "bytes:99999999999T", "everything", "ALL"}) {
    EXPECT_EQ(ErrorId(ReservePolicy::Parse(text).status()), errors::kBadSetting.id) << text;
  }
  for (const char* text : {"none", "all", "percent:5", "bytes:64"}) EXPECT_EQ(ReservePolicy::Parse(text)->ToString(), text);
  EXPECT_EQ(ReservePolicy::Parse("")->ToString(), "none");
}

}  // namespace
}  // namespace mge
