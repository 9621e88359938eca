// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/compiled_kernels.h"

#include "plugins/gpu/runtime/device.h"
#include "plugins/gpu/runtime/jit_files.h"

namespace mge::gpu {
namespace {

// Loads an image and finds its kernel.
Result Load(Device& device, const std::string& image, const std::string& name, void** module, void** function) {
  return device.With([&]() -> Result {
    const Driver& d = TheDriver();
    if (Result r = Call(d.module_load, module, image.data()); !r.ok()) {
      *module = nullptr;
      return r;
    }
    Result r = Call(d.module_function, function, *module, name.c_str());
    if (!r.ok()) {
      d.module_unload.call(*module);
      *module = *function = nullptr;
    }
    return r;
  });
}

}  // namespace

Result CompiledKernels::Ready(Device& device) {
  std::lock_guard lock(mutex_);
  if (opened_) return ready_;
  opened_ = true;
  architecture_ = device.architecture();
  ready_ = TheVendor().compiler->Open(architecture_, &identity_);
  identity_ += "\ndriver " + std::to_string(TheDriver().version);
  return ready_;
}

Result CompiledKernels::CheckSetting(Device& device) {
  std::string_view wanted;
  const Compiler& compiler = *TheVendor().compiler;
  if (!ReadCoreSetting("jit.backend", &wanted).ok() || wanted == "auto") return {};
  if (wanted == compiler.Name()) return Ready(device);
  return {MGE_UNAVAILABLE, "jit.backend is " + std::string(wanted) + ", but this backend compiles generated kernels with " +
                               compiler.Name() + " only; set jit.backend to that, or to auto"};
}

Result CompiledKernels::FunctionOf(Device& device, const KernelSource& source, void** out) {
  if (Result r = Ready(device); !r.ok()) return r;
  Kernel* kernel;
  {
    std::lock_guard lock(mutex_);
    std::unique_ptr<Kernel>& entry = kernels_[source.text];
    if (!entry) entry = std::make_unique<Kernel>();
    kernel = entry.get();
  }
  std::lock_guard lock(kernel->mutex);
  if (!kernel->tried) {
    kernel->tried = true;
    kernel->result = Make(device, source, kernel);
    if (const Result& r = kernel->result; !r.ok()) {
      Log(MGE_LOG_WARNING, device.name() + ": the kernel " + source.name +
                               " is not used, because it cannot be compiled at run time: " + r.text());
    }
  }
  *out = kernel->function;
  return kernel->result;
}

Result CompiledKernels::Make(Device& device, const KernelSource& source, Kernel* kernel) {
  std::string key = identity_ + '\n' + source.text, image;
  for (const SourceFile& file : kKernelFiles) key += std::string(file.name) + '\n' + file.text;
  if (LoadBlob(key, &image)) {
    KeepJitFiles(source, image);
    Result r = Load(device, image, source.name, &kernel->module, &kernel->function);
    if (r.ok() || r.code() == MGE_DEVICE_LOST) return r;
  }
  if (Result r = TheVendor().compiler->Compile(source.text, architecture_, &image); !r.ok()) {
    KeepJitFiles(source, "");
    return r;
  }
  KeepJitFiles(source, image);
  if (Result r = Load(device, image, source.name, &kernel->module, &kernel->function); !r.ok()) return r;
  StoreBlob(key, image);
  return {};
}

void CompiledKernels::Unload() {
  for (auto& [source, kernel] : kernels_) {
    if (kernel->module) TheDriver().module_unload.call(kernel->module);
  }
  kernels_.clear();
}

}  // namespace mge::gpu
