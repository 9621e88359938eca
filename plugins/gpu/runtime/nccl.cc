// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/nccl.h"

#include <string>

#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {

Result Nccl::Get(const Nccl** out) {
  static Nccl library;
  static const Result loaded = library.Load();
  *out = &library;
  return loaded;
}

Result Nccl::Load() {
  VendorLibrary library(*TheVendor().collectives);
  if (Result r = library.Open(); !r.ok()) return r;
#define GPU_NCCL_FIND(member, function, parameters) \
  if (Result r = library.Find(#function, &member); !r.ok()) return r;
  GPU_NCCL_FUNCTIONS(GPU_NCCL_FIND)
#undef GPU_NCCL_FIND
  return library.Find("ncclGetErrorString", &error_text_);
}

Result Nccl::ResultOf(int code, const char* function) const {
  if (code == kNcclOk || code == kNcclInProgress) return {};
  return {MGE_UNAVAILABLE, std::string(function) + " failed: " + error_text_(code)};
}

}  // namespace mge::gpu
