// SPDX-License-Identifier: Apache-2.0
#include "rocblas.h"

#include <string>

#include "plugins/gpu/runtime/memory.h"
#include "plugins/gpu/runtime/vendor_library.h"
#include "vendor.h"

namespace mge::rocm {
namespace {

constexpr const char* kFiles[] = {"librocblas.so.5", "librocblas.so.4", "librocblas.so.0"};
constexpr gpu::LibraryFacts kFacts = {.name = "rocBLAS",
                                      .setting = &kRocblas,
                                      .driver_setting = &kDriver,
                                      .files = kFiles,
                                      .install = "install rocblas",
                                      .without = "matrix products are slower"};

}  // namespace

Result Rocblas::Load() {
  gpu::VendorLibrary library(kFacts);
  if (Result r = library.Open(); !r.ok()) return r;
#define MGE_ROCBLAS_FIND(member, function, parameters) \
  if (Result r = library.Find(#function, &member); !r.ok()) return r;
  MGE_ROCBLAS_FUNCTIONS(MGE_ROCBLAS_FIND)
#undef MGE_ROCBLAS_FIND
  return library.Find("rocblas_status_to_string", &status_text);
}

Result Rocblas::ResultOf(int status, const char* function) const {
  if (status == kRocblasSuccess) return {};
  const std::string text = std::string(function) + " failed with " + status_text(status);
  if (status == kRocblasMemoryError) return {MGE_RESOURCE_EXHAUSTED, text};
  return {status == kRocblasNotImplemented ? MGE_UNIMPLEMENTED : MGE_INTERNAL, text};
}

Result RocblasHandle::Open(gpu::Device& device) {
  std::lock_guard lock(mutex_);
  if (tried_) return result_;
  tried_ = true;
  result_ = library_.Load();
  if (!result_.ok()) return result_;
  return result_ = gpu::CreateExternal(device, "rocblas_create_handle", [&]() -> Result {
           if (Result r = library_.ResultOf(library_.create(&handle_), "rocblas_create_handle"); !r.ok()) {
             handle_ = nullptr;
             return r;
           }
           // Sums by atomic operations have no fixed order.
           return library_.ResultOf(library_.set_atomics(handle_, kRocblasNoAtomics), "rocblas_set_atomics_mode");
         });
}

void RocblasHandle::Close(gpu::Device& device) {
  if (handle_) device.Always([&] { library_.destroy(handle_); });
}

}  // namespace mge::rocm
