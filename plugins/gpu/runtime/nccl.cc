// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/nccl.h"

#include <string>

#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {
namespace {

constexpr int kMajor = 10000;  // unit of the major version

// Returns a version as users write it. Before 2.9, the major version counted thousands.
std::string Dotted(int version) {
  const int major = version < kMajor ? version / 1000 : version / kMajor,
            minor = version < kMajor ? version % 1000 / 100 : version % kMajor / 100;
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

Nccl& Nccl::Instance() {
  static Nccl library;
  return library;
}

Result Nccl::Get(const Nccl** out) {
  Nccl& library = Instance();
  *out = &library;
  std::lock_guard lock(library.mutex_);
  if (!library.tried_) library.result_ = library.Load();
  library.tried_ = true;
  return library.result_;
}

void Nccl::Restart() {
  std::lock_guard lock(Instance().mutex_);
  Instance().tried_ = false;
}

Result Nccl::Load() {
  VendorLibrary library(*TheVendor().collectives);
  if (Result r = library.Open(); !r.ok()) return r;
  if (Result r = library.Find("ncclGetErrorString", &error_text_); !r.ok()) return r;
  if (Result r = library.Find("ncclGetVersion", &version); !r.ok()) return r;
  int found = 0;
  if (Result r = ResultOf(version(&found), "ncclGetVersion"); !r.ok()) return r;
  if (found < kNcclLeast || found / kMajor != kNcclLeast / kMajor) {
    return library.Missing(library.path() + " has version " + Dotted(found) + ", and this backend needs " +
                           Dotted(kNcclLeast) + " or a later " + std::to_string(kNcclLeast / kMajor) + ".x");
  }
#define GPU_NCCL_FIND(member, function, parameters) \
  if (Result r = library.Find(#function, &member); !r.ok()) return r;
  GPU_NCCL_FUNCTIONS(GPU_NCCL_FIND)
#undef GPU_NCCL_FIND
  return {};
}

Result Nccl::ResultOf(int code, const char* function) const {
  if (code == kNcclOk || code == kNcclInProgress) return {};
  return {MGE_UNAVAILABLE, std::string(function) + " failed: " + error_text_(code)};
}

}  // namespace mge::gpu
