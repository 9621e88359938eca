// SPDX-License-Identifier: Apache-2.0
// A library of the vendor beside the driver (cuDNN, NCCL, hiprtc), opened at its first use.
#pragma once

#include <dlfcn.h>

#include <span>
#include <string>

#include "mge/plugin.hpp"

namespace mge::gpu {

// The facts of a library.
struct LibraryFacts {
  const char* name;                       // "cuDNN"
  const mge_setting* setting;             // its path, or "off"
  const mge_setting* driver_setting;      // path of another driver, with which the system's library does not work
  std::span<const char* const> files;     // names of the system's library, newest first
  const char* install;                    // advice if it is missing: "install libcudnn 9 for CUDA 13"
  const char* toolkit_setting = nullptr;  // key of the host's setting with the folder of the toolkit or of its compiler
  const char* without = nullptr;          // the consequence if it is missing, for a warning; null: an error tells the user
};

// An opened library. It is never closed, because drivers and such libraries do not support that. If a library cannot be
// used, logs a warning, unless the settings leave it out. Functions are [any].
class VendorLibrary {
 public:
  explicit VendorLibrary(const LibraryFacts& facts) : facts_(facts) {}
  // Opens the library of the setting, or else that of the toolkit, or else that of the system. Fails with MGE_UNAVAILABLE, the reason and what to do.
  Result Open();
  // Opens the library with this path. Logs nothing.
  Result Open(const std::string& path);
  // Finds a function. Fails like Open().
  template <typename F>
  Result Find(const char* name, F* out) const {
    *out = reinterpret_cast<F>(dlsym(handle_, name));
    return *out ? Result{} : Missing(path_ + " has no function " + name);
  }
  // Returns an error with the reason and what to do, and logs it.
  Result Missing(const std::string& why) const { return Logged(Error(why)); }
  const std::string& path() const { return path_; }

 private:
  // Returns the path of the library in the toolkit of the host's setting, or "" if that has none.
  std::string FileOfToolkit() const;
  Result OpenOfSystem();
  Result Error(const std::string& why) const;
  Result Logged(Result r) const;

  const LibraryFacts& facts_;
  void* handle_ = nullptr;
  std::string path_;  // or its name, if the system's
};

}  // namespace mge::gpu
