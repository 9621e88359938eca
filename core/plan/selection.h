// SPDX-License-Identifier: Apache-2.0
// Selections: which kernel was chosen for which problem, recorded to a file and read back, so that a choice by time can be
// repeated without a stopwatch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/plan/tuning_cache.h"
#include "core/plugin/stop.h"

namespace mge {

// A selection file, read once. Immutable.
class FrozenSelection {
 public:
  // kConfigFile names file and line; a file that was cut short is refused.
  static absl::StatusOr<std::shared_ptr<const FrozenSelection>> Read(const std::string& path);
  // The candidate's id; empty if the file says nothing about the problem. `key` is ProblemKey::choice.
  std::string_view Find(const std::string& key) const;
  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& kernels() const { return kernels_; }  // ids by key

 private:
  std::string path_;
  std::map<std::string, std::string> kernels_;
};

// Collects what sessions choose, and writes it all to one file. Processes that write to one file at a time lose nothing.
// Thread-safe.
class SelectionRecorder {
 public:
  // kConfigFile where the file holds something else, which is not written over.
  static absl::StatusOr<std::shared_ptr<SelectionRecorder>> Create(std::string path);
  // `text` and `why` become a comment.
  void Note(const std::string& key, std::string id, std::string_view text, std::string_view why);
  // Nothing is to be written for this problem, whatever was before.
  void Forget(const std::string& key);
  // Writes the file whole, the first time and when something was noted since: what it holds stays but where something else
  // was noted. Waits while another process does that, until `stop` (nullable) says otherwise. kFileWrite, kConfigFile.
  absl::Status Flush(const StopControl* stop);

 private:
  struct Entry {
    std::string id, comment;
  };
  explicit SelectionRecorder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::mutex mutex_;  // not held while another process is waited for
  std::map<std::string, std::optional<Entry>> noted_;  // nullopt: forgotten
  bool changed_ = true;
};

// Bounds of the timing of one candidate.
struct MeasureLimits {
  double seconds = 0.05;  // the run that is on is finished
  uint64_t bytes = 0;     // of device memory; 0: what the budget leaves
  const StopControl* stop = nullptr;  // of the run that the kernels are for
};

// What the choice of kernels works with, beside the mode.
struct SelectionTools {
  bool may_measure = true;  // false: times that are in the cache are used, none are taken
  MeasureLimits limits = {};
  std::shared_ptr<TuningCache> cache;             // nullptr: nothing is remembered
  std::shared_ptr<const FrozenSelection> frozen;  // nullable
  bool only_frozen = false;                       // what the file does not hold is an error
  std::shared_ptr<SelectionRecorder> recorder;    // nullable
  Logger logger = Logger();
};

}  // namespace mge
