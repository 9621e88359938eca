// SPDX-License-Identifier: Apache-2.0
// Checks of slabs, failures for lack of memory, stream-ordered release, ranges of virtual memory, and the reserve policy.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/conform/device_memory.h"
#include "core/conform/kernel_run.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr uint64_t kMiB = 1 << 20;

absl::Status RoundTrip(Transfer& transfer, void* address, size_t bytes, unsigned seed, std::string_view what) {
  const Bytes want = Pattern(bytes, seed);
  MGE_RETURN_IF_ERROR(transfer.Put(address, want));
  return transfer.Expect(address, want, fmt::format("{}: what was written is not read back", what));
}

absl::Status CheckSlabs(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  std::vector<Slab> slabs;
  const uint64_t sizes[] = {1, 63, 64, 65, 4096, 70001, kMiB + 1};
  for (uint64_t bytes : sizes) {
    MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, bytes));
    const mge_slab& raw = slab.raw();
    if (reinterpret_cast<uintptr_t>(raw.address) % 64 != 0) return Broken("a slab of {} bytes is not aligned to 64", bytes);
    if (raw.bytes < bytes) return Broken("a slab of {} bytes was asked for, it says {}", bytes, raw.bytes);
    if (raw.memory_class != MGE_MEMORY_DEVICE) return Broken("a slab says another memory class than was asked for");
    if (s.host_accessible() && raw.host_address != raw.address) {
      return Broken("the device says HOST_ACCESSIBLE, but the host address of a slab is another one");
    }
    slabs.push_back(std::move(slab));
  }
  for (size_t i = 0; i < slabs.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (slabs[i].address() < slabs[k].address() + sizes[k] && slabs[k].address() < slabs[i].address() + sizes[i]) {
        return Broken("two slabs, of {} and {} bytes, overlap", sizes[k], sizes[i]);
      }
    }
  }
  for (size_t i = 0; i < slabs.size(); ++i) {
    MGE_RETURN_IF_ERROR(RoundTrip(transfer, slabs[i].address(), sizes[i], static_cast<unsigned>(i),
                                  fmt::format("slab of {} bytes", sizes[i])));
    MGE_RETURN_IF_ERROR(transfer.CheckHostAddress(slabs[i].address(), slabs[i].raw().host_address, sizes[i],
                                                  fmt::format("a slab of {} bytes", sizes[i])));
  }
  return absl::OkStatus();
}

absl::Status CheckPinned(BackendUnderTest& s) {
  auto probe = Sized<mge_slab>();
  constexpr uint64_t kBytes = 4097;
  const mge_memory_api& memory = *s.plugin().memory;
  const mge_error result =
      Try("acquiring pinned memory", memory.slab_acquire, s.device(), MGE_MEMORY_PINNED, kBytes, &probe);
  if (result.code == MGE_UNIMPLEMENTED) return NotOffered("no pinned memory: " + result.text);
  MGE_RETURN_IF_ERROR(Answer(result, "acquiring pinned memory"));
  if (!probe.host_address) return Broken("pinned memory has no host address");
  auto* at = static_cast<unsigned char*>(probe.host_address);
  const Bytes want = Pattern(kBytes, 5);
  std::copy(want.begin(), want.end(), at);
  absl::Status same = Same({at, kBytes}, want, "pinned memory does not hold what the host writes");
  memory.slab_release(s.device(), &probe);
  return same;
}

absl::Status CheckTooMuch(BackendUnderTest& s) {
  for (uint64_t bytes : {uint64_t{1} << 60, UINT64_MAX - 7, UINT64_MAX}) {
    auto slab = Sized<mge_slab>();
    MGE_RETURN_IF_ERROR(MustFail(MGE_RESOURCE_EXHAUSTED, fmt::format("acquiring {} bytes", bytes),
                                 s.plugin().memory->slab_acquire, s.device(), MGE_MEMORY_DEVICE, bytes, &slab));
  }
  return CheckSlabs(s);
}

absl::Status CheckInfo(BackendUnderTest& s) {
  uint64_t free = UINT64_MAX, total = UINT64_MAX;
  s.plugin().memory->memory_info(s.device(), &free, &total);
  if (free == UINT64_MAX || total == UINT64_MAX) return Broken("memory_info does not write both numbers");
  if (total == 0) return NotOffered("the backend does not know how much memory there is");
  return free <= total ? absl::OkStatus() : Broken("it reports {} free bytes of {} in total", free, total);
}

absl::Status CheckHostFailures(BackendUnderTest& s) {
  auto begin = std::chrono::steady_clock::now();
  MGE_RETURN_IF_ERROR(LiveOnce(s));
  const uint64_t requests = s.host().requests();
  if (requests == 0) return NotOffered("the backend takes no memory from the host");
  double life = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  // If there is not enough time for all requests, selects evenly spaced ones, including the first and the last.
  int count = s.reporter().Fit(static_cast<int>(std::min<uint64_t>(requests, 500)), 2 * life);
  for (int i = 0; i < count; ++i) {
    uint64_t n = 1 + (count > 1 ? static_cast<uint64_t>(i) * (requests - 1) / static_cast<uint64_t>(count - 1) : 0);
    s.At("host->allocate fails at request {}", n);
    s.host().FailAt(n);
    absl::Status status = LiveOnce(s);
    s.host().FailAt(0);
    if (Std(status.message()).find("no text") != std::string_view::npos) {
      return Broken("with request {} of {} for host memory refused, an error comes without a text: {}", n, requests,
                    Std(status.message()));
    }
    s.At("a good run after request {} failed", n);
    MGE_RETURN_IF_ERROR(LiveOnce(s));
    if (s.host().outstanding() != 0)
      return Broken("after request {} for host memory was refused, {} blocks are not released", n, s.host().outstanding());
  }
  return absl::OkStatus();
}

absl::Status CheckReleaseAfter(BackendUnderTest& s) {
  const mge_memory_api& memory = *s.plugin().memory;
  if (!memory.slab_release_after) return NotOffered("the slot slab_release_after is empty");
  if (!s.plugin().queue) return Broken("stream-ordered release without queues");
  constexpr size_t kBytes = 65536;
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  MGE_ASSIGN_OR_RETURN(Slab source, Slab::Acquire(s, kBytes));
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, kBytes));
  const Bytes want = Pattern(kBytes, 3), other = Pattern(kBytes, 4);
  MGE_RETURN_IF_ERROR(rig.transfer.Put(source.address(), want));
  MGE_RETURN_IF_ERROR(work.Enqueue(rig.queue, std::chrono::milliseconds(50)));
  MGE_RETURN_IF_ERROR(rig.queue.Copy(rig.slab.address(), source.address(), kBytes));
  MGE_RETURN_IF_ERROR(rig.queue.Signal(rig.fence, 1));
  source.ReleaseAfter(rig.fence, 1);
  std::vector<Slab> later;
  for (int i = 0; i < 4; ++i) {
    MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, kBytes));
    MGE_RETURN_IF_ERROR(rig.transfer.Put(slab.address(), other));
    later.push_back(std::move(slab));
  }
  MGE_RETURN_IF_ERROR(rig.fence.Await(1));
  return rig.transfer.Expect(rig.slab.address(), want, "memory was given to others before its last use");
}

absl::Status CheckRanges(BackendUnderTest& s) {
  const mge_memory_api& m = *s.plugin().memory;
  if (!m.range_granularity && !m.range_reserve) return NotOffered("no virtual memory");
  if (!m.range_granularity || !m.range_reserve || !m.range_release || !m.range_commit || !m.range_decommit) {
    return Broken("some of the slots of virtual memory are filled, some are not");
  }
  const uint64_t unit = m.range_granularity(s.device());
  if (unit == 0) return NotOffered("no virtual memory with these settings");
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  auto range = Sized<mge_slab>();
  MGE_RETURN_IF_ERROR(Call("reserving a range", m.range_reserve, s.device(), 4 * unit, &range));
  auto commit = [&](uint64_t offset, uint64_t bytes) {
    return Call("committing", m.range_commit, s.device(), &range, offset, bytes);
  };
  auto refused = [&](std::string_view what, uint64_t offset) {
    return MustFail(MGE_OK, what, m.range_commit, s.device(), &range, offset, unit);
  };
  auto* base = static_cast<unsigned char*>(range.address);
  size_t probe = static_cast<size_t>(std::min<uint64_t>(unit, 65536));
  MGE_RETURN_IF_ERROR(commit(0, unit));
  MGE_RETURN_IF_ERROR(transfer.CheckHostAddress(base, range.host_address, probe, "a range"));
  MGE_RETURN_IF_ERROR(commit(2 * unit, 2 * unit));
  for (uint64_t part : {uint64_t{0}, 2 * unit, 3 * unit}) {
    MGE_RETURN_IF_ERROR(RoundTrip(transfer, base + part, probe, static_cast<unsigned>(part / unit), "committed memory"));
  }
  if (unit > 1) MGE_RETURN_IF_ERROR(refused("committing at half the granularity", unit + unit / 2));
  MGE_RETURN_IF_ERROR(refused("committing behind the end of a range", 4 * unit));
  m.range_decommit(s.device(), &range, 2 * unit, unit);
  MGE_RETURN_IF_ERROR(RoundTrip(transfer, base + 3 * unit, probe, 8, "memory beside what was decommitted"));
  MGE_RETURN_IF_ERROR(commit(2 * unit, unit));
  MGE_RETURN_IF_ERROR(RoundTrip(transfer, base + 2 * unit, probe, 9, "memory that was committed again"));
  m.range_decommit(s.device(), &range, 0, unit);
  m.range_decommit(s.device(), &range, 2 * unit, 2 * unit);
  m.range_release(s.device(), &range);
  return absl::OkStatus();
}

// Checks decisions for devices of several sizes, for a new pool and for a plan.
absl::Status CheckReserve(BackendUnderTest& s) {
  const mge_reserve_api* api = s.plugin().memory->own_reserve;
  if (!api) return NotOffered("the backend uses a reserve policy of the host's");
  for (uint64_t total : {uint64_t{0}, 4 * kMiB, 80 * 1024 * kMiB}) {
    for (uint32_t pressure : {MGE_PRESSURE_NONE, MGE_PRESSURE_MODERATE, MGE_PRESSURE_CRITICAL}) {
      for (uint64_t arena : {uint64_t{0}, 10 * kMiB}) {
        const mge_plan_summary plan = {sizeof(plan), 1,     arena, arena / 2, kMiB,
                                       total / 2,    total, 0,     pressure,  MGE_MEMORY_DEVICE};
        auto first = Sized<mge_reserve_decision>(), second = first;
        for (mge_reserve_decision* out : {&first, &second})
          MGE_RETURN_IF_ERROR(Call("deciding a reserve", api->decide, s.device(), &plan, out));
        if (std::memcmp(&first, &second, sizeof(first)) != 0)
          return Broken("a second request for the same plan gets another decision");
        if (total && (first.keep_free > total || first.initial > total))
          return Broken("the decision exceeds the device's {} bytes", total);
        if (first.cap && first.initial > first.cap)
          return Broken("{} bytes are to be taken before the first run, and {} at most", first.initial, first.cap);
      }
    }
  }
  return absl::OkStatus();
}

constexpr Check kRows[] = {
    {"memory.slabs", "Slabs are aligned, disjoint and large enough, and keep their content, also if the host writes it.",
     CheckSlabs},
    {"memory.pinned", "Pinned memory can be read and written by the host.", CheckPinned},
    {"memory.too_much", "A request for too much memory fails with MGE_RESOURCE_EXHAUSTED, and the device keeps working.",
     CheckTooMuch},
    {"memory.info", "The free memory does not exceed the total memory.", CheckInfo},
    {"memory.host_failures", "If the host has no memory, an error is returned, and the next use works.", CheckHostFailures,
     Needs::kLives},
    {"memory.release_after", "A slab released in stream order is not reused before its last use.", CheckReleaseAfter},
    {"memory.ranges", "Committed parts of virtual memory ranges keep their content.", CheckRanges},
    {"reserve.pure", "A reserve decision depends only on the plan, and does not exceed the device's memory.", CheckReserve},
};

}  // namespace

std::span<const Check> MemoryChecks() { return kRows; }

}  // namespace mge::conform
