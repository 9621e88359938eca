// SPDX-License-Identifier: Apache-2.0
// Functions that all pools use: checks of a request, alignment, and the rule for when a released block may be reused.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/status.h"
#include "core/plugin/memory/pool.h"
#include "fmt/format.h"

namespace mge {

inline bool IsGoodRequest(uint64_t alignment, uint32_t flags) {
  return std::has_single_bit(alignment) && alignment <= (uint64_t{1} << 30) && (flags & ~MGE_POOL_KNOWN_BITS) == 0;
}

// Checks a request of MGE's own code. An invalid request is a bug in MGE.
inline void CheckRequest(uint64_t alignment, uint32_t flags) { MGE_CHECK(IsGoodRequest(alignment, flags)); }

inline uintptr_t AlignUp(uintptr_t n, uint64_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

inline mge_reservation NoMemory() {
  mge_reservation none = {};
  none.struct_size = sizeof(none);
  return none;
}

// Returns a size in which `bytes` fit at the alignment, if the slab begins at a multiple of `begin`. `bytes` must be at most
// kLargestRequest.
inline uint64_t PaddedSize(uint64_t bytes, uint64_t alignment, uint64_t begin) {
  return alignment > begin ? bytes + (alignment - begin) : bytes;
}

// A part of a slab that a pool hands out: `bytes` from `address` on. It may be used when `ready` has reached `ready_value`,
// or at once if `ready` is nullptr.
struct Piece {
  const mge_slab* slab;
  uintptr_t address;
  uint64_t bytes;
  mge_fence* ready = nullptr;
  uint64_t ready_value = 0;
};

// Converts a piece to a reservation. Builds it directly in the returned object: copying a struct right after its members
// were stored would wait for those stores.
inline absl::StatusOr<mge_reservation> Reservation(const Piece& piece, const void* token) {
  absl::StatusOr<mge_reservation> out(mge_reservation{});
  const uintptr_t offset = piece.address - reinterpret_cast<uintptr_t>(piece.slab->address);
  out->struct_size = sizeof(mge_reservation);
  out->address = reinterpret_cast<void*>(piece.address);
  out->host_address = piece.slab->host_address ? static_cast<char*>(piece.slab->host_address) + offset : nullptr;
  out->bytes = piece.bytes;
  out->token = reinterpret_cast<uintptr_t>(token);
  out->ready = piece.ready;
  out->ready_value = piece.ready_value;
  return out;
}

// Returns whether memory with the last use `last` may be reused by work that starts after `after` (optional).
inline bool IsFree(const mge_fence_point& last, const mge_fence_point* after, const SlabProvider& provider) {
  if (after && after->fence && after->fence == last.fence && after->value >= last.value) return true;
  return provider.Reached(last, false);
}

// Returns the fence point until which a released reservation is in use. If `last_use` is nullptr, that is the point that the
// reservation itself had to wait for, because it may be released without having waited.
inline mge_fence_point LastUseOf(const mge_reservation& reservation, const mge_fence_point* last_use) {
  if (last_use) return *last_use;
  return {sizeof(mge_fence_point), 0, reservation.ready, reservation.ready_value};
}

inline absl::Status TooLarge(uint64_t bytes) {
  return Fail(errors::kOutOfMemory, "the request is larger than any device", {.what = fmt::format("{} bytes", bytes)});
}

inline absl::Status GrowthForbidden(std::string_view pool, uint64_t bytes) {
  return Fail(errors::kGrowthRequired, fmt::format("the pool '{}' holds no free block for this request", pool),
              {.what = fmt::format("{} bytes were asked for, and the request allows no growth", bytes)});
}

}  // namespace mge
