// SPDX-License-Identifier: Apache-2.0
// Pools over a driver with virtual memory and stream-ordered release, and the host's ready-made parts wrapped by a backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "core/base/errors.h"
#include "core/plugin/host_services.h"
#include "core/plugin/memory/pool.h"
#include "core/plugin/memory/ready_made.h"
#include "core/plugin/memory/slab_provider.h"

namespace mge {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20, kGranule = 64 << 10;

// A fake driver behind the tables. A device handle is a pointer to it.
struct Card {
  uint64_t total = 64 * kMiB, held = 0;
  int slabs = 0, queued_releases = 0, ranges = 0;
  uint64_t reached = 0;  // value that all fences have reached
  int waits = 0;
  uint64_t alignment = 64, skipped = 0;  // of slabs; bytes by which their addresses lie behind a multiple of it
};
Card& CardOf(mge_device* device) { return *reinterpret_cast<Card*>(device); }
mge_device* Handle(Card& card) { return reinterpret_cast<mge_device*>(&card); }
mge_fence_point At(Card& card, uint64_t value) {
  return {sizeof(mge_fence_point), 0, reinterpret_cast<mge_fence*>(&card), value};
}

mge_code Take(Card& card, uint64_t bytes) {
  if (bytes > card.total - card.held) return MGE_RESOURCE_EXHAUSTED;
  card.held += bytes;
  return MGE_OK;
}
mge_code SlabAcquire(mge_device* d, int32_t memory_class, uint64_t bytes, mge_slab* out, mge_error*) {
  if (mge_code code = Take(CardOf(d), bytes)) return code;
  ++CardOf(d).slabs;
  const uint64_t alignment = CardOf(d).alignment;
  void* address = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment + CardOf(d).skipped);
  address = static_cast<char*>(address) + CardOf(d).skipped;
  *out = {sizeof(mge_slab), memory_class, address, address, nullptr, bytes};
  return MGE_OK;
}
void SlabRelease(mge_device* d, const mge_slab* slab) {
  CardOf(d).held -= slab->bytes;
  std::free(static_cast<char*>(slab->address) - CardOf(d).skipped);
}
void SlabReleaseAfter(mge_device* d, const mge_slab* slab, const mge_fence_point* last_use) {
  EXPECT_NE(last_use, nullptr);
  ++CardOf(d).queued_releases;
  SlabRelease(d, slab);
}
void Info(mge_device* d, uint64_t* free_bytes, uint64_t* total_bytes) {
  *total_bytes = CardOf(d).total;
  *free_bytes = CardOf(d).total - CardOf(d).held;
}
mge_code RangeReserve(mge_device* d, uint64_t bytes, mge_slab* out, mge_error*) {
  ++CardOf(d).ranges;
  void* address = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *out = {sizeof(mge_slab), 0, address, address, nullptr, bytes};
  return MGE_OK;
}
void RangeRelease(mge_device* d, const mge_slab* range) {
  --CardOf(d).ranges;
  munmap(range->address, range->bytes);
}
mge_code RangeCommit(mge_device* d, const mge_slab* range, uint64_t offset, uint64_t bytes, mge_error*) {
  EXPECT_EQ(offset % kGranule, 0u);
  EXPECT_EQ(bytes % kGranule, 0u);
  if (mge_code code = Take(CardOf(d), bytes)) return code;
  EXPECT_EQ(mprotect(static_cast<char*>(range->address) + offset, bytes, PROT_READ | PROT_WRITE), 0);
  return MGE_OK;
}
void RangeDecommit(mge_device* d, const mge_slab* range, uint64_t offset, uint64_t bytes) {
  CardOf(d).held -= bytes;
  EXPECT_EQ(mprotect(static_cast<char*>(range->address) + offset, bytes, PROT_NONE), 0);
}
mge_code HostWait(mge_fence* fence, uint64_t value, uint64_t timeout_ns, mge_error*) {
  Card& card = *reinterpret_cast<Card*>(fence);
  if (card.reached >= value) return MGE_OK;
  if (timeout_ns == 0) return MGE_DEADLINE_EXCEEDED;
  ++card.waits;
  card.reached = value;
  return MGE_OK;
}

mge_memory_api Memory(bool ranges) {
  mge_memory_api t = {};
  t.struct_size = sizeof(t);
  t.slab_acquire = SlabAcquire;
  t.slab_release = SlabRelease;
  t.memory_info = Info;
  t.slab_release_after = SlabReleaseAfter;
  if (!ranges) return t;
  t.range_granularity = [](mge_device*) { return kGranule; };
  t.range_reserve = RangeReserve;
  t.range_release = RangeRelease;
  t.range_commit = RangeCommit;
  t.range_decommit = RangeDecommit;
  return t;
}

// A card with a pool.
struct Bench {
  explicit Bench(std::string_view pool_name, bool ranges = true, uint64_t limit = 0, uint64_t alignment = 64)
      : memory(Memory(ranges)), budget(std::make_shared<Budget>("card0", limit)) {
    queue.struct_size = sizeof(queue);
    queue.host_wait = HostWait;
    slabs = std::make_unique<DeviceSlabs>("card0", Handle(card), &memory, &queue, MGE_MEMORY_DEVICE, budget, UINT64_MAX,
                                          alignment);
    card.alignment = alignment;
    if (!pool_name.empty()) pool = *MakePool(pool_name, {}, slabs.get());
  }
  ~Bench() {
    pool.reset();
    slabs.reset();
    EXPECT_EQ(card.held, 0u);
    EXPECT_EQ(card.ranges, 0);
    EXPECT_EQ(budget->in_use(), 0u);
  }
  mge_reservation Get(uint64_t bytes) {
    absl::StatusOr<mge_reservation> r = pool->Acquire(bytes);
    EXPECT_TRUE(r.ok()) << FormatError(r.status());
    if (r.ok()) std::memset(r->address, 1, bytes);  // an uncommitted page would fault
    return r.ok() ? *r : mge_reservation{};
  }

  Card card;
  mge_memory_api memory;
  mge_queue_api queue = {};
  std::shared_ptr<Budget> budget;
  std::unique_ptr<DeviceSlabs> slabs;
  std::unique_ptr<Pool> pool;
};

// ---------------------------------------------------------------- alignment

TEST(SlabAlignment, ThatEverySlabHasCostsAPoolNoBytes) {
  for (std::string_view name : {"naive", "round", "unpooled"}) {
    Bench b(name, false, 0, 256);
    for (uint64_t alignment : {64, 256}) {
      mge_reservation r = *b.pool->Acquire(2 * kMiB, alignment);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(r.address) % 256, 0u);
      EXPECT_EQ(r.bytes, 2 * kMiB) << name;
      EXPECT_EQ(b.card.held, 2 * kMiB) << name << ", alignment " << alignment;
      b.pool->Release(r);
      b.pool->Trim(MGE_TRIM_ALL);
    }
  }
  const PoolRequest request = {kMiB, 256};
  EXPECT_EQ(Bench("growing", false, 0, 256).pool->Footprint({&request, 1}), kMiB);
  EXPECT_EQ(Bench("growing", false).pool->Footprint({&request, 1}), kMiB + 192);
}

TEST(SlabAlignment, ALargerOneOfARequestIsFoundInsideOfASlab) {
  for (std::string_view name : PoolNames()) {
    Bench b(name, false, 0, 256);
    std::vector<mge_reservation> live;
    for (int i = 0; i < 8; ++i) {
      live.push_back(*b.pool->Acquire(70'000, 4096));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(live.back().address) % 4096, 0u) << name;
      std::memset(live.back().address, 1, 70'000);
    }
    for (const mge_reservation& r : live) b.pool->Release(r);
  }
}

TEST(SlabAlignment, ASlabThatLacksItIsRefused) {
  Bench b("naive", false, 0, 256);
  b.card.skipped = 64;
  const absl::Status status = b.pool->Acquire(kMiB).status();
  EXPECT_THAT(FormatError(status), HasSubstr("not aligned to 256 bytes"));
  EXPECT_EQ(b.card.held, 0u);
}

// ---------------------------------------------------------------- virtual memory

TEST(GrowingRange, NewMemoryFollowsEarlierMemory) {
  Bench b("growing");
  mge_reservation first = b.Get(3 * kMiB), second = b.Get(5 * kMiB);
  EXPECT_EQ(b.card.slabs, 0);
  EXPECT_EQ(static_cast<char*>(second.address) - static_cast<char*>(first.address), static_cast<ptrdiff_t>(3 * kMiB));
  b.pool->Release(first);
  b.pool->Release(second);
  mge_reservation both = b.Get(8 * kMiB);
  EXPECT_EQ(both.address, first.address);
  EXPECT_EQ(b.card.held, 8 * kMiB);
  b.pool->Release(both);
}

TEST(GrowingRange, AFreeTailIsExtended) {
  Bench b("growing");
  mge_reservation wall = b.Get(3 * kMiB), tail = b.Get(2 * kMiB);
  b.pool->Release(tail);
  mge_reservation longer = b.Get(40 * kMiB);
  EXPECT_EQ(longer.address, tail.address);
  EXPECT_EQ(b.card.held, 43 * kMiB);
  b.pool->Release(longer);
  b.pool->Release(wall);
}

TEST(GrowingRange, HolesDoNotMakeALargeRequestFail) {
  auto large_fits = [](bool ranges) {
    Bench b("growing", ranges);
    std::vector<mge_reservation> kept, gone;
    for (int i = 0; i < 60; ++i) (i % 6 ? gone : kept).push_back(b.Get(kMiB));
    for (const mge_reservation& r : gone) b.pool->Release(r);
    absl::StatusOr<mge_reservation> large = b.pool->Acquire(50 * kMiB);
    if (large.ok()) b.pool->Release(*large);
    for (const mge_reservation& r : kept) b.pool->Release(r);
    return large.ok();
  };
  EXPECT_TRUE(large_fits(true));  // 10 MiB are in use; 54 are free, but at most 5 contiguous
  EXPECT_FALSE(large_fits(false));
}

TEST(GrowingRange, TrimmingTheExcessReleasesNoMore) {
  Bench b("growing");
  mge_reserve_decision decision = {};
  decision.struct_size = sizeof(decision);
  decision.retain = 3 * kMiB;
  b.pool->SetPolicy(decision);
  b.pool->Release(b.Get(10 * kMiB));
  b.pool->Trim(MGE_TRIM_EXCESS);
  EXPECT_EQ(b.card.held, 3 * kMiB);
  mge_reservation r = b.Get(3 * kMiB);  // the kept memory is contiguous
  EXPECT_EQ(b.card.held, 3 * kMiB);
  b.pool->Release(r);
  b.pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(b.card.held, 0u);
}

TEST(GrowingRange, TheBudgetIsChargedForCommittedMemory) {
  Bench b("growing", true, 4 * kMiB);
  mge_reservation r = b.Get(3 * kMiB);
  EXPECT_EQ(b.budget->in_use(), 3 * kMiB);
  EXPECT_EQ(ErrorId(b.pool->Acquire(2 * kMiB).status()), errors::kOverBudget.id);
  b.pool->Release(r);
  b.pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(b.budget->in_use(), 0u);
  EXPECT_EQ(b.pool->Stats().committed, 0u);
  mge_reservation all = b.Get(4 * kMiB);
  b.pool->Release(all);
}

TEST(Cap, OfThePolicyIsKeptByReleasingMemoryKeptForLater) {
  Bench b("naive");
  b.pool->ShareBudget(b.budget);
  b.slabs->SetCap(4 * kMiB);
  mge_reservation kept = b.Get(3 * kMiB);
  b.budget->Join(&kept, {[&](uint32_t pressure) -> uint64_t {
                           if (pressure < MGE_PRESSURE_CRITICAL) return 0;
                           b.pool->Release(kept);
                           return kept.bytes;
                         },
                         [] { return 3 * kMiB; }});
  b.pool->Release(b.Get(2 * kMiB));
  b.budget->Leave(&kept);
}

TEST(Cap, OfThePolicyLimitsAPoolLikeTheBudget) {
  for (std::string_view name : PoolNames()) {
    for (bool ranges : {false, true}) {
      Bench b(name, ranges);
      b.slabs->SetCap(4 * kMiB);
      mge_reservation r = b.Get(3 * kMiB);
      absl::Status status = b.pool->Acquire(2 * kMiB).status();
      EXPECT_EQ(ErrorId(status), errors::kOverCap.id) << name;
      EXPECT_THAT(FormatError(status), HasSubstr("2097152 bytes were asked for, "));
      EXPECT_THAT(FormatError(status), HasSubstr("are held, the cap is 4194304"));
      EXPECT_EQ(b.pool->Stats().over_budget, 1u) << name;
      b.pool->Release(r);
      r = b.Get(4 * kMiB);
      b.pool->Release(r);
      b.pool->Trim(MGE_TRIM_ALL);
      EXPECT_EQ(b.slabs->held(), 0u) << name;
    }
  }
}

TEST(GrowingRange, RandomBlocksNeverOverlapAndAllAreReleased) {
  Bench b("growing");
  std::mt19937 random(11);
  std::vector<mge_reservation> live;
  for (int i = 0; i < 3000; ++i) {
    if (live.empty() || random() % 3) {
      uint64_t bytes = 1 + (random() % 8 ? random() % 20000 : random() % (6 * kMiB));
      absl::StatusOr<mge_reservation> r = b.pool->Acquire(bytes, uint64_t{64} << random() % 5);
      if (r.ok()) live.push_back(*r);
    }
    if (live.size() > 40 || random() % 3 == 0) {
      if (live.empty()) continue;
      size_t at = random() % live.size();
      b.pool->Release(live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (random() % 100 == 0) b.pool->Trim(MGE_TRIM_ALL);
    ASSERT_EQ(b.pool->Stats().committed, b.card.held);
  }
  std::sort(live.begin(), live.end(), [](const auto& x, const auto& y) { return x.address < y.address; });
  for (size_t i = 1; i < live.size(); ++i) {
    EXPECT_LE(static_cast<char*>(live[i - 1].address) + live[i - 1].bytes, live[i].address);
  }
  for (const mge_reservation& r : live) b.pool->Release(r);
  b.pool->Trim(MGE_TRIM_ALL);
  EXPECT_EQ(b.card.held, 0u);
}

// ---------------------------------------------------------------- stream-ordered release

TEST(UnpooledPool, LeavesTheOrderOfReleasesToTheDriver) {
  Bench b("unpooled");
  mge_reservation r = b.Get(kMiB);
  mge_fence_point last = At(b.card, 5);
  b.pool->Release(r, &last);
  EXPECT_EQ(b.card.queued_releases, 1);
  EXPECT_EQ(b.card.waits, 0);
  EXPECT_EQ(b.pool->Stats().committed, 0u);
}

TEST(UnpooledPool, MemoryCountsAgainstTheBudgetUntilTheDriverReleasedIt) {
  Bench b("unpooled", true, 3 * kMiB);
  mge_reservation r = b.Get(2 * kMiB);
  mge_fence_point last = At(b.card, 5);
  b.pool->Release(r, &last);
  EXPECT_EQ(b.budget->in_use(), 2 * kMiB);
  mge_reservation small = b.Get(kMiB);  // fits beside the pending release
  EXPECT_EQ(b.card.waits, 0);
  mge_reservation other = b.Get(2 * kMiB);  // fits only after the pending release
  EXPECT_EQ(b.card.waits, 1);
  EXPECT_EQ(b.budget->in_use(), 3 * kMiB);
  b.pool->Release(small);
  b.pool->Release(other);
}

// ---------------------------------------------------------------- ready-made parts, wrapped

struct Wrapper {
  const mge_pool_api* inner;
  mge_pool* pool;
  int acquires = 0;
};
Wrapper* g_wrapper = nullptr;

const mge_pool_api* Named(std::string_view name) {
  mge_text text = {name.data(), name.size()};
  return ReadyMade()->pool(ReadyMade()->self, &text);
}

// The table of a pool that wraps a ready-made one and counts its calls.
const mge_pool_api kCounting = {
    sizeof(mge_pool_api),
    0,
    [](mge_device* device, int32_t memory_class, const mge_slab_provider* provider, mge_pool** out, mge_error* error) {
      mge_code code = g_wrapper->inner->create(device, memory_class, provider, &g_wrapper->pool, error);
      *out = reinterpret_cast<mge_pool*>(g_wrapper);
      return code;
    },
    [](mge_pool*) { g_wrapper->inner->destroy(g_wrapper->pool); },
    [](mge_pool*, uint64_t bytes, uint64_t alignment, const mge_fence_point* after, uint32_t flags, mge_reservation* out,
       mge_error* error) {
      ++g_wrapper->acquires;
      return g_wrapper->inner->acquire(g_wrapper->pool, bytes, alignment, after, flags, out, error);
    },
    [](mge_pool*, const mge_reservation* r, const mge_fence_point* last_use) {
      g_wrapper->inner->release(g_wrapper->pool, r, last_use);
    },
    [](mge_pool*, int32_t how) { g_wrapper->inner->trim(g_wrapper->pool, how); },
    [](const mge_pool*, mge_pool_stats* out) { g_wrapper->inner->stats(g_wrapper->pool, out); },
    [](mge_pool*, const mge_reserve_decision* decision) { g_wrapper->inner->set_policy(g_wrapper->pool, decision); }};

TEST(ReadyMade, ABackendWrapsEachOfThePools) {
  for (std::string_view name : PoolNames()) {
    Bench b("");
    Wrapper wrapper = {Named(name), nullptr};
    g_wrapper = &wrapper;
    auto pool = MakeBackendPool(&kCounting, Handle(b.card), MGE_MEMORY_DEVICE, b.slabs.get(), "card0");
    ASSERT_TRUE(pool.ok()) << FormatError(pool.status());
    mge_reservation r = *(*pool)->Acquire(5000);
    EXPECT_EQ((*pool)->Stats().in_use, r.bytes);
    mge_fence_point last = At(b.card, 1);
    (*pool)->Release(r, &last);
    (*pool)->Release(*(*pool)->Acquire(5000));
    EXPECT_EQ(wrapper.acquires, 2);
    if (name != "unpooled") {
      b.card.reached = 0;
      r = *(*pool)->Acquire(2 * kMiB);
      (*pool)->Release(r, &last);
      const uint64_t before = b.card.held;
      mge_reservation waiting = *(*pool)->Acquire(2 * kMiB, 64, nullptr, MGE_POOL_MAY_WAIT);
      EXPECT_EQ(waiting.ready, last.fence) << name;
      EXPECT_EQ(b.card.held, before) << name;
      (*pool)->Release(waiting);  // nobody waited for its fence, so it is still in use
      mge_reservation free = *(*pool)->Acquire(2 * kMiB);
      EXPECT_NE(free.address, waiting.address) << name;
      (*pool)->Release(free);
      const uint64_t held = b.card.held;
      mge_reserve_decision decision = {};
      decision.struct_size = sizeof(decision);
      decision.retain = held;
      (*pool)->SetPolicy(decision);
      (*pool)->Trim(MGE_TRIM_EXCESS);
      EXPECT_EQ(b.card.held, held) << name;
    }
    EXPECT_EQ(ErrorId((*pool)->Acquire(32 * kMiB, 64, nullptr, MGE_POOL_NO_GROWTH).status()), errors::kGrowthRequired.id);
    (*pool)->Trim(MGE_TRIM_ALL);
  }
  EXPECT_EQ(Named("buddy"), nullptr);
}

TEST(ReadyMade, AnErrorOfTheHostPassesThroughTheBackendUnchanged) {
  Bench b("", true, kMiB);
  Wrapper wrapper = {Named("naive"), nullptr};
  g_wrapper = &wrapper;
  auto pool = MakeBackendPool(&kCounting, Handle(b.card), MGE_MEMORY_DEVICE, b.slabs.get(), "card0");
  absl::Status status = (*pool)->Acquire(2 * kMiB).status();
  EXPECT_EQ(ErrorId(status), errors::kOverBudget.id);
  EXPECT_THAT(PartsOf(status).what, HasSubstr("the limit is 1048576"));
}

TEST(ReadyMade, APoolAcceptsOnlyTheHostsSlabProvider) {
  Bench b("");
  mge_slab_provider other = *b.slabs->table();
  other.acquire = [](void*, uint64_t, mge_slab*, mge_error*) -> mge_code { return MGE_OK; };
  mge_pool* pool = nullptr;
  mge_error error;
  EXPECT_EQ(Named("naive")->create(Handle(b.card), 0, &other, &pool, &error), MGE_UNIMPLEMENTED);
  EXPECT_THAT(error.text, HasSubstr("the provider that the host gave"));
}

TEST(ReadyMade, FindsReservePoliciesByName) {
  mge_plan_summary plan = {};
  plan.struct_size = sizeof(plan);
  plan.memory_total = 1000;
  mge_reserve_decision out = {};
  out.struct_size = sizeof(out);
  mge_error error;
  std::string_view policy = "percent:20", wrong = "most";
  mge_text text = {policy.data(), policy.size()};
  EXPECT_EQ(ReadyMade()->reserve(ReadyMade()->self, &text, &plan, &out, &error), MGE_OK);
  EXPECT_EQ(out.keep_free, 200u);
  text = {wrong.data(), wrong.size()};
  EXPECT_EQ(ReadyMade()->reserve(ReadyMade()->self, &text, &plan, &out, &error), MGE_INVALID_ARGUMENT);
  EXPECT_THAT(error.text, HasSubstr("no reserve policy 'most'"));
}

std::vector<uint32_t> Ordered(int32_t mode, const double* measured) {
  auto candidate = [](const char* id, int32_t rank, double cost, uint64_t attributes) {
    mge_candidate c = {};
    c.struct_size = sizeof(c);
    c.id = {id, std::strlen(id)};
    c.rank = rank;
    c.cost_us = cost;
    c.attributes = attributes;
    return c;
  };
  const mge_candidate all[] = {candidate("plain", 2, 30, 0), candidate("tiled", 1, 20, 0), candidate("odd", 0, -1, 0),
                               candidate("loops", 0, 1, MGE_KERNEL_REFERENCE)};
  const mge_candidate* pointers[] = {&all[0], &all[1], &all[2], &all[3]};
  mge_choice choice = {sizeof(mge_choice), mode, nullptr, pointers, 4, measured};
  std::vector<uint32_t> order(4);
  mge_error error;
  EXPECT_EQ(ReadyMade()->order(ReadyMade()->self, &choice, order.data(), &error), MGE_OK) << error.text;
  return order;
}

TEST(ReadyMade, OrdersCandidatesByTheRequestedMode) {
  const double times[] = {5, 9, 7, 1};
  EXPECT_THAT(Ordered(MGE_SELECT_HEURISTIC, nullptr), testing::ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(Ordered(MGE_SELECT_PROFILE, times), testing::ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(Ordered(MGE_SELECT_REPRODUCIBLE, nullptr), testing::ElementsAre(2, 1, 0, 3));
}

// ---------------------------------------------------------------- leaks

TEST(HostServices, LeaksOfABackendAreReported) {
  std::vector<std::string> messages;
  Logger logger(
      LogLevel::kWarning,
      [](void* self, LogLevel, std::string_view m) { static_cast<std::vector<std::string>*>(self)->emplace_back(m); },
      &messages);
  for (int kept : {0, 2}) {
    HostServices services("leaky", {});
    services.Attach(&services, logger);
    const mge_host* host = services.table();
    std::vector<void*> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(host->allocate(host->self, 100, 64));
    for (int i = kept; i < 3; ++i) host->release(host->self, blocks[static_cast<size_t>(i)]);
    services.Detach(&services);
    for (int i = 0; i < kept; ++i) std::free(blocks[static_cast<size_t>(i)]);  // frees them without telling the host
  }
  EXPECT_THAT(messages, testing::ElementsAre(HasSubstr("leaky: it stopped without releasing 2 blocks")));
}

}  // namespace
}  // namespace mge
