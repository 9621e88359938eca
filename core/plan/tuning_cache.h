// SPDX-License-Identifier: Apache-2.0
// The tuning cache: what the timing of kernels has found, kept for later sessions, processes and users of the directory.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/plugin/stop.h"

namespace mge {

// What is known of one candidate of a problem.
struct Timing {
  std::string id;
  double us = -1;     // negative: it cannot be taken, for `fault`; else `fault` is what there is to say of it
  bool wrong = false;  // its results were wrong
  std::string fault;
};

struct TuningRecord {
  std::string text;  // the problem in words
  std::vector<Timing> timings;
  const Timing* Find(std::string_view id) const;
  void Merge(const TuningRecord& other);  // what `other` says of a candidate holds
};

// Thread-safe. One file for each problem, in a form that can be read by eye, written whole or not at all and sealed by a
// checksum: a file that is damaged is reported once, ignored, and written anew. Processes that add to one problem at a time
// lose nothing. Users share a directory that all of them may write: they read each other's files, so that each decides which
// of the offered kernels the others take, and none follows a link to write. A directory that cannot be written is reported
// once and read on; what is found then lives as long as this object.
class TuningCache {
 public:
  // `directory` is made at the first write; empty: memory only.
  explicit TuningCache(std::string directory = {}, Logger logger = Logger());
  TuningCache(const TuningCache&) = delete;
  TuningCache& operator=(const TuningCache&) = delete;

  std::optional<TuningRecord> Find(const std::string& key);
  // Waits while another process writes, until `stop` (nullable) says that nobody waits any more: what was not written then is
  // written by the next call. Others find what is known meanwhile.
  void Add(const std::string& key, const TuningRecord& record, const StopControl* stop = nullptr);

  const std::string& directory() const { return directory_; }
  bool writable();  // false without a directory, and once a write has failed

 private:
  std::string PathOf(const std::string& key) const { return directory_ + "/" + key + ".tuning"; }
  std::optional<TuningRecord> Read(const std::string& key);  // of the file
  absl::Status Write(const StopControl* stop);                // what is unwritten

  const std::string directory_;
  Logger logger_;
  std::mutex mutex_;  // not held while another process is waited for
  bool writable_;
  std::map<std::string, TuningRecord> records_, unwritten_;
  std::set<std::string> damaged_;  // keys of the files that were reported
};

// The form of a file.
std::string TuningText(const std::string& key, const TuningRecord& record);
absl::StatusOr<TuningRecord> ParseTuningText(const std::string& key, std::string_view text);

}  // namespace mge
