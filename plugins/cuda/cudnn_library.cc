// SPDX-License-Identifier: Apache-2.0
#include "cudnn_library.h"

#include <dlfcn.h>

#include <string>
#include <string_view>

#include "vendor.h"

namespace mge::cuda {
namespace {

constexpr const char* kLibrary = "libcudnn.so.9";
static_assert(CUDNN_MAJOR == 9, "update kLibrary");
constexpr size_t kLeastVersion = CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100;

Result Missing(const std::string& why) {
  return {MGE_UNAVAILABLE,
          "cuDNN cannot be used: " + why + "; install libcudnn 9 for CUDA 13, or set cuda.cudnn to its path"};
}

std::string Dotted(size_t version) { return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100); }

}  // namespace

Result Cudnn::Load() {
  std::string_view path, driver;
  if (Result r = ReadSetting(kCudnn, &path); !r.ok()) return r;
  if (Result r = ReadSetting(kDriver, &driver); !r.ok()) return r;
  if (path == "off") return {MGE_UNAVAILABLE, "cuDNN is switched off (cuda.cudnn=off)"};
  // The library calls the driver of the system.
  if (path.empty() && !driver.empty()) return {MGE_UNAVAILABLE, "cuDNN is not used beside another driver (cuda.driver)"};
  if (!path.empty() && path[0] != '/') {
    return {MGE_INVALID_ARGUMENT, "cuda.cudnn is '" + std::string(path) + "', which is not an absolute path"};
  }
  return Open(path.empty() ? kLibrary : std::string(path));
}

Result Cudnn::Open(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* error = dlerror();
    return Missing(error ? error : path);
  }
#define MGE_CUDNN_FIND(member, function)                                  \
  member = reinterpret_cast<decltype(member)>(dlsym(library, #function)); \
  if (!member) return Missing(path + " has no function " #function);
  MGE_CUDNN_FUNCTIONS(MGE_CUDNN_FIND)
#undef MGE_CUDNN_FIND
  if (const size_t found = version(); found / 10000 != CUDNN_MAJOR || found < kLeastVersion) {
    return Missing(path + " has version " + Dotted(found) + ", and this backend needs " + Dotted(kLeastVersion) +
                   " or a later " + std::to_string(CUDNN_MAJOR) + ".x");
  }
  return {};
}

Result Cudnn::ResultOf(cudnnStatus_t status, const char* function) const {
  if (status == CUDNN_STATUS_SUCCESS) return {};
  char detail[512] = {};
  last_error(detail, sizeof(detail));
  const std::string text = std::string(function) + " failed with " + error_text(status) + (*detail ? ": " : "") + detail;
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
    return {MGE_RESOURCE_EXHAUSTED, text};
  }
  return {CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED ? MGE_UNIMPLEMENTED : MGE_INTERNAL, text};
}

}  // namespace mge::cuda
