// SPDX-License-Identifier: Apache-2.0
#include "cublaslt.h"

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "vendor.h"

namespace mge::cuda {
namespace {

constexpr const char* kLibrary = "libcublasLt.so.13";
static_assert(CUBLAS_VER_MAJOR == 13, "update kLibrary");

Result Missing(const std::string& why) {
  return {MGE_UNAVAILABLE,
          "cuBLASLt cannot be used: " + why + "; install libcublas of CUDA 13, or set cuda.cublaslt to its path"};
}

Result Open(CublasLt* out) {
  std::string_view path, driver;
  if (Result r = ReadSetting(kCublasLt, &path); !r.ok()) return r;
  if (Result r = ReadSetting(kDriver, &driver); !r.ok()) return r;
  if (path == "off") return {MGE_UNAVAILABLE, "cuBLASLt is switched off (cuda.cublaslt=off)"};
  // The library calls the driver of the system.
  if (path.empty() && !driver.empty()) return {MGE_UNAVAILABLE, "cuBLASLt is not used beside another driver (cuda.driver)"};
  if (!path.empty() && path[0] != '/') {
    return {MGE_INVALID_ARGUMENT, "cuda.cublaslt is '" + std::string(path) + "', which is not an absolute path"};
  }
  const std::string name = path.empty() ? kLibrary : std::string(path);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* error = dlerror();
    return Missing(error ? error : name);
  }
#define MGE_CUBLASLT_FIND(member, function)                                         \
  out->member = reinterpret_cast<decltype(out->member)>(dlsym(library, #function)); \
  if (!out->member) return Missing(name + " has no function " #function);
  MGE_CUBLASLT_FUNCTIONS(MGE_CUBLASLT_FIND)
#undef MGE_CUBLASLT_FIND
  if (const size_t major = out->version() / 10000; major != CUBLAS_VER_MAJOR) {
    return Missing(name + " has version " + std::to_string(major) + ", and this backend needs " +
                   std::to_string(CUBLAS_VER_MAJOR));
  }
  return {};
}

}  // namespace

Result CublasLt::Load(const CublasLt** out) {
  static CublasLt library;
  static const Result result = Open(&library);
  *out = &library;
  return result;
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
    result_ = CublasLt::Load(&open_.library);
    if (result_.ok()) {
      result_ = device.With([&] { return open_.library->ResultOf(open_.library->create(&open_.handle), "cublasLtCreate"); });
    }
  }
  *out = open_;
  return result_;
}

void CublasLtHandle::Close(gpu::Device& device) {
  if (open_.handle) device.Always([&] { open_.library->destroy(open_.handle); });
}

}  // namespace mge::cuda
