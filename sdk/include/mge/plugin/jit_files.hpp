// SPDX-License-Identifier: Apache-2.0
// The files of kernels that a backend generates at run time, for a user who wants to read them (settings jit.keep_files and
// jit.work_dir of the host).
//
//   if (mge::KeepsJitFiles()) mge::KeepJitFiles("chain_7", {{".cu", source}, {".cubin", image}});
#pragma once

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>

#include "mge/plugin/error.hpp"
#include "mge/plugin/setting.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// A file of a generated kernel: the end of its name, with the dot, and its content.
struct JitFile {
  std::string_view suffix;
  std::string_view content;
};

// Returns whether the user wants such files.
inline bool KeepsJitFiles() {
  std::string_view value;
  return ReadCoreSetting("jit.keep_files", &value).ok() && ToBool(value);
}

namespace internal {

inline Result JitFilesNotWritten(const std::string& path, const std::string& why) {
  return {MGE_UNAVAILABLE, "the files of generated kernels cannot be written to " + path + ": " + why};
}

// Creates the directory jit.work_dir, or a new one if the setting is empty.
inline Result MakeJitDirectory(std::string* path) {
  if (path->empty()) {
    *path = "/tmp/mge-jit-XXXXXX";
    if (mkdtemp(path->data())) return {};
    return JitFilesNotWritten(*path, std::error_code(errno, std::generic_category()).message());
  }
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::create_directories(*path, error)) fs::permissions(*path, fs::perms::owner_all, error);
  return error ? JitFilesNotWritten(*path, error.message()) : Result{};
}

// Returns the directory, which is created at the first call for a value of the setting.
inline Result JitDirectory(std::string* out) {
  static std::mutex mutex;
  static std::string setting, directory;  // guarded by the mutex
  std::lock_guard lock(mutex);
  std::string_view value;
  const std::string wanted(ReadCoreSetting("jit.work_dir", &value).ok() ? value : "");
  if (directory.empty() || setting != wanted) {
    *out = wanted;
    if (Result r = MakeJitDirectory(out); !r.ok()) return r;
    Log(MGE_LOG_WARNING, "the files of generated kernels are kept in " + *out);
    setting = wanted;
    directory = *out;
  }
  *out = directory;
  return {};
}

}  // namespace internal

// Writes the files NAME.SUFFIX to jit.work_dir, which is created if it is missing, or else to a new directory in /tmp, which the
// backend uses until its end. Logs the name of the directory once, and a warning if a file cannot be written. [any]
inline void KeepJitFiles(const std::string& name, std::initializer_list<JitFile> files) {
  std::string directory;
  Result r = internal::JitDirectory(&directory);
  for (const JitFile& f : files) {
    if (!r.ok()) break;
    const std::string path = directory + "/" + name + std::string(f.suffix);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(f.content.data(), static_cast<std::streamsize>(f.content.size()));
    file.close();
    if (!file) r = internal::JitFilesNotWritten(path, "the file system refuses it");
  }
  if (!r.ok()) Log(MGE_LOG_WARNING, r.text());
}

}  // namespace MGE_HIDDEN
