// SPDX-License-Identifier: Apache-2.0
// The functions of NCCL and RCCL that collectives call, with the types and numbers of nccl.h.
#pragma once

#include <mutex>

#include "plugins/gpu/runtime/vendor_library.h"

namespace mge::gpu {

// The first version that does not block the host.
inline constexpr int kNcclLeast = 21400;

struct NcclId {
  char bytes[MGE_UNIQUE_ID_BYTES];
};
// The members that the oldest version (kNcclLeast) has. Later versions take the size as the end of what is set.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = kNcclLeast;
  int blocking = 0;
};

enum NcclCode : int { kNcclOk = 0, kNcclInProgress = 7 };
enum NcclType : int {
  kNcclI8 = 0,
  kNcclU8 = 1,
  kNcclI32 = 2,
  kNcclU32 = 3,
  kNcclI64 = 4,
  kNcclU64 = 5,
  kNcclF16 = 6,
  kNcclF32 = 7,
  kNcclF64 = 8,
  kNcclBf16 = 9,
};
enum NcclReduction : int { kNcclSum = 0, kNcclProduct = 1, kNcclMax = 2, kNcclMin = 3 };

// F(member, function, parameters)
#define GPU_NCCL_FUNCTIONS(F)                                                                                \
  F(version, ncclGetVersion, (int* version))                                                                 \
  F(unique_id, ncclGetUniqueId, (NcclId * id))                                                               \
  F(init, ncclCommInitRankConfig, (void** communicator, int ranks, NcclId id, int rank, NcclConfig* config)) \
  F(destroy, ncclCommDestroy, (void* communicator))                                                          \
  F(abort, ncclCommAbort, (void* communicator))                                                              \
  F(error, ncclCommGetAsyncError, (void* communicator, int* code))                                           \
  F(group_begin, ncclGroupStart, ())                                                                         \
  F(group_end, ncclGroupEnd, ())                                                                             \
  F(all_reduce, ncclAllReduce,                                                                               \
    (const void* from, void* to, size_t count, int type, int reduction, void* communicator, void* stream))   \
  F(broadcast, ncclBroadcast,                                                                                \
    (const void* from, void* to, size_t count, int type, int root, void* communicator, void* stream))

// The opened library.
class Nccl {
 public:
  // Returns the library. Opens it at the first call. Fails with MGE_UNAVAILABLE and what to do. [any]
  static Result Get(const Nccl** out);
  // Makes the next Get() read the settings again. Called when the backend starts.
  static void Restart();
  // Returns an error with the library's text, unless the code is kNcclOk or kNcclInProgress.
  Result ResultOf(int code, const char* function) const;

#define GPU_NCCL_MEMBER(member, function, parameters) int(*member) parameters = nullptr;
  GPU_NCCL_FUNCTIONS(GPU_NCCL_MEMBER)
#undef GPU_NCCL_MEMBER

 private:
  Result Load();
  static Nccl& Instance();

  std::mutex mutex_;
  bool tried_ = false;
  Result result_;
  const char* (*error_text_)(int code) = nullptr;
};

}  // namespace mge::gpu
