// SPDX-License-Identifier: Apache-2.0
// The kernels of plugins/gpu, compiled for the vendor's devices and embedded in the backend: one image per .cu file. The
// build generates the table (images.cc.in).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "mge/plugin.hpp"

namespace mge::gpu {

struct Image {
  const char* name;  // "conv"
  const void* data;
};
struct ImageKernel {
  std::string_view name;
  uint32_t image;
};
extern const std::span<const Image> kImages;
extern const std::span<const ImageKernel> kImageKernels;  // sorted by name; FindKernel() returns an index of this table

class Device;

// The images that one device has loaded. An image is loaded when one of its kernels is launched for the first time. [any]
class LoadedImages {
 public:
  explicit LoadedImages(const Device& device);
  // Writes the driver's function of a kernel. The caller has made the device's context current.
  Result FunctionOf(uint32_t kernel, void** out);
  // Unloads all images. The caller has made the context current.
  void Unload();

 private:
  Result Load(uint32_t kernel, void** out);

  const Device& device_;
  std::unique_ptr<std::atomic<void*>[]> functions_;
  std::mutex mutex_;
  std::vector<void*> modules_;  // per image; null: not loaded
};

}  // namespace mge::gpu
