// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/collectives.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/gpu/runtime/memory.h"
#include "plugins/gpu/runtime/nccl.h"

namespace mge::gpu {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kCommunicatorPause{50};  // between two looks at a communicator

bool FindType(mge_dtype type, int* out) {
  switch (type) {
    case MGE_DTYPE_I8: return *out = kNcclI8, true;
    case MGE_DTYPE_U8: return *out = kNcclU8, true;
    case MGE_DTYPE_I32: return *out = kNcclI32, true;
    case MGE_DTYPE_U32: return *out = kNcclU32, true;
    case MGE_DTYPE_I64: return *out = kNcclI64, true;
    case MGE_DTYPE_U64: return *out = kNcclU64, true;
    case MGE_DTYPE_F16: return *out = kNcclF16, true;
    case MGE_DTYPE_F32: return *out = kNcclF32, true;
    case MGE_DTYPE_F64: return *out = kNcclF64, true;
    case MGE_DTYPE_BF16: return *out = kNcclBf16, true;
    default: return false;
  }
}

bool FindReduction(int32_t reduction, int* out) {
  switch (reduction) {
    case MGE_REDUCE_SUM: return *out = kNcclSum, true;
    case MGE_REDUCE_PRODUCT: return *out = kNcclProduct, true;
    case MGE_REDUCE_MIN: return *out = kNcclMin, true;
    case MGE_REDUCE_MAX: return *out = kNcclMax, true;
    default: return false;
  }
}

std::string Milliseconds(std::chrono::nanoseconds time) { return std::to_string(time.count() / 1'000'000) + " ms"; }

}  // namespace

// The library's communicator. Queues share it, so that their fences can look at it.
class Communicator::State : public CollectiveWatch {
 public:
  State(Device& device, uint64_t timeout_ns)
      : device_(device),
        timeout_(static_cast<int64_t>(std::min<uint64_t>(timeout_ns, uint64_t{INT64_MAX} / 4))),
        deadline_(Clock::now() + timeout_) {}

  Result Join(const Nccl& nccl, const NcclId& id, uint32_t rank, uint32_t ranks) {
    nccl_ = &nccl;
    Begin();
    NcclConfig config;
    const Result r = CreateExternal(device_, "ncclCommInitRankConfig", [&] {
      return nccl.ResultOf(nccl.init(&handle_, static_cast<int>(ranks), id, static_cast<int>(rank), &config),
                           "ncclCommInitRankConfig");
    });
    return r.ok() ? Settle() : r;
  }
  // Waits until the library has taken in what was called.
  Result Settle() {
    for (;;) {
      bool busy = false;
      if (Result r = Look(/*pending=*/true, &busy); !r.ok() || !busy) return r;
      std::this_thread::sleep_for(kCommunicatorPause);
    }
  }
  void Begin() override {
    std::lock_guard lock(mutex_);
    deadline_ = Clock::now() + timeout_;
  }
  Result Check(bool pending) override {
    bool busy = false;
    return Look(pending, &busy);
  }
  // Ends pending operations. Later calls return the failure.
  void Fail(Result failure) {
    std::lock_guard lock(mutex_);
    FailLocked(std::move(failure));
  }
  void Destroy() {
    std::lock_guard lock(mutex_);
    if (handle_) device_.Always([this] { nccl_->destroy(handle_); });
    handle_ = nullptr;
  }
  // Calls f(handle), which returns a code, unless the communicator has failed.
  template <typename F>
  Result Use(const char* name, F&& f) {
    std::lock_guard lock(mutex_);
    return failure_.ok() ? nccl_->ResultOf(f(handle_), name) : failure_;
  }

 private:
  Result Look(bool pending, bool* busy) {
    std::lock_guard lock(mutex_);
    if (!failure_.ok() || !handle_) return failure_;
    int code = kNcclOk;
    const int outcome = nccl_->error(handle_, &code);
    *busy = outcome == kNcclOk && code == kNcclInProgress;
    Result r = nccl_->ResultOf(outcome ? outcome : code, "a collective operation");
    if (r.ok() && pending && Clock::now() > deadline_) {
      r = {MGE_UNAVAILABLE, "a rank of the group does not take part within " + Milliseconds(timeout_)};
    }
    if (!r.ok()) FailLocked(std::move(r));
    return failure_;
  }
  void FailLocked(Result failure) {
    if (!failure_.ok()) return;
    failure_ = std::move(failure);
    if (handle_) device_.Always([this] { nccl_->abort(handle_); });  // also frees it
    handle_ = nullptr;
  }

  Device& device_;
  const std::chrono::nanoseconds timeout_;
  const Nccl* nccl_ = nullptr;
  std::mutex mutex_;
  void* handle_ = nullptr;
  Clock::time_point deadline_;
  Result failure_;
};

namespace {

// The operations of a group that this thread has begun.
struct OpenGroup {
  int depth = 0;
  std::vector<std::shared_ptr<CollectiveWatch>> members;
};
thread_local OpenGroup t_group;

}  // namespace

Result Communicator::UniqueId(mge::UniqueId out) {
  const Nccl* nccl = nullptr;
  if (Result r = Nccl::Get(&nccl); !r.ok()) return r;
  NcclId id = {};
  Result r = nccl->ResultOf(nccl->unique_id(&id), "ncclGetUniqueId");
  std::memcpy(out.data(), id.bytes, sizeof(id.bytes));
  return r;
}

Communicator::Communicator(Device& device, ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns)
    : state_(std::make_shared<State>(device, timeout_ns)), rank_(rank), ranks_(ranks) {
  std::copy(id.begin(), id.end(), id_);
}

Communicator::~Communicator() { state_->Destroy(); }

Result Communicator::Init() {
  const Nccl* nccl = nullptr;
  if (Result r = Nccl::Get(&nccl); !r.ok()) return r;
  NcclId id = {};
  std::memcpy(id.bytes, id_, sizeof(id.bytes));
  return state_->Join(*nccl, id, rank_, ranks_);
}

void Communicator::Abort() { state_->Fail({MGE_CANCELLED, "the communicator was aborted"}); }

Result Communicator::GroupBegin() {
  const Nccl* nccl = nullptr;
  if (Result r = Nccl::Get(&nccl); !r.ok()) return r;
  if (Result r = nccl->ResultOf(nccl->group_begin(), "ncclGroupStart"); !r.ok()) return r;
  ++t_group.depth;
  return {};
}

Result Communicator::GroupEnd() {
  const Nccl* nccl = nullptr;
  if (Result r = Nccl::Get(&nccl); !r.ok()) return r;
  if (t_group.depth == 0) return {MGE_FAILED_PRECONDITION, "no group of operations was begun in this thread"};
  Result r = nccl->ResultOf(nccl->group_end(), "ncclGroupEnd");
  if (--t_group.depth > 0) return r;
  for (const auto& member : std::exchange(t_group.members, {})) {
    Result settled = static_cast<State&>(*member).Settle();
    if (r.ok()) r = std::move(settled);
  }
  return r;
}

template <typename F>
Result Communicator::Enqueue(Queue& queue, const char* name, F&& call) {
  const Nccl* nccl = nullptr;
  if (Result r = Nccl::Get(&nccl); !r.ok()) return r;
  Result r = queue.Enqueue(
      [&](void* stream) { return state_->Use(name, [&](void* handle) { return call(*nccl, handle, stream); }); });
  if (!r.ok()) return r;
  queue.Watch(state_);
  if (t_group.depth == 0) return state_->Settle();
  t_group.members.push_back(state_);
  return {};
}

Result Communicator::AllReduce(Queue& queue, const void* from, void* to, uint64_t count, mge_dtype dtype,
                               int32_t reduction) {
  int type = 0, operation = 0;
  if (!FindType(dtype, &type)) return {MGE_UNIMPLEMENTED, "the library cannot reduce elements of this type"};
  if (!FindReduction(reduction, &operation)) return {MGE_INVALID_ARGUMENT, "unknown reduction"};
  return Enqueue(queue, "ncclAllReduce", [&](const Nccl& nccl, void* handle, void* stream) {
    return nccl.all_reduce(from, to, count, type, operation, handle, stream);
  });
}

Result Communicator::Broadcast(Queue& queue, const void* from, void* to, uint64_t count, mge_dtype dtype, uint32_t root) {
  if (root >= ranks_) return {MGE_INVALID_ARGUMENT, "the root is not a rank of the group"};
  return Enqueue(queue, "ncclBroadcast", [&](const Nccl& nccl, void* handle, void* stream) {
    return nccl.broadcast(from, to, count * ElementBytes(dtype), kNcclU8, static_cast<int>(root), handle, stream);
  });
}

}  // namespace mge::gpu
