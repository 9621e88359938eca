// SPDX-License-Identifier: Apache-2.0
// Temporary plugin directories with fake backends.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/plugin/devices.h"
#include "core/plugin/loader.h"
#include "mge/plugin.h"
#include "tests/core/plugin/fakes/fake.h"

namespace mge {

inline std::string FakeFile(const std::string& kind) { return MGE_BINARY_DIR "/tests/fakes/" + kind + ".so"; }

inline std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A temporary directory of mode 0755, removed by the destructor.
class PluginFolder {
 public:
  PluginFolder() {
    std::string name = testing::TempDir() + "mge_plugins_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = std::filesystem::canonical(name);
    Mode("", 0755);
  }
  ~PluginFolder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string At(const std::string& name) const { return path_ + "/" + name; }

  // Copies the fake `kind` into the folder, as `name`. Returns its path.
  std::string Add(const std::string& kind, const std::string& name = {}) {
    return Write(name.empty() ? "mge_" + kind + ".so" : name, ReadAll(FakeFile(kind)));
  }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(At(name), std::ios::binary) << bytes;
    Mode(name, 0755);
    return At(name);
  }
  void Mode(const std::string& name, int mode) const {
    std::filesystem::permissions(name.empty() ? path_ : At(name), static_cast<std::filesystem::perms>(mode));
  }

 private:
  std::string path_;
};

// Returns the offset of the identity note in the bytes of a library.
inline size_t NoteOffset(const std::string& bytes) {
  std::string owner("\4\0\0\0", 4);
  uint32_t size = sizeof(mge_note), type = MGE_NOTE_TYPE;
  owner.append(reinterpret_cast<const char*>(&size), 4);
  owner.append(reinterpret_cast<const char*>(&type), 4);
  owner += std::string("MGE\0", 4);
  size_t at = bytes.find(owner);
  EXPECT_NE(at, std::string::npos);
  return at + owner.size();
}

// Returns the bytes of the library after `edit(mge_note&)` changed its note.
template <typename F>
std::string WithNote(std::string bytes, F&& edit) {
  mge_note note;
  size_t at = NoteOffset(bytes);
  std::memcpy(&note, bytes.data() + at, sizeof(note));
  edit(note);
  std::memcpy(bytes.data() + at, &note, sizeof(note));
  return bytes;
}

template <typename F>
std::string WithElfHeader(std::string bytes, F&& edit) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  edit(header);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

// Finds the backends of the folders, listed in order of precedence. Starts none.
inline std::unique_ptr<Devices> Discover(const std::vector<std::string>& folders, DevicesOptions options = {}) {
  for (const std::string& folder : folders) options.directories.push_back({folder, "the test"});
  absl::StatusOr<std::unique_ptr<Devices>> devices = Devices::Create(std::move(options));
  EXPECT_TRUE(devices.ok()) << FormatError(devices.status());
  return devices.ok() ? *std::move(devices) : nullptr;
}

// Finds and starts the backends of the folders.
inline std::unique_ptr<Devices> Load(const std::vector<std::string>& folders, DevicesOptions options = {}) {
  std::unique_ptr<Devices> devices = Discover(folders, std::move(options));
  if (devices) devices->StartAll();
  return devices;
}

// Returns the verdict on the file of that name.
inline PluginFile FileNamed(const std::vector<PluginFile>& files, const std::string& name) {
  for (const PluginFile& file : files) {
    if (std::filesystem::path(file.path).filename() == name) return file;
  }
  ADD_FAILURE() << "no row for " << name;
  return {};
}

inline const mge_test_record& RecordOf(const Device& device) {
  return *static_cast<const mge_test_record*>(device.backend().plugin().extension(MGE_TEST_RECORD, 1));
}

}  // namespace mge
