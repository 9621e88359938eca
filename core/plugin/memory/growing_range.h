// SPDX-License-Identifier: Apache-2.0
// GrowingRange: one range of addresses with memory under the parts that are needed, for the pool "growing".
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "core/base/status.h"
#include "core/plugin/memory/slab_provider.h"

namespace mge {

// Addresses far beyond the device's size, so that what is committed next always follows what was committed last, and holes
// that were given back need not be filled again for a large request to fit. Not thread-safe.
class GrowingRange {
 public:
  struct Piece {
    uint64_t offset;
    uint64_t bytes;
  };

  // nullptr where the provider has no virtual memory, or gives no addresses.
  static std::unique_ptr<GrowingRange> Reserve(SlabProvider* provider);
  ~GrowingRange();  // what is still committed goes back

  // The addresses; lives as long as this object.
  const mge_slab* slab() const { return &range_; }

  // Memory so that a free block of `bytes` exists, when the last `tail` bytes before the end of what is committed are free.
  // The piece is whole granules: at the end, or a hole. kOutOfMemory, kOverBudget; nullopt if the addresses are used up.
  absl::StatusOr<std::optional<Piece>> Commit(uint64_t bytes, uint64_t tail);
  // Gives the whole granules inside of [offset, offset + bytes) back and answers them; bytes 0 if there are none, or no
  // memory to note that they are gone.
  Piece Decommit(uint64_t offset, uint64_t bytes) noexcept;

  uint64_t granularity() const { return granularity_; }
  uint64_t end() const { return end_; }  // what lies beyond was never committed, or is not any more

 private:
  GrowingRange(SlabProvider* provider, const mge_slab& range, uint64_t granularity)
      : provider_(provider), range_(range), granularity_(granularity) {}

  SlabProvider* const provider_;
  const mge_slab range_;
  const uint64_t granularity_;
  uint64_t end_ = 0;
  std::map<uint64_t, uint64_t> holes_;  // below end_: offset, bytes; never two side by side
};

}  // namespace mge
