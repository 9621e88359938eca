// SPDX-License-Identifier: Apache-2.0
// The kernels that one device has compiled at run time. Images are kept in the host's cache of blobs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/gpu/generate/chain_source.h"
#include "plugins/gpu/runtime/compiler.h"

namespace mge::gpu {

class Device;

// Kernels stay loaded until the device is closed. Functions are [any].
class CompiledKernels {
 public:
  // Returns whether kernels can be compiled for the device. Fails with the reason if not.
  Result Ready(Device& device);
  // Fails if the host's setting jit.backend names a compiler that the device cannot use.
  Result CheckSetting(Device& device);
  // Writes the driver's function of a kernel: of this device, from the host's cache, or from the compiler. An image of the
  // cache that the driver refuses is compiled again. A failure is logged once, and returned again for the same source.
  Result FunctionOf(Device& device, const KernelSource& source, void** out);
  // Unloads all kernels. The caller has made the context current.
  void Unload();

 private:
  struct Kernel {
    std::mutex mutex;  // held while the kernel is compiled
    bool tried = false;
    Result result;
    void* module = nullptr;
    void* function = nullptr;
  };
  Result Make(Device& device, const KernelSource& source, Kernel* kernel);

  std::mutex mutex_;
  bool opened_ = false;
  Result ready_;
  Architecture architecture_;
  std::string identity_;
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;  // by source text
};

}  // namespace mge::gpu
