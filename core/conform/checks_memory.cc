// SPDX-License-Identifier: Apache-2.0
// Checks of slabs, failures for lack of memory, stream-ordered release, ranges of virtual memory, and the reserve policy.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/conform/device_memory.h"
#include "core/conform/kernel_run.h"
#include "fmt/format.h"
#include "mge/memory_handles.h"

namespace mge::conform {
namespace {

constexpr uint64_t kMiB = 1 << 20;

void CheckSlabs(BackendUnderTest& s) {
  Transfer transfer(s);
  std::vector<Slab> slabs;
  const uint64_t sizes[] = {1, 63, 64, 65, 4096, 70001, kMiB + 1};
  auto content = [&](size_t i) { return Pattern(sizes[i], static_cast<unsigned>(i)); };
  for (uint64_t bytes : sizes) {
    const Slab& slab = slabs.emplace_back(s, bytes);
    const mge_slab& raw = slab.raw();
    if (reinterpret_cast<uintptr_t>(raw.address) % s.description().buffer_alignment != 0)
      Broken("a slab of {} bytes is not aligned to {}", bytes, s.description().buffer_alignment);
    if (raw.bytes < bytes) Broken("a slab of {} bytes was asked for, it says {}", bytes, raw.bytes);
    if (raw.memory_class != MGE_MEMORY_DEVICE) Broken("a slab says another memory class than was asked for");
    if (s.host_accessible() && raw.host_address != raw.address)
      Broken("the device says HOST_ACCESSIBLE, but the host address of a slab is another one");
    transfer.Put(slab.address(), content(slabs.size() - 1));
  }
  for (size_t i = 0; i < slabs.size(); ++i) {
    const std::string what = fmt::format("a slab of {} bytes", sizes[i]);
    transfer.Expect(slabs[i].address(), content(i), what + ", beside others: what was written is not read back");
    transfer.CheckHostAddress(slabs[i].address(), slabs[i].raw().host_address, sizes[i], what);
  }
  if (HasPinnedMemory(s) && !Slab(s, 64, MGE_MEMORY_PINNED).raw().host_address) Broken("pinned memory has no host address");
}

void CheckTooMuch(BackendUnderTest& s) {
  uint64_t free = UINT64_MAX, total = UINT64_MAX;
  s.plugin().memory->memory_info(s.device(), &free, &total);
  if (free == UINT64_MAX || total == UINT64_MAX) Broken("memory_info does not write both numbers");
  if (free > total) Broken("it reports {} free bytes of {} in total", free, total);
  if (const uint64_t listed = s.description().memory_total; listed && total && (listed / 2 > total || total / 2 > listed))
    Broken("the device is listed with {} bytes of memory, memory_info reports {}", listed, total);
  constexpr uint64_t kMaxTaken = 256 * kMiB;  // less than any device has
  std::vector<Slab> taken;
  for (uint64_t bytes = 0; total && bytes <= total && bytes < kMaxTaken; bytes += 32 * kMiB) {
    if (!StatusOf([&] { taken.emplace_back(s, 32 * kMiB); }).ok()) break;  // the device is full
    if (bytes + 32 * kMiB > total)
      Broken("memory_info reports {} bytes in total, but {} bytes were acquired at once", total, bytes + 32 * kMiB);
  }
  taken.clear();
  for (uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX - 7, UINT64_MAX}) {
    auto slab = Sized<mge_slab>();
    MustFail(MGE_RESOURCE_EXHAUSTED, fmt::format("acquiring {} bytes", bytes), s.plugin().memory->slab_acquire, s.device(),
             MGE_MEMORY_DEVICE, bytes, &slab);
  }
  CheckSlabs(s);
}

void CheckReleaseAfter(BackendUnderTest& s) {
  if (!s.plugin().memory->slab_release_after) NotOffered("the slot slab_release_after is empty");
  if (!s.plugin().queue) Broken("stream-ordered release without queues");
  constexpr size_t kBytes = 65536;
  LongWork work(s);
  Slab source(s, kBytes);
  Rig rig(s, kBytes);
  const Bytes want = Pattern(kBytes, 3), other = Pattern(kBytes, 4);
  rig.transfer.Put(source.address(), want);
  work.Enqueue(rig.queue, std::chrono::milliseconds(50));
  rig.queue.Copy(rig.slab.address(), source.address(), kBytes);
  rig.queue.Signal(rig.fence, 1);
  source.ReleaseAfter(rig.fence, 1);
  std::vector<Slab> later;
  for (int i = 0; i < 4; ++i) rig.transfer.Put(later.emplace_back(s, kBytes).address(), other);
  rig.fence.Await(1);
  rig.transfer.Expect(rig.slab.address(), want, "memory was given to others before its last use");
}

void CheckRanges(BackendUnderTest& s) {
  const mge_memory_api& m = *s.plugin().memory;
  if (!m.range_granularity) NotOffered("no virtual memory");
  const uint64_t unit = m.range_granularity(s.device());
  if (unit == 0) NotOffered("no virtual memory with these settings");
  Transfer transfer(s);
  auto range = Sized<mge_slab>();
  Call("reserving a range", m.range_reserve, s.device(), 4 * unit, &range);
  auto* base = static_cast<unsigned char*>(range.address);
  const size_t probe = static_cast<size_t>(std::min<uint64_t>(unit, 65536));
  auto commit = [&](uint64_t part, uint64_t count) {
    Call("committing", m.range_commit, s.device(), &range, part * unit, count * unit);
  };
  auto refused = [&](std::string_view what, uint64_t offset) {
    MustFail(MGE_OK, what, m.range_commit, s.device(), &range, offset, unit);
  };
  auto check = [&](uint64_t part, std::string_view what) {
    const Bytes want = Pattern(probe, static_cast<unsigned>(part));
    transfer.Put(base + part * unit, want);
    transfer.Expect(base + part * unit, want, fmt::format("{}: what was written is not read back", what));
  };
  commit(0, 1);
  transfer.CheckHostAddress(base, range.host_address, probe, "a range");
  commit(2, 2);
  for (uint64_t part : {0, 2, 3}) check(part, "committed memory");
  if (unit > 1) refused("committing at half the granularity", unit + unit / 2);
  refused("committing behind the end of a range", 4 * unit);
  m.range_decommit(s.device(), &range, 2 * unit, unit);
  check(3, "memory beside what was decommitted");
  commit(2, 1);
  check(2, "memory that was committed again");
  m.range_decommit(s.device(), &range, 0, unit);
  m.range_decommit(s.device(), &range, 2 * unit, 2 * unit);
  m.range_release(s.device(), &range);
}

// Wraps the handle of a slab, as an application would that has created it with the driver, and runs a kernel there.
void CheckHandles(BackendUnderTest& s) {
  const auto& api = *static_cast<const mge_memory_handles_api*>(ExtensionOf(s, MGE_MEMORY_HANDLES_EXTENSION));
  const std::optional<SupportedCase> first = FirstSupportedCase(s);
  if (!first) NotOffered("the backend has no kernel");
  Bench bench(s);
  KernelRun run(bench, first->c, first->candidate);
  const mge_slab& own = bench.slab.raw();
  if (!own.handle) NotOffered("slabs of the backend have no handle");
  auto wrapped = Sized<mge_slab>();
  Call("wrapping a handle", api.wrap, s.device(), own.handle, own.bytes, &wrapped);
  if (!wrapped.address || reinterpret_cast<uintptr_t>(wrapped.address) % bench.alignment() != 0)
    Broken("the address of a wrapped handle, {}, is NULL or not aligned to {}", wrapped.address, bench.alignment());
  Transfer& transfer = bench.transfers[0];
  transfer.CheckHostAddress(wrapped.address, wrapped.host_address, 64, "memory wrapped by its handle");
  unsigned char* const lane = std::exchange(bench.first_lane, static_cast<unsigned char*>(wrapped.address));
  run.RunSet(0, 1, 0xff);
  const Bytes content = transfer.Get(wrapped.address, bench.lane_bytes);
  InBackend("unwrapping a handle", api.unwrap, s.device(), &wrapped);
  transfer.Expect(bench.slab.address(), content, "memory wrapped by its handle is another memory, or is lost by unwrapping");
  bench.first_lane = lane;
  run.RunSet(1, 1, 0xff);
}

// Checks decisions for devices of several sizes, for a new pool and for a plan.
void CheckReserve(BackendUnderTest& s) {
  const mge_reserve_api* api = s.plugin().memory->own_reserve;
  if (!api) NotOffered("the backend uses a reserve policy of the host's");
  for (uint64_t total : {uint64_t{0}, 4 * kMiB, 80 * 1024 * kMiB}) {
    for (uint32_t pressure : {MGE_PRESSURE_NONE, MGE_PRESSURE_MODERATE, MGE_PRESSURE_CRITICAL}) {
      for (uint64_t arena : {uint64_t{0}, 10 * kMiB}) {
        const mge_plan_summary plan = {sizeof(plan), 1,     arena, arena / 2, kMiB,
                                       total / 2,    total, 0,     pressure,  MGE_MEMORY_DEVICE};
        auto first = Sized<mge_reserve_decision>(), second = first;
        for (mge_reserve_decision* out : {&first, &second}) Call("deciding a reserve", api->decide, s.device(), &plan, out);
        if (std::memcmp(&first, &second, sizeof(first)) != 0)
          Broken("a second request for the same plan gets another decision");
        if (total && (first.keep_free > total || first.initial > total))
          Broken("the decision exceeds the device's {} bytes", total);
        if (first.cap && first.initial > first.cap)
          Broken("{} bytes are to be taken before the first run, and {} at most", first.initial, first.cap);
      }
    }
  }
}

constexpr Check kMemoryChecks[] = {
    {"memory.slabs", "Slabs are aligned, disjoint and large enough, and keep their content, also if the host writes it.",
     CheckSlabs},
    {"memory.too_much", "Too large a request fails with MGE_RESOURCE_EXHAUSTED, and the device keeps working.",
     CheckTooMuch},
    {"memory.release_after", "A slab released in stream order is not reused before its last use.", CheckReleaseAfter},
    {"memory.ranges", "Committed parts of virtual memory ranges keep their content.", CheckRanges},
    {"memory.handles",
     "Memory wrapped by its handle is that memory: kernels and copies use it, and it outlives the wrapping.", CheckHandles},
    {"reserve.pure", "A reserve decision depends only on the plan, and does not exceed the device's memory.", CheckReserve},
};

}  // namespace

std::span<const Check> MemoryChecks() { return kMemoryChecks; }

}  // namespace mge::conform
