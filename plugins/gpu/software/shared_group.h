// SPDX-License-Identifier: Apache-2.0
// SharedGroup: one rank of a group of devices that exchange data through shared memory, in one or in several processes.
//
// The memory holds a header and two pieces per rank. An operation is a sequence of steps, one per piece. In a step each rank
// writes its piece, waits until all ranks have written theirs, and combines them in the order of the ranks, so that all
// ranks get equal bits. A rank may write to a piece again when all ranks have read it: with two pieces, one step later.
//
// A rank that ends, aborts or fails says so in the header. A rank that is killed says nothing: the others wait for the
// timeout. After a failure the group cannot be used.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

#include "mge/plugin.hpp"

namespace mge::software {

// An operation. All ranks must call the same ones in the same order.
struct Exchange {
  enum class Kind : uint32_t { kReduce = 1, kBroadcast = 2 };
  Kind kind = Kind::kReduce;
  mge_dtype dtype = MGE_DTYPE_UNDEFINED;
  int32_t reduction = MGE_REDUCE_SUM;  // kReduce
  uint32_t root = 0;                   // kBroadcast: the rank that has the source
  uint64_t count = 0;                  // elements

  bool operator==(const Exchange&) const = default;
};

// One rank of a group. One thread at a time may call Run(); Abort() is [any].
class SharedGroup {
 public:
  // Writes the id of a new group.
  static Result NewId(UniqueId out);

  SharedGroup() = default;
  ~SharedGroup();
  SharedGroup(const SharedGroup&) = delete;
  SharedGroup& operator=(const SharedGroup&) = delete;

  // Joins the group. Returns when all ranks have joined. Fails with MGE_INVALID_ARGUMENT for a wrong id or rank, and with
  // MGE_UNAVAILABLE if the others have not joined within the timeout.
  Result Join(ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns);
  // Takes part in an operation. Fails with MGE_UNAVAILABLE if another rank fails or does not take part within the timeout.
  Result Run(const Exchange& exchange, void* destination, const void* source);
  // Ends the pending operation and all later ones with MGE_CANCELLED, and fails the operations of the other ranks.
  void Abort();
  uint32_t ranks() const { return ranks_; }

 private:
  struct Header;
  struct Rank;
  template <typename F>
  Result WaitForAll(const char* what, F&& reached);
  Result Fail(mge_code code, std::string text);
  Rank& At(uint32_t rank) const;
  char* PieceOf(uint32_t rank, uint64_t step) const;

  std::string name_;
  void* memory_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t rank_ = 0, ranks_ = 0;
  std::chrono::nanoseconds timeout_{0};
  uint64_t step_ = 0;  // steps of all operations so far
  std::atomic<bool> aborted_{false};
};

}  // namespace mge::software
