// SPDX-License-Identifier: Apache-2.0
// GrowingRange: one reserved range of addresses in which parts are committed as needed. Used by the pool "growing".
//
// Why: in one range, committed memory always extends the memory before it. A large request can use the joined memory,
// although it was committed in small steps.
//
// Algorithm: reserve 16 times the device's memory as addresses. Commit() uses the smallest hole (decommitted part) that is
// large enough, else commits at the end. Because addresses are plentiful, holes need not be filled before the end grows.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "core/base/status.h"
#include "core/plugin/memory/slab_provider.h"

namespace mge {

// A range of addresses of a device with virtual memory. All sizes are in bytes. Not thread-safe.
class GrowingRange {
 public:
  struct Piece {
    uint64_t offset;
    uint64_t bytes;
  };

  // Reserves a range. Returns nullptr if the provider has no virtual memory or no addresses. `provider` must outlive the
  // range.
  static std::unique_ptr<GrowingRange> Reserve(SlabProvider* provider);
  ~GrowingRange();  // decommits all memory and releases the addresses

  // The reserved addresses. Valid for the lifetime of this object.
  const mge_slab* slab() const { return &range_; }

  // Commits memory such that a free block of `bytes` exists. `tail` is the free memory directly before end(). The result is
  // whole granules, in a hole or at the end. Returns nullopt if the addresses are used up. Fails with kOutOfMemory or
  // kOverBudget.
  absl::StatusOr<std::optional<Piece>> Commit(uint64_t bytes, uint64_t tail);
  // Decommits the whole granules inside [offset, offset + bytes) and returns them. Returns 0 bytes if there are none, or if
  // there is no memory to record the hole.
  Piece Decommit(uint64_t offset, uint64_t bytes) noexcept;

  uint64_t granularity() const { return granularity_; }
  uint64_t end() const { return end_; }  // nothing at or beyond this offset is committed

 private:
  GrowingRange(SlabProvider* provider, const mge_slab& range, uint64_t granularity)
      : provider_(provider), range_(range), granularity_(granularity) {}

  SlabProvider* const provider_;
  const mge_slab range_;
  const uint64_t granularity_;
  uint64_t end_ = 0;
  std::map<uint64_t, uint64_t> holes_;  // decommitted parts below end_: offset, bytes; adjacent holes are joined
};

}  // namespace mge
