// SPDX-License-Identifier: Apache-2.0
// Launches kernels of plugins/gpu on a driver in software, for libraries that stand in for those of a vendor.
#pragma once

#include <dlfcn.h>

#include <cstdint>

namespace mge {

// A driver in software that the process has opened.
class EmulatedKernels {
 public:
  EmulatedKernels(const char* driver, bool is_hip) : driver_(dlopen(driver, RTLD_NOW | RTLD_NOLOAD)), is_hip_(is_hip) {}

  template <typename F>
  F Function(const char* cuda, const char* hip) const {
    return reinterpret_cast<F>(dlsym(driver_, is_hip_ ? hip : cuda));
  }
  // Enqueues a kernel with 8 blocks of 256 threads. Returns false if there is none of this name, or if the launch fails.
  template <typename Args>
  bool Launch(const char* kernel, Args args, void* stream) const {
    void* function = kernel ? Find(kernel) : nullptr;
    if (!function) return false;
    void* arguments[] = {&args};
    const auto launch = Function<int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                                         void**, void**)>("cuLaunchKernel", "hipModuleLaunchKernel");
    return launch(function, 8, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr) == 0;
  }

 private:
  void* Find(const char* name) const {
    void *module = nullptr, *function = nullptr;
    static const uint32_t image[4] = {0xba55ed50};
    if (Function<int (*)(void**, const void*)>("cuModuleLoadData", "hipModuleLoadData")(&module, image) != 0) return nullptr;
    const auto find = Function<int (*)(void**, void*, const char*)>("cuModuleGetFunction", "hipModuleGetFunction");
    if (find(&function, module, name) != 0) function = nullptr;
    Function<int (*)(void*)>("cuModuleUnload", "hipModuleUnload")(module);
    return function;
  }

  void* driver_;
  bool is_hip_;
};

}  // namespace mge
