// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <vector>

#include "mge/plugin/signals.hpp"
#include "plugins/gpu/runtime/compiler.h"
#include "plugins/gpu/runtime/nccl.h"

namespace mge::gpu {
namespace {

Driver& Loaded() {
  static Driver driver;
  return driver;
}

// Opens the library of the setting, or else the vendor's.
Result Open(std::string* path, void** out) {
  const Vendor& v = TheVendor();
  const std::string key(View(v.driver_setting->key));
  std::string_view set;
  if (Result r = ReadSetting(*v.driver_setting, &set); !r.ok()) return r;
  if (!set.empty() && set[0] != '/') {
    return {MGE_INVALID_ARGUMENT, key + " is '" + std::string(set) + "', which is not an absolute path"};
  }
  const std::string missing = "no " + std::string(v.product) + " driver: ",
                    fix = std::string("; ") + v.install + ", or set " + key + " to its path";
  if (set.empty() && v.device_file && access(v.device_file, F_OK) != 0) {
    return {MGE_UNAVAILABLE, missing + "there is no " + v.device_file + fix};
  }
  std::vector<std::string> names(v.libraries.begin(), v.libraries.end());
  if (!set.empty()) names.assign(1, std::string(set));
  std::string why;
  for (const std::string& name : names) {
    *path = name;
    *out = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);  // drivers do not support being unloaded
    if (*out) return {};
    const char* error = dlerror();
    if (why.empty()) why = error ? error : name;
  }
  return {MGE_UNAVAILABLE, missing + why + fix};
}

Result TooOld(const std::string& what) {
  const Vendor& v = TheVendor();
  return {MGE_UNAVAILABLE, std::string("the driver is too old for this backend: ") + what + "; " + v.install};
}

}  // namespace

bool IsLoss(int code) {
  switch (code) {
    case 214:  // an uncorrectable memory error
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // the context is destroyed
    case 710:  // assertion
    case 714:  // stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
    case 721:  // contained error
    case 999:  // unknown
      return true;
    default: return false;
  }
}

Result ResultOf(int code, const char* function) {
  if (code == kDriverOk) return {};
  if (code == kDriverNotReady) return {MGE_DEADLINE_EXCEEDED, "timed out"};  // a short text, which allocates nothing
  const char* name = nullptr;
  const Driver& d = Loaded();
  if (d.cuda_error_name.call && d.cuda_error_name.call(code, &name) != kDriverOk) name = nullptr;
  std::string text = std::string(function) + " failed with " + (name ? name : "error " + std::to_string(code));
  if (code == kDriverOutOfMemory) return {MGE_RESOURCE_EXHAUSTED, std::move(text)};
  if (code == kDriverBusy) {
    return {MGE_UNAVAILABLE,
            text + ": another process uses the device exclusively; end it, or set the compute mode to shared"};
  }
  return {IsLoss(code) ? MGE_DEVICE_LOST : MGE_INTERNAL, std::move(text)};
}

Result LoadDriver() {
  const KeepSignalHandlers keep;  // some drivers install their own
  const Vendor& v = TheVendor();
  v.compiler->Restart();
  Nccl::Restart();
  std::string path;
  void* library = nullptr;
  if (Result r = Open(&path, &library); !r.ok()) return r;
  Driver d;
  const char* missing = nullptr;
  bool required = true;
  auto load = [&](auto& function, const char* name) {
    function.name = name;
    void* symbol = dlsym(library, name);
    if (!symbol && required && !missing) missing = name;
    function.call = reinterpret_cast<decltype(function.call)>(symbol);
  };
#define GPU_DRIVER_LOAD(member, cuda, hip, parameters, arguments) load(d.member, v.is_hip ? #hip : #cuda);
  GPU_DRIVER_FUNCTIONS(GPU_DRIVER_LOAD)
  if (v.is_hip) {
    GPU_HIP_FUNCTIONS(GPU_DRIVER_LOAD)
    required = false;
    GPU_HIP_OLD_FUNCTIONS(GPU_DRIVER_LOAD)
  } else {
    GPU_CUDA_FUNCTIONS(GPU_DRIVER_LOAD)
  }
#undef GPU_DRIVER_LOAD
  if (missing) return TooOld(path + " has no " + missing);
  Loaded() = d;
  if (Result r = Call(d.driver_version, &d.version); !r.ok()) return {MGE_UNAVAILABLE, r.text() + "; " + v.install};
  if (d.version < v.minimum_version) {
    return TooOld("it supports " + std::string(v.product) + " " + v.version_text(d.version) + ", and " +
                  v.version_text(v.minimum_version) + " is needed");
  }
  Loaded() = d;
  const int code = d.init.call(0);
  if (code == kDriverNoDevice) {
    return {MGE_UNAVAILABLE, "the " + std::string(v.product) +
                                 " driver finds no device; check that one is installed, and that " + v.visible +
                                 " does not hide it"};
  }
  Result r = ResultOf(code, d.init.name);
  return r.ok() ? r : Result{MGE_UNAVAILABLE, "the driver does not start: " + r.text() + "; " + v.install};
}

const Driver& TheDriver() { return Loaded(); }

}  // namespace mge::gpu
