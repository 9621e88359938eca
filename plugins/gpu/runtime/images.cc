// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/images.h"

#include <algorithm>

#include "plugins/gpu/launch.h"
#include "plugins/gpu/runtime/device.h"
#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {
namespace {

std::string TextOf(const Architecture& a) { return a.name.empty() ? TheVendor().capability(a.major, a.minor) : a.name; }

}  // namespace

uint32_t FindKernel(std::string_view name) {
  auto at = std::lower_bound(kImageKernels.begin(), kImageKernels.end(), name,
                             [](const ImageKernel& k, std::string_view n) { return k.name < n; });
  return at != kImageKernels.end() && at->name == name ? static_cast<uint32_t>(at - kImageKernels.begin()) : kNoKernel;
}

LoadedImages::LoadedImages(const Device& device)
    : device_(device), functions_(std::make_unique<std::atomic<void*>[]>(kImageKernels.size())), modules_(kImages.size()) {}

Result LoadedImages::FunctionOf(uint32_t kernel, void** out) {
  *out = functions_[kernel].load(std::memory_order_acquire);
  return *out ? Result() : Load(kernel, out);
}

Result LoadedImages::Load(uint32_t kernel, void** out) {
  const Driver& d = TheDriver();
  const ImageKernel& k = kImageKernels[kernel];
  std::lock_guard lock(mutex_);
  void*& module = modules_[k.image];
  if (!module) {
    const int code = d.module_load.call(&module, kImages[k.image].data);
    if (code != kDriverOk) {
      module = nullptr;
      const bool no_code = code == kDriverNoCode || code == kDriverBadProgram || code == kDriverNewerProgram;
      Result r = ResultOf(code, d.module_load.name);
      return {r.code(),
              "the kernels of " + std::string(kImages[k.image].name) + ".cu cannot be loaded: " + r.text() +
                  (no_code ? "; this build has no code for " + TextOf(device_.architecture()) +
                                 ", the architecture of the device: build it with this one in " + TheVendor().architectures
                           : "")};
    }
  }
  if (Result r = Call(d.module_function, out, module, k.name.data()); !r.ok()) {
    return {r.code(), "the kernel " + std::string(k.name) + ": " + r.text()};
  }
  functions_[kernel].store(*out, std::memory_order_release);
  return {};
}

void LoadedImages::Unload() {
  for (void* module : modules_) {
    if (module) TheDriver().module_unload.call(module);
  }
  modules_.assign(modules_.size(), nullptr);
}

}  // namespace mge::gpu
