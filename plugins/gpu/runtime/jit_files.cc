// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/jit_files.h"

#include <filesystem>
#include <fstream>
#include <mutex>
#include <system_error>

#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {
namespace {

namespace fs = std::filesystem;

std::string CoreText(std::string_view key) {
  std::string_view value;
  return ReadCoreSetting(key, &value).ok() ? std::string(value) : "";
}

Result NotWritten(const std::string& path, const std::string& why) {
  return {MGE_UNAVAILABLE, "the files of generated kernels cannot be written to " + path + ": " + why};
}

// Creates the directory of the setting, or a new one.
Result MakeDirectory(std::string* path) {
  *path = CoreText("jit.work_dir");
  if (path->empty()) {
    *path = "/tmp/mge-jit-XXXXXX";
    if (!mkdtemp(path->data())) return NotWritten(*path, std::error_code(errno, std::generic_category()).message());
    return {};
  }
  std::error_code error;
  if (fs::create_directories(*path, error)) fs::permissions(*path, fs::perms::owner_all, error);
  return error ? NotWritten(*path, error.message()) : Result{};
}

// Returns the directory, which is created at the first call for a value of the setting.
Result DirectoryOf(std::string* out) {
  static std::mutex mutex;
  static std::string setting, directory;  // guarded by the mutex
  std::lock_guard lock(mutex);
  const std::string wanted = CoreText("jit.work_dir");
  if (directory.empty() || setting != wanted) {
    if (Result r = MakeDirectory(out); !r.ok()) return r;
    Log(MGE_LOG_WARNING, "the files of generated kernels are kept in " + *out);
    setting = wanted;
    directory = *out;
  }
  *out = directory;
  return {};
}

Result Write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Result{} : NotWritten(path, "the file system refuses it");
}

Result WriteFiles(const KernelSource& source, const std::string& image) {
  std::string directory;
  if (Result r = DirectoryOf(&directory); !r.ok()) return r;
  const std::string stem = directory + "/" + source.name;
  if (Result r = Write(stem + ".cu", source.text); !r.ok() || image.empty()) return r;
  const char* suffix = TheVendor().is_hip ? ".hsaco" : image.starts_with("\177ELF") ? ".cubin" : ".ptx";
  return Write(stem + suffix, image);
}

}  // namespace

void KeepJitFiles(const KernelSource& source, const std::string& image) {
  if (!ToBool(CoreText("jit.keep_files"))) return;
  if (Result r = WriteFiles(source, image); !r.ok()) Log(MGE_LOG_WARNING, r.text());
}

}  // namespace mge::gpu
