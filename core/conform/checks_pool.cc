// SPDX-License-Identifier: Apache-2.0
// Checks of a backend's own pool.
//
// Method: the pool gets the host's real slab provider, on top of a Provider that counts slabs and can refuse them. Blocks
// are acquired and released at random, and each new block is compared with all others. A block with an unfinished last use
// is offered to requests with every combination of flags and fence points; the rules of the contract say which of them may
// get it.
#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <tuple>

#include "core/base/errors.h"
#include "core/conform/allocations.h"
#include "core/conform/device_memory.h"
#include "core/plugin/memory/budget.h"
#include "core/plugin/memory/slab_provider.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr uint64_t kPlenty = uint64_t{256} << 20, kBudget = 8 << 20;

const void* End(const void* address, uint64_t bytes) { return static_cast<const unsigned char*>(address) + bytes; }

// The host's slab provider, which counts slabs and can be made to refuse them.
class Provider : public DeviceSlabs {
 public:
  Provider(BackendUnderTest& tested, uint64_t budget)
      : DeviceSlabs("under test", tested.device(), tested.plugin().memory, tested.plugin().queue, MGE_MEMORY_DEVICE,
                    std::make_shared<Budget>("under test", budget), UINT64_MAX, tested.description().buffer_alignment) {}
  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    if (AllocationFailure::Refuses()) return Fail(errors::kOutOfMemory, "the device has no more memory");
    absl::StatusOr<mge_slab> slab = DeviceSlabs::Acquire(bytes);
    calls_ += slab.ok() || ErrorId(slab.status()) != errors::kOverBudget.id;
    if (slab.ok()) slabs_[slab->address] = *slab;
    return slab;
  }
  void Release(const mge_slab& slab) override {
    std::lock_guard lock(mutex_);
    if (auto owned = slabs_.extract(slab.address))
      DeviceSlabs::Release(owned.mapped());
    else
      fault_ = "the pool releases a slab that it does not own, or has already released";
  }
  uint64_t calls() const { return calls_; }  // number of requests for a slab that the budget allowed
  size_t slabs() const { return slabs_.size(); }
  static const std::string& fault() { return fault_; }  // of the whole process, because a process runs one check
  bool Covers(const void* address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto next = slabs_.upper_bound(address);
    if (next == slabs_.begin()) return false;
    const mge_slab& slab = std::prev(next)->second;
    return End(address, bytes) <= End(slab.address, slab.bytes);
  }

 private:
  std::mutex mutex_;
  uint64_t calls_ = 0;
  std::map<const void*, mge_slab> slabs_;
  static inline std::string fault_;
};

bool Overlap(const mge_reservation& a, const mge_reservation& b) {
  return End(a.address, a.bytes) > b.address && End(b.address, b.bytes) > a.address;
}

// A pool of the backend, and the blocks of it that are in use.
class Pool {
 public:
  explicit Pool(BackendUnderTest& tested, uint64_t budget = kPlenty)
      : api_(*tested.plugin().memory->own_pool),
        provider_(tested, budget),
        pool_(Make("pool", api_.destroy, api_.create, tested.device(), MGE_MEMORY_DEVICE, provider_.table())) {}
  void Destroy() { pool_.reset(); }
  std::pair<mge_error, mge_reservation> TryAcquire(uint64_t bytes, uint32_t flags = 0,
                                                   const mge_fence_point* after = nullptr, uint64_t alignment = 64) {
    auto r = Sized<mge_reservation>();
    mge_error error = Try("acquiring a block", api_.acquire, raw(), bytes, alignment, after, flags, &r);
    return {std::move(error), r};
  }
  // Acquires a block, checks it, and adds it to held. [any thread]
  mge_reservation Acquire(uint64_t bytes, uint64_t alignment = 64) {
    const auto [result, r] = TryAcquire(bytes, 0, nullptr, alignment);
    Answer(result, fmt::format("acquiring {} bytes", bytes));
    if (reinterpret_cast<uintptr_t>(r.address) % alignment != 0)
      Broken("a block of {} bytes is not aligned to {}", bytes, alignment);
    if (r.bytes < bytes) Broken("{} bytes were asked for, the block says {}", bytes, r.bytes);
    if (!provider_.Covers(r.address, bytes))
      Broken("a block of {} bytes is not in a slab of the host, so the budget does not count it", bytes);
    std::lock_guard lock(mutex_);
    for (const mge_reservation& other : held) {
      if (Overlap(r, other)) Broken("two blocks, of {} and {} bytes, overlap", r.bytes, other.bytes);
    }
    return held.emplace_back(r);
  }
  // Acquires 20 blocks whose sizes differ and need several slabs of a small pool.
  void AcquireMany() {
    for (uint64_t i = 0; i < 20; ++i) Acquire(50000 + i * 977);
  }
  // Releases a block and removes it from held. [any thread]
  void Release(mge_reservation r, const mge_fence_point* last_use = nullptr) {
    {
      std::lock_guard lock(mutex_);
      std::erase_if(held, [&](const mge_reservation& h) { return h.address == r.address; });
    }
    InBackend("releasing a block", api_.release, raw(), &r, last_use);
  }
  void ReleaseAll() {
    while (!held.empty()) Release(held.front());
  }
  // Releases all blocks in use, trims, and returns the bytes that the pool still holds.
  uint64_t HeldWhenFree() {
    ReleaseAll();
    Trim(MGE_TRIM_ALL);
    return provider_.held();
  }
  void Trim(int32_t how) { InBackend("trimming", api_.trim, raw(), how); }
  mge_pool_stats Stats() {
    auto stats = Sized<mge_pool_stats>();
    api_.stats(raw(), &stats);
    return stats;
  }
  Provider& provider() { return provider_; }
  mge_pool* raw() const { return pool_.get(); }
  std::vector<mge_reservation> held = {};

 private:
  const mge_pool_api& api_;
  std::mutex mutex_;
  Provider provider_;
  Owned<mge_pool> pool_;
};

void CheckBlocks(BackendUnderTest& s, Pool& pool) {
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    if (!pool.held.empty() && (random() % 3 == 0 || pool.held.size() > 60)) {
      pool.Release(pool.held[random() % pool.held.size()]);
      continue;
    }
    uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 300000 : 5000);
    pool.Acquire(bytes, uint64_t{1} << random() % 9);
  }
  Transfer transfer(s);
  for (const mge_reservation& r : pool.held)
    transfer.CheckHostAddress(r.address, r.host_address, r.bytes, fmt::format("a block of {} bytes", r.bytes));
  pool.ReleaseAll();
}

// Requests a block while `busy` is released but in use until `last`. Checks that the pool hands out `busy` only if `flags`
// and `after` allow it.
void CheckWhileBusy(BackendUnderTest& s, Pool& pool, const mge_reservation& busy, const mge_fence_point& last,
                    uint32_t flags, const mge_fence_point* after) {
  const auto [result, r] = pool.TryAcquire(busy.bytes, flags, after);
  const bool waits = result.code == MGE_NEEDS_WAIT, may_wait = flags & MGE_POOL_MAY_WAIT;
  const bool comes_later = after && after->fence == last.fence && after->value >= last.value;
  if (waits && !may_wait) Broken("the pool returns MGE_NEEDS_WAIT to a request without MAY_WAIT");
  if (!waits) Answer(result, fmt::format("acquiring {} bytes", busy.bytes));
  if (waits && !r.ready) Broken("the pool returns MGE_NEEDS_WAIT, but names no fence in `ready`");
  if (!Overlap(busy, r)) return pool.held.push_back(r);
  if (waits && s.plugin().queue->host_wait(r.ready, r.ready_value, 0, nullptr) != MGE_DEADLINE_EXCEEDED)
    Broken("the fence in `ready` is reached before the block's last use is over");
  if (!waits && !comes_later)
    Broken("a block was handed out before the fence of its last use (MAY_WAIT: {}, `after`: {})", may_wait,
           after != nullptr);
  pool.Release(r, &last);  // restores the state before the request
}

// Releases a block whose last use is behind long work, and requests others meanwhile. Returns whether the work lasted until
// all requests were made; else they prove nothing.
bool TryFences(BackendUnderTest& s, const LongWork& work, std::chrono::milliseconds time) {
  // The fences must outlive the pool, and the enqueued work must end before both are destroyed.
  Fence fence(s), other(s);
  Pool pool(s);
  Queue elsewhere_queue(s), queue(s);
  elsewhere_queue.Signal(other, 9);
  work.Enqueue(queue, time);
  queue.Signal(fence, 1);
  queue.Signal(fence, 2);
  const mge_fence_point before = {sizeof(before), 0, fence, 1}, last = {sizeof(last), 0, fence, 2},
                        elsewhere = {sizeof(elsewhere), 0, other, 9};
  const mge_reservation busy = pool.Acquire(40000);
  pool.Release(busy, &last);
  const absl::Status requested = StatusOf([&] {
    for (uint32_t flags : {0, int{MGE_POOL_MAY_WAIT}}) {
      for (const mge_fence_point* after : std::initializer_list<const mge_fence_point*>{nullptr, &before, &elsewhere})
        CheckWhileBusy(s, pool, busy, last, flags, after);
    }
    CheckWhileBusy(s, pool, busy, last, 0, &last);
    for (uint64_t bytes : {64, 20000}) {
      if (Overlap(busy, pool.Acquire(bytes))) Broken("a part of a block was handed out before the fence of its last use");
    }
  });
  const bool conclusive = fence.Ask(2, 0).code == MGE_DEADLINE_EXCEEDED;
  fence.Await(2);
  if (conclusive) ThrowIfError(requested);
  if (requested.ok() && pool.HeldWhenFree() != 0) Broken("after the fence of the last use, a block is still held");
  return conclusive;
}

void CheckFences(BackendUnderTest& s, Pool&) {
  if (!s.plugin().queue) NotOffered(kNoQueues);
  LongWork work(s);
  for (int ms : {10, 50, 250}) {
    if (TryFences(s, work, std::chrono::milliseconds(ms))) return;
  }
  NotOffered("its queues are never busy: a last use is over as soon as it has been enqueued");
}

void CheckBudget(BackendUnderTest&, Pool& pool) {
  constexpr uint64_t kBytes = 600'000;
  mge_error result;
  for (;;) {
    mge_reservation r;
    std::tie(result, r) = pool.TryAcquire(kBytes);
    if (result.code != MGE_OK) break;
    pool.held.push_back(r);
    if (uint64_t all = pool.held.size() * kBytes; all > kBudget)
      Broken("{} bytes are handed out, the budget is {}", all, kBudget);
  }
  if (result.code != MGE_OVER_BUDGET)
    Broken("after the host's error MGE_OVER_BUDGET, the pool returns {}", CodeName(result.code));
  if (result.text.empty()) Broken("the error MGE_OVER_BUDGET has no text");
  if (pool.held.empty()) Broken("with a budget of {} bytes, no block of {} bytes is handed out", kBudget, kBytes);
  pool.ReleaseAll();
  for (uint64_t bytes : {kBytes, uint64_t{6 << 20}})  // for a block of another size, the pool must free cached blocks
    pool.Release(pool.Acquire(bytes));
}

void CheckPoolAllocations(BackendUnderTest& s, Pool&) {
  SurvivesFailures(s, [&s] {
    Pool pool(s);
    const absl::Status acquired = StatusOf([&] {
      for (uint64_t bytes : {100, 70000, 3 << 20}) pool.Acquire(bytes);
    });
    pool.ReleaseAll();
    if (uint64_t left = pool.Stats().in_use) Broken("every block is released, but the pool reports {} bytes in use", left);
    if (uint64_t left = pool.HeldWhenFree())
      Broken("every block is released, and after a trim the pool keeps {} bytes", left);
    ThrowIfError(acquired);
  });
}

void CheckTrim(BackendUnderTest&, Pool& pool) {
  const mge_reservation kept = pool.Acquire(10000);
  pool.AcquireMany();
  const mge_reservation later = pool.Acquire(75000);  // probably in a slab after the freed ones
  const std::vector<mge_reservation> between(pool.held.begin() + 1, pool.held.end() - 1);
  for (const mge_reservation& r : between) pool.Release(r);
  pool.Trim(MGE_TRIM_EXCESS);
  pool.Trim(MGE_TRIM_ALL);
  if (!pool.provider().Covers(kept.address, 10000) || !pool.provider().Covers(later.address, 75000))
    Broken("trimming took the slab of a block that is in use");
  if (uint64_t left = pool.HeldWhenFree()) Broken("with nothing in use, trimming everything leaves {} bytes", left);
  pool.Release(pool.Acquire(30000));
  pool.Destroy();
  if (size_t left = pool.provider().slabs()) Broken("a pool that was destroyed keeps {} slabs", left);
}

void CheckStats(BackendUnderTest&, Pool& pool) {
  if (pool.Stats().presence == 0) NotOffered("the pool keeps no statistics");
  auto known = [](const mge_pool_stats& stats, int bit) { return stats.presence >> bit & 1; };
  uint64_t peak = 0;
  auto compare = [&](std::string_view when) {
    uint64_t in_use = 0;
    for (const mge_reservation& r : pool.held) in_use += r.bytes;
    peak = std::max(peak, in_use);
    const mge_pool_stats stats = pool.Stats();
    const std::tuple<const char*, uint64_t, uint64_t> numbers[] = {
        {"bytes in use", stats.in_use, in_use},
        {"bytes in use at the peak", stats.peak_in_use, peak},
        {"bytes held from the host", stats.committed, pool.provider().held()},
        {"requests for slabs", stats.slab_acquires, pool.provider().calls()}};
    for (int bit = 0; const auto& [what, said, is] : numbers) {
      if (known(stats, bit++) && said != is) Broken("{}, there are {} {}, the pool says {}", when, is, what, said);
    }
  };
  for (uint64_t bytes : {100, 5000, 70000, 100}) {
    pool.Acquire(bytes);
    compare("after an acquire");
  }
  while (!pool.held.empty()) {
    pool.Release(pool.held.back());
    compare("after a release");
  }
  if (const mge_pool_stats stats = pool.Stats(); known(stats, 6)) {
    const uint64_t bytes = std::max<uint64_t>(stats.largest_free, 1);
    const auto [result, r] = pool.TryAcquire(bytes, MGE_POOL_NO_GROWTH);
    if ((result.code == MGE_OK) != (stats.largest_free > 0))
      Broken("the largest free block has {} bytes, says the pool, but a request without growth for {} returns {}",
             stats.largest_free, bytes, CodeName(result.code));
    if (result.code == MGE_OK) pool.Release(r);
    peak = std::max(peak, r.bytes);
  }
  pool.Trim(MGE_TRIM_ALL);
  compare("after trimming");
  const mge_code refused = pool.TryAcquire(2 * kPlenty).first.code;
  if (refused == MGE_OK) Broken("more than the budget was handed out");
  const mge_pool_stats stats = pool.Stats();
  if (known(stats, 7) && refused == MGE_OVER_BUDGET && stats.over_budget != 1)
    Broken("the budget refused one request, the pool says {}", stats.over_budget);
}

void CheckFlags(BackendUnderTest&, Pool& pool) {
  auto must_be = [](mge_code required, mge_code code, std::string_view what) {
    if (code != required) Broken("{} returns {}; {} is required", what, CodeName(code), CodeName(required));
  };
  must_be(MGE_UNIMPLEMENTED, pool.TryAcquire(100, 1u << 31).first.code, "acquiring with an unknown flag");
  const uint64_t calls = pool.provider().calls();
  const auto [grown, large] = pool.TryAcquire(1 << 20, MGE_POOL_NO_GROWTH);
  if (pool.provider().calls() != calls) Broken("the pool acquires a slab for a request with NO_GROWTH");
  if (grown.code == MGE_OK)
    pool.Release(large);
  else
    must_be(MGE_GROWTH_REQUIRED, grown.code, "a request with NO_GROWTH to an empty pool");
  const auto [waiting, small] = pool.TryAcquire(100, MGE_POOL_MAY_WAIT);
  must_be(MGE_OK, waiting.code, "a request with MAY_WAIT, and no block to wait for,");
  if (small.ready) Broken("the pool names a fence to wait for, but returns MGE_OK");
  pool.Release(small);
}

void CheckPolicy(BackendUnderTest& s, Pool& pool) {
  const mge_pool_api* api = s.plugin().memory->own_pool;
  if (!mge::Covers(api, &mge_pool_api::set_policy) || !api->set_policy) NotOffered("the pool has no function set_policy");
  for (uint64_t retain : {UINT64_MAX, uint64_t{200'000}, uint64_t{0}}) {
    auto decision = Sized<mge_reserve_decision>();
    decision.retain = retain;
    api->set_policy(pool.raw(), &decision);
    pool.AcquireMany();
    pool.ReleaseAll();
    const uint64_t before = pool.provider().held();
    pool.Trim(MGE_TRIM_EXCESS);
    const uint64_t after = pool.provider().held();
    if (after > retain) Broken("the policy retains {} bytes, trimming the excess leaves {}", retain, after);
    if (retain >= before && after != before)
      Broken("the policy retains {} bytes, and trimming the excess took some of {}", retain, before);
  }
}

void CheckPoolThreads(BackendUnderTest&, Pool& pool) {
  InThreads(4, [&](int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int i = 0; i < 300; ++i) {
      pool.Release(pool.Acquire(1 + random() % 9000));
    }
  });
}

// Runs a check. If the pool misused a slab, reports that instead of the check's own result, which is only a consequence.
template <void (*kCheck)(BackendUnderTest&, Pool&), uint64_t budget = kPlenty>
void OnOwnPool(BackendUnderTest& s) {
  if (!s.plugin().memory->own_pool) NotOffered("the backend uses a pool of the host's");
  const absl::Status status = StatusOf([&] {
    Pool pool(s, budget);
    kCheck(s, pool);
  });
  if (!Provider::fault().empty()) Broken(Provider::fault());
  ThrowIfError(status);
}

constexpr Check kPoolChecks[] = {
    {"pool.blocks", "Blocks are aligned, disjoint, in slabs of the host, and have the correct host address or none.",
     OnOwnPool<CheckBlocks>},
    {"pool.last_use", "A block is not handed out before the fence of its last use, unless the request may wait.",
     OnOwnPool<CheckFences>},
    {"pool.budget", "The pool keeps the host's budget, reports MGE_OVER_BUDGET, and works again after a release.",
     OnOwnPool<CheckBudget, kBudget>},
    {"pool.allocations", "A pool survives every failing allocation, and slabs that the host refuses, and loses no block.",
     OnOwnPool<CheckPoolAllocations>},
    {"pool.trim", "Trimming releases all memory that is not in use, and no other; destroying a pool releases every slab.",
     OnOwnPool<CheckTrim>},
    {"pool.stats", "The pool's statistics are correct.", OnOwnPool<CheckStats>},
    {"pool.flags", "Unknown flags are refused, and NO_GROWTH is obeyed.", OnOwnPool<CheckFlags>},
    {"pool.policy", "Trimming the excess keeps the bytes that the reserve policy retains.", OnOwnPool<CheckPolicy>},
    {"pool.threads", "Several threads can acquire and release concurrently.", OnOwnPool<CheckPoolThreads>},
};

}  // namespace

std::span<const Check> PoolChecks() { return kPoolChecks; }

}  // namespace mge::conform
