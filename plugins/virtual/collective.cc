// SPDX-License-Identifier: Apache-2.0
// Communicators: collectives between virtual devices through shared memory.
#include <algorithm>
#include <utility>

#include "backend.h"
#include "plugins/gpu/software/reduce.h"

namespace mge::virtual_gpu {
namespace {

thread_local int t_groups = 0;  // groups of this thread that are open

}  // namespace

// One operation, which a queue's thread runs.
class Communicator::Work : public software::HostWork {
 public:
  Work(std::shared_ptr<software::SharedGroup> group, const software::Exchange& exchange)
      : group_(std::move(group)), exchange_(exchange) {}
  Result Run(const software::HostWorkCall& call) override { return group_->Run(exchange_, call.destination, call.source); }

 private:
  std::shared_ptr<software::SharedGroup> group_;
  software::Exchange exchange_;
};

Communicator::Communicator(Device& device, ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns)
    : device_(device),
      rank_(rank),
      ranks_(ranks),
      timeout_ns_(timeout_ns),
      group_(std::make_shared<software::SharedGroup>()) {
  std::copy(id.begin(), id.end(), id_.begin());
}

Result Communicator::Init() {
  if (Result r = device_.Health(); !r.ok()) return r;
  return group_->Join(id_, rank_, ranks_, timeout_ns_);
}

void Communicator::Abort() { group_->Abort(); }

Result Communicator::GroupBegin() {
  ++t_groups;
  return {};
}

Result Communicator::GroupEnd() {
  if (t_groups == 0) return {MGE_FAILED_PRECONDITION, "no group of operations was begun in this thread"};
  --t_groups;
  return {};
}

Result Communicator::Enqueue(Queue& queue, const software::Exchange& exchange, const void* source, void* destination) {
  if (exchange.count == 0) return device_.Health();
  return queue.stream().Call(std::make_shared<Work>(group_, exchange),
                             {destination, source, exchange.count * ElementBytes(exchange.dtype)});
}

Result Communicator::AllReduce(Queue& queue, const void* source, void* destination, uint64_t count, mge_dtype dtype,
                               int32_t reduction) {
  if (!software::CanReduce(dtype)) return {MGE_UNIMPLEMENTED, "cannot reduce elements of this type"};
  if (reduction < MGE_REDUCE_SUM || reduction > MGE_REDUCE_MAX) return {MGE_INVALID_ARGUMENT, "unknown reduction"};
  return Enqueue(queue, {software::Exchange::Kind::kReduce, dtype, reduction, 0, count}, source, destination);
}

Result Communicator::Broadcast(Queue& queue, const void* source, void* destination, uint64_t count, mge_dtype dtype,
                               uint32_t root) {
  if (root >= ranks_) return {MGE_INVALID_ARGUMENT, "the root is not a rank of the group"};
  return Enqueue(queue, {software::Exchange::Kind::kBroadcast, dtype, 0, root, count}, source, destination);
}

}  // namespace mge::virtual_gpu
