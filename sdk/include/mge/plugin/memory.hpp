// SPDX-License-Identifier: Apache-2.0
// Memory: the driver's calls. They are called rarely, because pools keep memory. The host charges the budget before each
// call.
//
//   struct Memory {
//     static mge::Result Acquire(Device&, int32_t memory_class, uint64_t bytes, mge_slab* out);
//     static void Release(Device&, const mge_slab& slab);
//     static mge::MemoryAmount Info(Device&);
//     // optional: a stream-ordered release, which returns at once although the slab is in use until `last_use`
//     static void ReleaseAfter(Device&, const mge_slab& slab, const mge_fence_point& last_use);
//     // optional, all or none: a range of addresses, with memory committed to parts of it
//     static uint64_t RangeGranularity(Device&);
//     static mge::Result RangeReserve(Device&, uint64_t bytes, mge_slab* out);
//     static void RangeRelease(Device&, const mge_slab& range);
//     static mge::Result RangeCommit(Device&, const mge_slab& range, uint64_t offset, uint64_t bytes);
//     static void RangeDecommit(Device&, const mge_slab& range, uint64_t offset, uint64_t bytes);
//   };
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "mge/plugin/host_limits.hpp"
#include "mge/plugin/pool.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Creates the slab that Acquire returns. `host_address` is NULL if the host cannot access the memory.
inline mge_slab MakeSlab(int32_t memory_class, uint64_t bytes, void* address, void* host_address, void* handle = nullptr) {
  return {sizeof(mge_slab), memory_class, address, host_address, handle, bytes};
}

// Plain host memory: ready-made, for devices that share it (MGE_DEVICE_HOST_ACCESSIBLE).
struct HostMemory {
  static constexpr uint64_t kAlignment = 4096;  // the largest buffer_alignment, which slabs have, too
  template <typename Device>
  static Result Acquire(Device&, int32_t memory_class, uint64_t bytes, mge_slab* out) {
    void* address = nullptr;
    if (posix_memalign(&address, kAlignment, bytes) != 0)
      return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes of memory"};
    *out = MakeSlab(memory_class, bytes, address, address);
    return {};
  }
  template <typename Device>
  static void Release(Device&, const mge_slab& slab) {
    std::free(slab.address);
  }
  template <typename Device>
  static MemoryAmount Info(Device&) {
    return {};
  }
};

namespace internal {

// The table of B::Memory, B::Pool and B::Reserve.
template <typename B>
struct MemoryTable {
  using D = typename B::Device;
  using M = typename B::Memory;
  static mge_code Acquire(mge_device* device, int32_t memory_class, uint64_t bytes, mge_slab* out,
                          mge_error* error) noexcept {
    if (!KnownClass(memory_class)) return RefuseClass(error);
    return FillOut(error, out, [&](mge_slab* slab) { return M::Acquire(As<D>(device), memory_class, bytes, slab); });
  }
  static void Release(mge_device* device, const mge_slab* slab) noexcept {
    Quietly([&] { M::Release(As<D>(device), Whole(*slab)); });
  }
  static void Info(mge_device* device, uint64_t* free_bytes, uint64_t* total_bytes) noexcept {
    MemoryAmount amount = Quietly([&]() -> MemoryAmount { return M::Info(As<D>(device)); });
    *free_bytes = amount.free_bytes;
    *total_bytes = amount.total_bytes;
  }
  static void ReleaseAfter(mge_device* device, const mge_slab* slab, const mge_fence_point* last_use) noexcept {
    Quietly([&] { M::ReleaseAfter(As<D>(device), Whole(*slab), Whole(*last_use)); });
  }
  static uint64_t RangeGranularity(mge_device* device) noexcept {
    return Quietly([&]() -> uint64_t { return M::RangeGranularity(As<D>(device)); });
  }
  static mge_code RangeReserve(mge_device* device, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
    return FillOut(error, out, [&](mge_slab* range) { return M::RangeReserve(As<D>(device), bytes, range); });
  }
  static void RangeRelease(mge_device* device, const mge_slab* range) noexcept {
    Quietly([&] { M::RangeRelease(As<D>(device), Whole(*range)); });
  }
  static mge_code RangeCommit(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes,
                              mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return M::RangeCommit(As<D>(device), Whole(*range), offset, bytes); });
  }
  static void RangeDecommit(mge_device* device, const mge_slab* range, uint64_t offset, uint64_t bytes) noexcept {
    Quietly([&] { M::RangeDecommit(As<D>(device), Whole(*range), offset, bytes); });
  }

  static constexpr mge_memory_api Api() {
    return Table<mge_memory_api>([](auto& t) {
      t.slab_acquire = Acquire;
      t.slab_release = Release;
      t.memory_info = Info;
      if constexpr (requires { B::Pool::kReadyMade; }) {
        t.pool = Text(B::Pool::kReadyMade);
      } else {
        t.own_pool = &PoolTable<D, typename B::Pool>::kApi;
      }
      if constexpr (requires { B::Reserve::kReadyMade; }) {
        t.reserve = Text(B::Reserve::kReadyMade);
      } else {
        t.own_reserve = &ReserveTable<D, typename B::Reserve>::kApi;
      }
      if constexpr (requires { &M::ReleaseAfter; }) t.slab_release_after = ReleaseAfter;
      if constexpr (requires { &M::RangeReserve; }) {
        t.range_granularity = RangeGranularity;
        t.range_reserve = RangeReserve;
        t.range_release = RangeRelease;
        t.range_commit = RangeCommit;
        t.range_decommit = RangeDecommit;
      }
    });
  }
};

}  // namespace internal
}  // namespace MGE_HIDDEN
