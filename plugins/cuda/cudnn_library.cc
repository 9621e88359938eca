// SPDX-License-Identifier: Apache-2.0
#include "cudnn_library.h"

#include <string>

#include "plugins/gpu/runtime/vendor_library.h"
#include "vendor.h"

namespace mge::cuda {
namespace {

constexpr const char* kFiles[] = {"libcudnn.so.9"};
static_assert(CUDNN_MAJOR == 9, "update kFiles");
constexpr gpu::LibraryFacts kFacts = {.name = "cuDNN",
                                      .setting = &kCudnn,
                                      .driver_setting = &kDriver,
                                      .files = kFiles,
                                      .install = "install libcudnn 9 for CUDA 13",
                                      .toolkit_setting = kToolkit,
                                      .without = "convolutions are slower"};
// The first with descriptors of devices (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). The header may be newer: a library that does
// not know one of its attributes refuses the plan.
constexpr size_t kMinVersion = 90800;

std::string Dotted(size_t version) { return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100); }

}  // namespace

Result Cudnn::Load(const char* path) {
  gpu::VendorLibrary library(kFacts);
  if (Result r = path ? library.Open(path) : library.Open(); !r.ok()) return r;
#define MGE_CUDNN_FIND(member, function) \
  if (Result r = library.Find(#function, &member); !r.ok()) return r;
  MGE_CUDNN_FUNCTIONS(MGE_CUDNN_FIND)
#undef MGE_CUDNN_FIND
  if (const size_t found = version(); found / 10000 != CUDNN_MAJOR || found < kMinVersion) {
    return library.Missing(library.path() + " has version " + Dotted(found) + ", and this backend needs " +
                           Dotted(kMinVersion) + " or a later " + std::to_string(CUDNN_MAJOR) + ".x");
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
