// SPDX-License-Identifier: Apache-2.0
// Checks of a backend's own pool.
//
// Method: the pool gets the host's real slab provider, on top of a Provider that counts slabs and can refuse them. Blocks
// are acquired and released at random, and each new block is compared with all others. A block with an unfinished last use
// is offered to requests with every combination of flags and fence points; the rules of the contract say which of them may
// get it.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>

#include "core/base/errors.h"
#include "core/conform/device_memory.h"
#include "core/plugin/memory/budget.h"
#include "core/plugin/memory/slab_provider.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr uint64_t kPlenty = uint64_t{256} << 20;

// The host's slab provider, which counts slabs and can be made to refuse them.
class Provider : public DeviceSlabs {
 public:
  Provider(BackendUnderTest& tested, uint64_t budget)
      : DeviceSlabs("under test", tested.device(), tested.plugin().memory, tested.plugin().queue, MGE_MEMORY_DEVICE,
                    std::make_shared<Budget>("under test", budget)) {}
  absl::StatusOr<mge_slab> Acquire(uint64_t bytes) override {
    std::lock_guard lock(mutex_);
    if (calls_ + 1 == fail_at_) return ++calls_, Fail(errors::kOutOfMemory, "the device has no more memory");
    absl::StatusOr<mge_slab> slab = DeviceSlabs::Acquire(bytes);
    if (slab.ok() || ErrorId(slab.status()) != errors::kOverBudget.id) ++calls_;
    if (slab.ok()) slabs_[slab->address] = bytes, held_ += bytes;
    return slab;
  }
  void Release(const mge_slab& slab) override {
    std::lock_guard lock(mutex_);
    auto at = slabs_.find(slab.address);
    if (at == slabs_.end()) {
      fault_ = "the pool releases a slab that it does not own, or has already released";
      return;
    }
    held_ -= at->second;
    slabs_.erase(at);
    DeviceSlabs::Release(slab);
  }
  uint64_t held() const { return held_; }
  uint64_t calls() const { return calls_; }  // number of requests for a slab that the budget allowed
  size_t slabs() const { return slabs_.size(); }
  static const std::string& fault() { return fault_; }  // of the whole process, because a process runs one check
  void FailAt(uint64_t n) { calls_ = 0, fail_at_ = n; }
  bool Covers(const void* address, uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto* at = static_cast<const unsigned char*>(address);
    return std::any_of(slabs_.begin(), slabs_.end(), [&](const auto& s) {
      auto* base = static_cast<const unsigned char*>(s.first);
      return at >= base && at + bytes <= base + s.second;
    });
  }

 private:
  std::mutex mutex_;
  std::atomic<uint64_t> held_ = 0, calls_ = 0, fail_at_ = 0;
  std::map<void*, uint64_t> slabs_;
  static inline std::string fault_;
};

using Blocks = std::vector<mge_reservation>;

class Pool {
 public:
  static absl::StatusOr<std::unique_ptr<Pool>> Create(BackendUnderTest& tested, uint64_t budget = kPlenty) {
    std::unique_ptr<Pool> pool(new Pool(tested, budget));
    MGE_ASSIGN_OR_RETURN(pool->pool_, Make("pool", pool->api_.destroy, pool->api_.create, tested.device(), MGE_MEMORY_DEVICE,
                                           pool->provider_.table()));
    return pool;
  }
  void Destroy() { pool_.reset(); }
  mge_error TryAcquire(uint64_t bytes, mge_reservation* out, uint32_t flags = 0, const mge_fence_point* after = nullptr,
                       uint64_t alignment = 64) {
    *out = Sized<mge_reservation>();
    return Try("acquiring a block", api_.acquire, raw(), bytes, alignment, after, flags, out);
  }
  absl::StatusOr<mge_reservation> Acquire(uint64_t bytes, uint64_t alignment = 64) {
    mge_reservation r;
    const mge_error result = TryAcquire(bytes, &r, 0, nullptr, alignment);
    MGE_RETURN_IF_ERROR(Answer(result, fmt::format("acquiring {} bytes", bytes)));
    if (reinterpret_cast<uintptr_t>(r.address) % alignment != 0)
      return Broken("a block of {} bytes is not aligned to {}", bytes, alignment);
    if (r.bytes < bytes) return Broken("{} bytes were asked for, the block says {}", bytes, r.bytes);
    if (!provider_.Covers(r.address, bytes))
      return Broken("a block of {} bytes is not in a slab of the host, so the budget does not count it", bytes);
    return r;
  }
  // Acquires a block for each of the sizes, as long as there is no error, and adds them to `held`.
  absl::Status AcquireAll(std::span<const uint64_t> sizes, Blocks* held) {
    for (uint64_t bytes : sizes) {
      MGE_ASSIGN_OR_RETURN(mge_reservation r, Acquire(bytes));
      held->push_back(r);
    }
    return absl::OkStatus();
  }
  void Release(const mge_reservation& r, const mge_fence_point* last_use = nullptr) {
    InBackend("releasing a block", api_.release, raw(), &r, last_use);
  }
  void ReleaseAll(const Blocks& held) {
    for (const mge_reservation& r : held) Release(r);
  }
  void Trim(int32_t how) { InBackend("trimming", api_.trim, raw(), how); }
  mge_pool_stats Stats() {
    auto stats = Sized<mge_pool_stats>();
    api_.stats(raw(), &stats);
    return stats;
  }
  Provider& provider() { return provider_; }
  mge_pool* raw() const { return pool_.get(); }

 private:
  Pool(BackendUnderTest& tested, uint64_t budget) : api_(*tested.plugin().memory->own_pool), provider_(tested, budget) {}
  const mge_pool_api& api_;
  Provider provider_;
  Owned<mge_pool> pool_;
};

// Returns 20 sizes that differ and need several slabs of a small pool.
std::vector<uint64_t> ManySizes() {
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < 20; ++i) out.push_back(50000 + i * 977);
  return out;
}

absl::Status Disjoint(const Blocks& blocks) {
  Blocks sorted = blocks;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    auto* end = static_cast<unsigned char*>(sorted[i - 1].address) + sorted[i - 1].bytes;
    if (end > sorted[i].address)
      return Broken("two blocks, of {} and {} bytes, overlap", sorted[i - 1].bytes, sorted[i].bytes);
  }
  return absl::OkStatus();
}

absl::Status CheckBlocks(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  std::mt19937 random(7);
  Blocks held;
  for (int i = 0; i < 400; ++i) {
    if (!held.empty() && (random() % 3 == 0 || held.size() > 60)) {
      size_t k = random() % held.size();
      pool->Release(held[k]);
      held.erase(held.begin() + static_cast<ptrdiff_t>(k));
      continue;
    }
    uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 300000 : 5000);
    MGE_ASSIGN_OR_RETURN(mge_reservation r, pool->Acquire(bytes, uint64_t{1} << random() % 9));
    held.push_back(r);
    MGE_RETURN_IF_ERROR(Disjoint(held));
  }
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  for (const mge_reservation& r : held) {
    MGE_RETURN_IF_ERROR(
        transfer.CheckHostAddress(r.address, r.host_address, r.bytes, fmt::format("a block of {} bytes", r.bytes)));
    pool->Release(r);
  }
  return absl::OkStatus();
}

// Requests a block while `busy` is released but in use until `last`. Checks that the pool hands out `busy` only if `flags`
// and `after` allow it. Adds any other block to `held`.
absl::Status CheckWhileBusy(BackendUnderTest& s, Pool& pool, const mge_reservation& busy, const mge_fence_point& last,
                            uint32_t flags, const mge_fence_point* after, Blocks* held) {
  mge_reservation r;
  const mge_error result = pool.TryAcquire(busy.bytes, &r, flags, after);
  const mge_code code = result.code;
  const bool may_wait = flags & MGE_POOL_MAY_WAIT;
  const bool comes_later = after && after->fence == last.fence && after->value >= last.value;
  if (code == MGE_NEEDS_WAIT && !may_wait) return Broken("the pool returns MGE_NEEDS_WAIT to a request without MAY_WAIT");
  if (code != MGE_OK && code != MGE_NEEDS_WAIT) return Answer(result, fmt::format("acquiring {} bytes", busy.bytes));
  const bool overlaps = !Disjoint({busy, r}).ok();
  if (code == MGE_NEEDS_WAIT) {
    if (!r.ready) return Broken("the pool returns MGE_NEEDS_WAIT, but names no fence in `ready`");
    if (overlaps && s.plugin().queue->host_wait(r.ready, r.ready_value, 0, nullptr) != MGE_DEADLINE_EXCEEDED)
      return Broken("the fence in `ready` is reached before the block's last use is over");
  } else if (overlaps && !comes_later) {
    return Broken(may_wait ? "with MAY_WAIT, a block whose last use is not over was handed out with MGE_OK"
                  : after  ? "a request that does not come after a block's last use got that block"
                           : "a block was handed out again before the fence of its last use was reached");
  }
  if (overlaps) {
    pool.Release(r, &last);  // restores the state before the request
  } else {
    held->push_back(r);
  }
  return absl::OkStatus();
}

// Releases a block whose last use is behind long work, and requests others meanwhile. Sets `*conclusive` if the work lasted
// until all requests were made.
absl::Status TryFences(BackendUnderTest& s, const LongWork& work, std::chrono::milliseconds time, bool* conclusive) {
  // The fences must outlive the pool, and the enqueued work must end before both are destroyed.
  MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence other, Fence::Create(s));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue elsewhere_queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_RETURN_IF_ERROR(elsewhere_queue.Signal(other, 9));
  MGE_RETURN_IF_ERROR(work.Enqueue(queue, time));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 1));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, 2));
  const mge_fence_point before = {sizeof(before), 0, fence, 1}, last = {sizeof(last), 0, fence, 2},
                        elsewhere = {sizeof(elsewhere), 0, other, 9};
  MGE_ASSIGN_OR_RETURN(mge_reservation busy, pool->Acquire(40000));
  pool->Release(busy, &last);
  Blocks held;
  auto request = [&]() -> absl::Status {
    const mge_fence_point* const none = nullptr;
    for (uint32_t flags : {uint32_t{0}, uint32_t{MGE_POOL_MAY_WAIT}}) {
      for (const mge_fence_point* after : {none, &before, &elsewhere})
        MGE_RETURN_IF_ERROR(CheckWhileBusy(s, *pool, busy, last, flags, after, &held));
    }
    MGE_RETURN_IF_ERROR(CheckWhileBusy(s, *pool, busy, last, 0, &last, &held));
    constexpr uint64_t kParts[] = {64, 20000};
    MGE_RETURN_IF_ERROR(pool->AcquireAll(kParts, &held));
    for (const mge_reservation& r : std::span(held).last(2)) {
      if (!Disjoint({busy, r}).ok()) return Broken("a part of a block was handed out before the fence of its last use");
    }
    return Disjoint(held);
  };
  absl::Status requested = request();
  *conclusive = fence.Ask(2, 0).code == MGE_DEADLINE_EXCEEDED;
  MGE_RETURN_IF_ERROR(fence.Await(2));
  if (*conclusive) MGE_RETURN_IF_ERROR(requested);
  pool->ReleaseAll(held);
  pool->Trim(MGE_TRIM_ALL);
  if (requested.ok() && pool->provider().held() != 0) {
    return Broken("after the fence of the last use, a block is still held");
  }
  return absl::OkStatus();
}

absl::Status CheckFences(BackendUnderTest& s) {
  if (!s.plugin().queue) return NotOffered(kNoQueues);
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  bool conclusive = false;
  for (int ms : {10, 50, 250}) {
    MGE_RETURN_IF_ERROR(TryFences(s, work, std::chrono::milliseconds(ms), &conclusive));
    if (conclusive) return absl::OkStatus();
  }
  return NotOffered("its queues are never busy: a last use is over as soon as it has been enqueued");
}

absl::Status CheckBudget(BackendUnderTest& s) {
  constexpr uint64_t kBudget = 8 << 20;
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s, kBudget));
  Blocks held;
  for (;;) {
    mge_reservation r;
    const auto [code, text, origin] = pool->TryAcquire(600'000, &r);
    if (code == MGE_OVER_BUDGET) {
      if (text.empty()) return Broken("the error MGE_OVER_BUDGET has no text");
      break;
    }
    if (code != MGE_OK) {
      return Broken("after the host's error MGE_OVER_BUDGET, the pool returns {}", CodeName(code));
    }
    held.push_back(r);
    if (held.size() * 600'000 > kBudget)
      return Broken("{} bytes are handed out, the budget is {}", held.size() * 600'000, kBudget);
  }
  if (held.empty()) return Broken("with a budget of {} bytes, no block of 600000 bytes is handed out", kBudget);
  pool->ReleaseAll(held);
  for (uint64_t bytes : {600'000, 6 << 20}) {  // for a block of another size, the pool must free cached blocks
    MGE_ASSIGN_OR_RETURN(mge_reservation r, pool->Acquire(bytes));
    pool->Release(r);
  }
  return absl::OkStatus();
}

absl::Status CheckFailures(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  for (uint64_t n = 1; n <= 12; ++n) {
    Blocks held;
    pool->provider().FailAt(n);
    for (uint64_t bytes : {uint64_t{100}, uint64_t{70000}, uint64_t{3} << 20, uint64_t{5000}}) {
      mge_reservation r;
      const mge_code code = pool->TryAcquire(bytes, &r).code;
      if (code == MGE_OK)
        held.push_back(r);
      else if (code != MGE_RESOURCE_EXHAUSTED)
        return Broken("after the host's error MGE_RESOURCE_EXHAUSTED, the pool returns {}", CodeName(code));
    }
    pool->provider().FailAt(0);
    MGE_RETURN_IF_ERROR(Disjoint(held));
    pool->ReleaseAll(held);
    pool->Trim(MGE_TRIM_ALL);
    if (pool->provider().held() != 0) return Broken("after the host refused slab {}, memory is lost", n);
  }
  return absl::OkStatus();
}

absl::Status CheckAllocations(BackendUnderTest& s) {
  return SurvivesFailures(s, [&s]() -> absl::Status {
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
    Blocks held;
    constexpr uint64_t kSizes[] = {100, 70000, 3 << 20};
    absl::Status status = pool->AcquireAll(kSizes, &held);
    pool->ReleaseAll(held);
    if (uint64_t left = pool->Stats().in_use; left > 0)
      return Broken("every block is released, but the pool reports {} bytes in use", left);
    pool->Trim(MGE_TRIM_ALL);
    if (uint64_t left = pool->provider().held(); left > 0)
      return Broken("every block is released, and after a trim the pool keeps {} bytes", left);
    return status;
  });
}

absl::Status CheckTrim(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  MGE_ASSIGN_OR_RETURN(mge_reservation kept, pool->Acquire(10000));
  Blocks held;
  MGE_RETURN_IF_ERROR(pool->AcquireAll(ManySizes(), &held));
  MGE_ASSIGN_OR_RETURN(mge_reservation behind, pool->Acquire(75000));  // probably in a slab behind the freed ones
  pool->ReleaseAll(held);
  pool->Trim(MGE_TRIM_EXCESS);
  pool->Trim(MGE_TRIM_ALL);
  if (!pool->provider().Covers(kept.address, 10000) || !pool->provider().Covers(behind.address, 75000))
    return Broken("trimming took the slab of a block that is in use");
  pool->Release(kept);
  pool->Release(behind);
  pool->Trim(MGE_TRIM_ALL);
  if (uint64_t left = pool->provider().held())
    return Broken("with nothing in use, trimming everything leaves {} bytes", left);
  MGE_ASSIGN_OR_RETURN(mge_reservation cached, pool->Acquire(30000));
  pool->Release(cached);
  pool->Destroy();
  if (size_t left = pool->provider().slabs()) return Broken("a pool that was destroyed keeps {} slabs", left);
  return absl::OkStatus();
}

absl::Status CheckStats(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  uint64_t in_use = 0, peak = 0;
  auto compare = [&](std::string_view when) {
    const mge_pool_stats stats = pool->Stats();
    const Provider& provider = pool->provider();
    const std::tuple<const char*, uint64_t, uint64_t> numbers[] = {
        {"bytes in use", stats.in_use, in_use},
        {"bytes in use at the peak", stats.peak_in_use, peak},
        {"bytes held from the host", stats.committed, provider.held()},
        {"requests for slabs", stats.slab_acquires, provider.calls()}};
    for (int bit = 0; const auto& [what, said, is] : numbers) {
      if ((stats.presence >> bit++ & 1) && said != is)
        return Broken("{}, there are {} {}, the pool says {}", when, is, what, said);
    }
    return absl::OkStatus();
  };
  Blocks held;
  for (uint64_t bytes : {uint64_t{100}, uint64_t{5000}, uint64_t{70000}, uint64_t{100}}) {
    MGE_ASSIGN_OR_RETURN(mge_reservation r, pool->Acquire(bytes));
    held.push_back(r);
    in_use += r.bytes;
    peak = std::max(peak, in_use);
    MGE_RETURN_IF_ERROR(compare("after an acquire"));
  }
  for (const mge_reservation& r : held) {
    pool->Release(r);
    in_use -= r.bytes;
    MGE_RETURN_IF_ERROR(compare("after a release"));
  }
  mge_reservation r;
  mge_pool_stats stats = pool->Stats();
  if (stats.presence == 0) return NotOffered("the pool keeps no statistics");
  const bool tells_largest = stats.presence >> 6 & 1;
  const bool any = tells_largest && stats.largest_free;
  if (pool->TryAcquire(any ? stats.largest_free : 1, &r, MGE_POOL_NO_GROWTH).code == MGE_OK) {
    pool->Release(r);
    peak = std::max(peak, r.bytes);
    if (tells_largest && !any) return Broken("the pool reports no free block, but hands out a block without growth");
  } else if (any) {
    return Broken("the pool reports a free block of {} bytes, but does not hand it out without growth", stats.largest_free);
  }
  pool->Trim(MGE_TRIM_ALL);
  MGE_RETURN_IF_ERROR(compare("after trimming"));
  const mge_code refused = pool->TryAcquire(2 * kPlenty, &r).code;
  if (refused == MGE_OK) return Broken("more than the budget was handed out");
  stats = pool->Stats();
  if ((stats.presence >> 7 & 1) && refused == MGE_OVER_BUDGET && stats.over_budget != 1) {
    return Broken("the budget refused one request, the pool says {}", stats.over_budget);
  }
  return absl::OkStatus();
}

absl::Status CheckFlags(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  mge_reservation r;
  if (mge_code code = pool->TryAcquire(100, &r, 1u << 31).code; code != MGE_UNIMPLEMENTED) {
    return Broken("acquiring with an unknown flag returns {}; MGE_UNIMPLEMENTED is required", CodeName(code));
  }
  uint64_t calls = pool->provider().calls();
  mge_code code = pool->TryAcquire(1 << 20, &r, MGE_POOL_NO_GROWTH).code;
  if (pool->provider().calls() != calls) return Broken("the pool acquires a slab for a request with NO_GROWTH");
  if (code == MGE_OK) {
    pool->Release(r);
  } else if (code != MGE_GROWTH_REQUIRED) {
    return Broken("an empty pool returns {} for a request with NO_GROWTH; MGE_GROWTH_REQUIRED is required", CodeName(code));
  }
  code = pool->TryAcquire(100, &r, MGE_POOL_MAY_WAIT).code;
  if (code != MGE_OK) return Broken("with MAY_WAIT and no block to wait for, the pool returns {}", CodeName(code));
  if (r.ready) return Broken("the pool names a fence to wait for, but returns MGE_OK");
  pool->Release(r);
  return absl::OkStatus();
}

absl::Status CheckPolicy(BackendUnderTest& s) {
  const mge_pool_api* api = s.plugin().memory->own_pool;
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  if (!mge::Covers(api, &mge_pool_api::set_policy) || !api->set_policy)
    return NotOffered("the pool has no function set_policy");
  for (uint64_t retain : {UINT64_MAX, uint64_t{200'000}, uint64_t{0}}) {
    auto decision = Sized<mge_reserve_decision>();
    decision.retain = retain;
    api->set_policy(pool->raw(), &decision);
    Blocks held;
    MGE_RETURN_IF_ERROR(pool->AcquireAll(ManySizes(), &held));
    pool->ReleaseAll(held);
    const uint64_t before = pool->provider().held();
    pool->Trim(MGE_TRIM_EXCESS);
    const uint64_t after = pool->provider().held();
    if (after > retain) return Broken("the policy retains {} bytes, trimming the excess leaves {}", retain, after);
    if (retain >= before && after != before) {
      return Broken("the policy retains {} bytes, and trimming the excess took some of {}", retain, before);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckThreads(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Pool> pool, Pool::Create(s));
  std::vector<std::thread> threads;
  std::mutex mutex;
  Blocks held;
  absl::Status bad;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        absl::StatusOr<mge_reservation> r = pool->Acquire(1 + random() % 9000);
        {
          std::lock_guard lock(mutex);
          if (r.ok()) held.push_back(*r);
          bad.Update(r.status());
          bad.Update(Disjoint(held));
          if (!bad.ok()) return;
        }
        {
          std::lock_guard lock(mutex);
          std::erase_if(held, [&](const mge_reservation& h) { return h.address == r->address; });
        }
        pool->Release(*r);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return bad;
}

// Runs a check. If the pool misused a slab, reports that instead of the check's own result, which is only a consequence.
template <absl::Status (*kCheck)(BackendUnderTest&)>
absl::Status OnOwnPool(BackendUnderTest& s) {
  absl::Status status = kCheck(s);
  return Provider::fault().empty() ? status : Broken(Provider::fault());
}

constexpr Check kRows[] = {
    {"pool.blocks", "Blocks are aligned, disjoint, in slabs of the host, and have the correct host address or none.",
     Needs::kPool, OnOwnPool<CheckBlocks>},
    {"pool.last_use", "A block is not handed out before the fence of its last use, unless the request may wait.",
     Needs::kPool, OnOwnPool<CheckFences>},
    {"pool.budget", "The pool keeps the host's budget, reports MGE_OVER_BUDGET, and works again after a release.",
     Needs::kPool, OnOwnPool<CheckBudget>},
    {"pool.failures", "If the host refuses a slab, an error is returned and nothing leaks.", Needs::kPool,
     OnOwnPool<CheckFailures>},
    {"pool.allocations", "A pool survives every failing allocation and loses no block.", Needs::kPool,
     OnOwnPool<CheckAllocations>},
    {"pool.trim", "Trimming releases all memory that is not in use, and no other; destroying a pool releases every slab.",
     Needs::kPool, OnOwnPool<CheckTrim>},
    {"pool.stats", "The pool's statistics are correct.", Needs::kPool, OnOwnPool<CheckStats>},
    {"pool.flags", "Unknown flags are refused, and NO_GROWTH is obeyed.", Needs::kPool, OnOwnPool<CheckFlags>},
    {"pool.policy", "Trimming the excess keeps the bytes that the reserve policy retains.", Needs::kPool,
     OnOwnPool<CheckPolicy>},
    {"pool.threads", "Several threads can acquire and release concurrently.", Needs::kPool, OnOwnPool<CheckThreads>},
};

}  // namespace

std::span<const Check> PoolChecks() { return kRows; }

}  // namespace mge::conform
