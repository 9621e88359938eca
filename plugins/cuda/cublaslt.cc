// SPDX-License-Identifier: Apache-2.0
#include "cublaslt.h"

#include <string>

#include "plugins/gpu/runtime/vendor_library.h"
#include "vendor.h"

namespace mge::cuda {
namespace {

constexpr const char* kFiles[] = {"libcublasLt.so.13"};
static_assert(CUBLAS_VER_MAJOR == 13, "update kFiles");
constexpr gpu::LibraryFacts kFacts = {.name = "cuBLASLt",
                                      .setting = &kCublasLt,
                                      .driver_setting = &kDriver,
                                      .files = kFiles,
                                      .install = "install libcublas of CUDA 13",
                                      .toolkit_setting = kToolkit,
                                      .without = "matrix products are slower"};

}  // namespace

Result CublasLt::Load() {
  gpu::VendorLibrary library(kFacts);
  if (Result r = library.Open(); !r.ok()) return r;
#define MGE_CUBLASLT_FIND(member, function) \
  if (Result r = library.Find(#function, &member); !r.ok()) return r;
  MGE_CUBLASLT_FUNCTIONS(MGE_CUBLASLT_FIND)
#undef MGE_CUBLASLT_FIND
  if (const size_t major = version() / 10000; major != CUBLAS_VER_MAJOR) {
    return library.Missing(library.path() + " has version " + std::to_string(major) + ", and this backend needs " +
                           std::to_string(CUBLAS_VER_MAJOR));
  }
  return {};
}

Result CublasLt::ResultOf(cublasStatus_t status, const char* function) const {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const std::string text = std::string(function) + " failed with " + status_name(status);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) return {MGE_RESOURCE_EXHAUSTED, text};
  return {status == CUBLAS_STATUS_NOT_SUPPORTED ? MGE_UNIMPLEMENTED : MGE_INTERNAL, text};
}

Result CublasLtHandle::Get(gpu::Device& device, Open* out) {
  std::lock_guard lock(mutex_);
  if (!tried_) {
    tried_ = true;
    result_ = library_.Load();
    if (result_.ok()) {
      result_ = device.With([&] { return library_.ResultOf(library_.create(&handle_), "cublasLtCreate"); });
    }
  }
  *out = {&library_, handle_};
  return result_;
}

void CublasLtHandle::Close(gpu::Device& device) {
  if (handle_) device.Always([&] { library_.destroy(handle_); });
}

}  // namespace mge::cuda
