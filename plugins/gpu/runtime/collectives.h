// SPDX-License-Identifier: Apache-2.0
// Collectives by NCCL, or by RCCL, which has the same functions. The library is opened when the first group is made.
//
// A communicator does not block the host. Its operations wait on the device for the other ranks. If the library reports an
// error, or the time limit has passed since the operations were enqueued, the communicator is aborted. That ends them, and
// the wait for a fence behind them fails.
#pragma once

#include <memory>

#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/runtime/vendor_library.h"

namespace mge::gpu {

// One rank of a group of devices, in one or several processes.
class Communicator {
 public:
  static Result UniqueId(mge::UniqueId out);
  Communicator(Device& device, ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  Result Init();
  void Abort();
  static Result GroupBegin();
  static Result GroupEnd();
  // The library has no 16-bit integers.
  Result AllReduce(Queue& queue, const void* from, void* to, uint64_t count, mge_dtype dtype, int32_t reduction);
  Result Broadcast(Queue& queue, const void* from, void* to, uint64_t count, mge_dtype dtype, uint32_t root);

 private:
  class State;
  template <typename F>
  Result Enqueue(Queue& queue, const char* name, F&& call);

  std::shared_ptr<State> state_;
  const uint32_t rank_, ranks_;
  uint8_t id_[MGE_UNIQUE_ID_BYTES];
};

}  // namespace mge::gpu
