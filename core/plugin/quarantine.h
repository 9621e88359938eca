// SPDX-License-Identifier: Apache-2.0
// The quarantine: builds of backends whose start crashed or hung a process. They are not opened again until the user
// releases them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace mge {

// A folder with one small file per entry. Entries are written atomically, so several processes need no lock. The key of an
// entry is BuildOf() of the file, so a rebuilt backend is not affected.
class Quarantine {
 public:
  struct Entry {
    std::string key;
    std::string name;    // the backend's name
    std::string path;    // the path of the file when it was added
    std::string reason;  // a sentence
  };

  Quarantine() = default;  // an empty quarantine; Add() fails
  explicit Quarantine(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }

  bool empty() const;
  // Returns the entry of a key. If its file exists but cannot be read, returns an entry with a generic reason.
  std::optional<Entry> Find(const std::string& key) const;
  std::vector<Entry> All() const;              // sorted by key
  absl::Status Add(const Entry& entry) const;  // fails with kFileWrite
  // Returns the file that Add() writes, or "" if it cannot write one, and the content of that file.
  std::string PathOf(const Entry& entry) const;
  static std::string ContentOf(const Entry& entry);
  // Removes an entry. Succeeds if there is none. Fails with kFileWrite.
  absl::Status Remove(const std::string& key) const;

 private:
  std::string directory_;
};

}  // namespace mge
