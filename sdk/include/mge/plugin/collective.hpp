// SPDX-License-Identifier: Apache-2.0
// Collectives: the transport between the devices of one or several processes. A rank is one device in a group of devices.
//
//   class Communicator {                       // one rank of a group
//    public:
//     // Writes an id for one group of ranks. The user passes it to each of them.
//     static mge::Result UniqueId(mge::UniqueId out);
//     Communicator(Device&, mge::ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns);
//     mge::Result Init();                      // returns when all ranks have called it, or fails after the timeout
//     void Abort();                            // ends pending and later operations with MGE_CANCELLED; from any thread
//     static mge::Result GroupBegin();         // operations of this thread until GroupEnd() start together
//     static mge::Result GroupEnd();
//     // Enqueue. A rank that fails, or does not take part within the timeout, fails the queue with MGE_UNAVAILABLE.
//     mge::Result AllReduce(Queue&, const void* from, void* to, uint64_t count, mge_dtype, int32_t reduction);
//     mge::Result Broadcast(Queue&, const void* from, void* to, uint64_t count, mge_dtype, uint32_t root);
//   };
#pragma once

#include <cstdint>
#include <span>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

using UniqueId = std::span<uint8_t, MGE_UNIQUE_ID_BYTES>;
using ConstUniqueId = std::span<const uint8_t, MGE_UNIQUE_ID_BYTES>;

namespace internal {

// The table of B::Communicator.
template <typename B>
struct CollectiveTable {
  using C = typename B::Communicator;
  using Q = typename B::Queue;
  static mge_code NewId(uint8_t* out, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return C::UniqueId(UniqueId(out, MGE_UNIQUE_ID_BYTES)); });
  }
  static mge_code Create(mge_device* device, const uint8_t* id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns,
                         mge_communicator** out, mge_error* error) noexcept {
    return Make<C>(out, error, As<typename B::Device>(device), ConstUniqueId(id, MGE_UNIQUE_ID_BYTES), rank, ranks,
                   timeout_ns);
  }
  static void Abort(mge_communicator* communicator) noexcept {
    Quietly([&] { As<C>(communicator).Abort(); });
  }
  static mge_code GroupBegin(mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return C::GroupBegin(); });
  }
  static mge_code GroupEnd(mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return C::GroupEnd(); });
  }
  static mge_code AllReduce(mge_communicator* communicator, mge_queue* queue, const void* source, void* destination,
                            uint64_t count, mge_dtype dtype, int32_t reduction, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result {
      return As<C>(communicator).AllReduce(As<Q>(queue), source, destination, count, dtype, reduction);
    });
  }
  static mge_code Broadcast(mge_communicator* communicator, mge_queue* queue, const void* source, void* destination,
                            uint64_t count, mge_dtype dtype, uint32_t root, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result {
      return As<C>(communicator).Broadcast(As<Q>(queue), source, destination, count, dtype, root);
    });
  }
  static constexpr mge_collective_api Api() {
    return Table<mge_collective_api>([](auto& t) {
      t.unique_id = NewId;
      t.create = Create;
      t.abort = Abort;
      t.destroy = Unmake<C, mge_communicator>;
      t.group_begin = GroupBegin;
      t.group_end = GroupEnd;
      t.all_reduce = AllReduce;
      t.broadcast = Broadcast;
    });
  }
};

}  // namespace internal

}  // namespace MGE_HIDDEN
