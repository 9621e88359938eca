// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/driver.h"

#include <dlfcn.h>

#include <optional>

#include "mge/plugin/signals.hpp"

namespace mge::gpu {
namespace {

Driver& Loaded() {
  static Driver driver;
  return driver;
}

// Returns the library to open: that of the setting, or the vendor's.
Result LibraryName(std::string* out) {
  const Vendor& v = TheVendor();
  std::string_view path;
  if (Result r = ReadSetting(*v.driver_setting, &path); !r.ok()) return r;
  *out = path.empty() ? v.library : std::string(path);
  if (path.empty() || path[0] == '/') return {};
  return {MGE_INVALID_ARGUMENT,
          std::string(View(v.driver_setting->key)) + " is '" + *out + "', which is not an absolute path"};
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
  const char* name = nullptr;
  const Driver& d = Loaded();
  if (d.cuda_error_name.call && d.cuda_error_name.call(code, &name) != kDriverOk) name = nullptr;
  std::string text = std::string(function) + " failed with " + (name ? name : "error " + std::to_string(code));
  if (code == kDriverOutOfMemory) return {MGE_RESOURCE_EXHAUSTED, std::move(text)};
  if (code == kDriverNotReady) return {MGE_DEADLINE_EXCEEDED, "timed out"};
  return {IsLoss(code) ? MGE_DEVICE_LOST : MGE_INTERNAL, std::move(text)};
}

Result LoadDriver() {
  const KeepSignalHandlers keep;  // some drivers install their own
  const Vendor& v = TheVendor();
  std::string path;
  if (Result r = LibraryName(&path); !r.ok()) return r;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);  // drivers do not support being unloaded
  if (!library) {
    const char* why = dlerror();
    return {MGE_UNAVAILABLE, "no " + std::string(v.product) + " driver: " + (why ? why : path) + "; " + v.install +
                                 ", or set " + std::string(View(v.driver_setting->key)) + " to its path"};
  }
  Driver d;
  const char* missing = nullptr;
  auto load = [&](auto& function, const char* name) {
    function.name = name;
    void* symbol = dlsym(library, name);
    if (!symbol && !missing) missing = name;
    function.call = reinterpret_cast<decltype(function.call)>(symbol);
  };
#define GPU_DRIVER_LOAD(member, cuda, hip, parameters, arguments) load(d.member, v.is_hip ? #hip : #cuda);
  GPU_DRIVER_FUNCTIONS(GPU_DRIVER_LOAD)
  if (v.is_hip) {
    GPU_HIP_FUNCTIONS(GPU_DRIVER_LOAD)
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
    return {MGE_UNAVAILABLE,
            "the " + std::string(v.product) + " driver finds no device; check that one is installed and visible"};
  }
  Result r = ResultOf(code, d.init.name);
  return r.ok() ? r : Result{MGE_UNAVAILABLE, "the driver does not start: " + r.text() + "; " + v.install};
}

const Driver& TheDriver() { return Loaded(); }

}  // namespace mge::gpu
