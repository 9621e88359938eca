// SPDX-License-Identifier: Apache-2.0
// A library with the interface of NCCL, for GPUs in software. Like the true one, it does not block the host, has no time
// limits of its own, and its operations wait in the stream for the other ranks.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "plugins/gpu/runtime/nccl.h"
#include "plugins/gpu/software/driver/testing.h"
#include "plugins/gpu/software/shared_group.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace mge {
namespace {

using gpu::NcclId;
using software::Exchange;
using software::SharedGroup;

constexpr int kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr uint64_t kForever = 3'600'000'000'000;  // nanoseconds

struct Communicator {
  std::shared_ptr<SharedGroup> group = std::make_shared<SharedGroup>();
  std::shared_ptr<std::atomic<int>> outcome = std::make_shared<std::atomic<int>>(gpu::kNcclInProgress);
  std::thread joining;
};

// One operation in a stream.
struct Work {
  std::shared_ptr<SharedGroup> group;
  std::shared_ptr<std::atomic<int>> outcome;
  Exchange exchange;
};

mge_dtype TypeOf(int type) {
  constexpr mge_dtype kTypes[] = {MGE_DTYPE_I8,  MGE_DTYPE_U8,  MGE_DTYPE_I32, MGE_DTYPE_U32, MGE_DTYPE_I64,
                                  MGE_DTYPE_U64, MGE_DTYPE_F16, MGE_DTYPE_F32, MGE_DTYPE_F64, MGE_DTYPE_BF16};
  return kTypes[type];
}

int Enqueue(void* handle, void* stream, const Exchange& exchange, const void* from, void* to) {
  auto& c = *static_cast<Communicator*>(handle);
  if (*c.outcome != gpu::kNcclOk) return kInvalidUsage;
  static const auto enqueue = reinterpret_cast<decltype(&mge_driver_enqueue)>(
      dlsym(dlopen(MGE_DRIVER, RTLD_NOW | RTLD_NOLOAD), "mge_driver_enqueue"));
  const auto run = [](void* data, void* destination, const void* source) {
    const auto& work = *static_cast<Work*>(data);
    if (!work.group->Run(work.exchange, destination, source).ok()) work.outcome->store(kRemoteError);
  };
  const auto release = [](void* data) { delete static_cast<Work*>(data); };
  const uint64_t bytes = exchange.count * ElementBytes(exchange.dtype);
  return enqueue(stream, run, release, new Work{c.group, c.outcome, exchange}, to, from, bytes) == 0 ? gpu::kNcclOk
                                                                                                     : kInvalidUsage;
}

}  // namespace
}  // namespace mge

using namespace mge;  // NOLINT: the functions below are the interface

EXPORT const char* ncclGetErrorString(int code) {
  return code == kRemoteError ? "remote process exited or there was a network error" : "invalid usage";
}
EXPORT int ncclGetVersion(int* version) {
#ifdef MGE_OLD
  *version = 21304;
#else
  *version = gpu::kNcclLeast;
#endif
  return gpu::kNcclOk;
}
EXPORT int ncclGetUniqueId(NcclId* id) {
  return SharedGroup::NewId(UniqueId(reinterpret_cast<uint8_t*>(id->bytes), sizeof(id->bytes))).ok() ? gpu::kNcclOk
                                                                                                     : kInvalidUsage;
}
EXPORT int ncclCommInitRankConfig(void** communicator, int ranks, NcclId id, int rank, gpu::NcclConfig* config) {
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->size < sizeof(*config)) return kInvalidArgument;
  auto* c = new Communicator;
  c->joining = std::thread([group = c->group, outcome = c->outcome, id, rank, ranks] {
    const ConstUniqueId bytes(reinterpret_cast<const uint8_t*>(id.bytes), sizeof(id.bytes));
    const Result r = group->Join(bytes, static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks), kForever);
    outcome->store(r.ok() ? int{gpu::kNcclOk} : r.code() == MGE_INVALID_ARGUMENT ? kInvalidArgument : kRemoteError);
  });
  *communicator = c;
  return gpu::kNcclInProgress;
}
EXPORT int ncclCommDestroy(void* communicator) {
  auto* c = static_cast<Communicator*>(communicator);
  c->joining.join();
  delete c;
  return gpu::kNcclOk;
}
EXPORT int ncclCommAbort(void* communicator) {
  static_cast<Communicator*>(communicator)->group->Abort();
  return ncclCommDestroy(communicator);
}
EXPORT int ncclCommGetAsyncError(void* communicator, int* code) {
  *code = *static_cast<Communicator*>(communicator)->outcome;
  return gpu::kNcclOk;
}
EXPORT int ncclGroupStart() { return gpu::kNcclOk; }
EXPORT int ncclGroupEnd() { return gpu::kNcclOk; }
EXPORT int ncclAllReduce(const void* from, void* to, size_t count, int type, int reduction, void* communicator,
                         void* stream) {
  constexpr int32_t kReductions[] = {MGE_REDUCE_SUM, MGE_REDUCE_PRODUCT, MGE_REDUCE_MAX, MGE_REDUCE_MIN};
  return Enqueue(communicator, stream, {Exchange::Kind::kReduce, TypeOf(type), kReductions[reduction], 0, count}, from, to);
}
EXPORT int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* communicator, void* stream) {
  return Enqueue(communicator, stream, {Exchange::Kind::kBroadcast, TypeOf(type), 0, static_cast<uint32_t>(root), count},
                 from, to);
}
