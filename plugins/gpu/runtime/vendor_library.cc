// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/vendor_library.h"

#include <unistd.h>

#include <string_view>

namespace mge::gpu {

Result VendorLibrary::Error(const std::string& why) const {
  return {MGE_UNAVAILABLE, std::string(facts_.name) + " cannot be used: " + why + "; " + facts_.install + ", or set " +
                               std::string(View(facts_.setting->key)) + " to its path" +
                               (facts_.without ? ", or to off" : "")};
}

Result VendorLibrary::Logged(Result r) const {
  if (!r.ok() && facts_.without) Log(MGE_LOG_WARNING, r.text() + "; without it, " + facts_.without);
  return r;
}

Result VendorLibrary::Open() {
  const std::string name = facts_.name, key(View(facts_.setting->key));
  std::string_view path, driver;
  if (Result r = ReadSetting(*facts_.setting, &path); !r.ok()) return r;
  if (Result r = ReadSetting(*facts_.driver_setting, &driver); !r.ok()) return r;
  if (path == "off") return {MGE_UNAVAILABLE, name + " is switched off (" + key + "=off)"};
  if (!path.empty() && path[0] != '/') {
    return Logged({MGE_INVALID_ARGUMENT, key + " is '" + std::string(path) + "', which is not an absolute path"});
  }
  if (!path.empty()) return Logged(Open(std::string(path)));
  if (const std::string file = FileOfToolkit(); !file.empty()) return Logged(Open(file));
  if (!driver.empty()) {
    return {MGE_UNAVAILABLE,
            name + " is not used beside another driver (" + std::string(View(facts_.driver_setting->key)) + ")"};
  }
  return Logged(OpenOfSystem());
}

std::string VendorLibrary::FileOfToolkit() const {
  std::string_view toolkit;
  if (!facts_.toolkit_setting || !ReadCoreSetting(facts_.toolkit_setting, &toolkit).ok() || toolkit.empty()) return {};
  for (const char* part : {"/lib64/", "/../lib64/", "/lib/", "/../lib/"}) {
    for (const char* file : facts_.files) {
      std::string path = std::string(toolkit) + part + file;
      if (access(path.c_str(), F_OK) == 0) return path;
    }
  }
  return {};
}

Result VendorLibrary::OpenOfSystem() {
  Result first;
  for (const char* file : facts_.files) {
    Result r = Open(std::string(file));
    if (r.ok()) return r;
    if (first.ok()) first = std::move(r);
  }
  return first;
}

Result VendorLibrary::Open(const std::string& path) {
  path_ = path;
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle_) return {};
  const char* error = dlerror();
  return Error(error ? error : path);
}

}  // namespace mge::gpu
