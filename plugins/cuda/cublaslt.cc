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

}  // namespace

Result CublasLt::Load() {
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
#define MGE_CUBLASLT_FIND(member, function)                               \
  member = reinterpret_cast<decltype(member)>(dlsym(library, #function)); \
  if (!member) return Missing(name + " has no function " #function);
  MGE_CUBLASLT_FUNCTIONS(MGE_CUBLASLT_FIND)
#undef MGE_CUBLASLT_FIND
  if (const size_t major = version() / 10000; major != CUBLAS_VER_MAJOR) {
    return Missing(name + " has version " + std::to_string(major) + ", and this backend needs " +
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
