// SPDX-License-Identifier: Apache-2.0
// Selections: files that hold the chosen kernel of each problem. A choice by measured time can be repeated from such a file
// without measuring.
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
#include "core/plan/kernels/tuning_cache.h"
#include "core/plugin/stop.h"

namespace mge {

class MeasureObserver;  // core/plan/kernels/measure.h
class TimingWorkers;    // core/plan/kernels/timing_workers.h

// The contents of a selection file. Immutable.
class SelectionFile {
 public:
  // Reads a file. Fails with kConfigFile, which names file and line, if it is invalid or incomplete.
  static absl::StatusOr<std::shared_ptr<const SelectionFile>> Read(const std::string& path);
  // Returns the id of the chosen candidate, or "" if the file has no entry. `key` is a ProblemKey::choice. The result is
  // valid as long as this object.
  std::string_view Find(const std::string& key) const;
  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& kernels() const { return kernels_; }  // ids of candidates by key

 private:
  std::string path_;
  std::map<std::string, std::string> kernels_;
};

// A writer of a selection file. Collects the choices of all sessions. Several processes may write the same file; each keeps
// the entries of the others. Thread-safe.
class SelectionRecorder {
 public:
  // Fails with kConfigFile if the file exists and is not a selection file. Does not change the file.
  static absl::StatusOr<std::shared_ptr<SelectionRecorder>> Create(std::string path);
  // Records the candidate `id` for a problem. `text` and `why` become a comment in the file.
  void Note(const std::string& key, std::string id, std::string_view text, std::string_view why);
  // Removes the entry of a problem, also from the file at the next Flush().
  void Forget(const std::string& key);
  // Writes the file atomically if it is the first call or if an entry changed. Entries of the file stay unless Note() or
  // Forget() changed them. If another process writes, waits until it has finished or `stop` (nullable) is set. Fails with
  // kFileWrite, kConfigFile, kCancelled or kTimeout.
  absl::Status Flush(const StopControl* stop);

 private:
  struct Entry {
    std::string id, comment;
  };
  explicit SelectionRecorder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
  std::mutex mutex_;                                   // not held while this process waits for another one
  std::map<std::string, std::optional<Entry>> noted_;  // nullopt: Forget() was called
  bool changed_ = true;
};

// The limits for timing one candidate.
struct MeasureLimits {
  double seconds = 0.05;                // no new run starts after that time
  uint64_t bytes = UINT64_MAX;          // device memory of a trial
  const StopControl* stop = nullptr;    // stop flag of the run that waits for the kernels; nullable
  MeasureObserver* observer = nullptr;  // nullable
};

// The files and helpers that the choice of kernels uses.
struct SelectionTools {
  std::shared_ptr<TimingWorkers> workers;       // nullptr: candidates are timed in this process
  std::shared_ptr<TuningCache> cache;           // nullptr: times are not stored
  std::shared_ptr<const SelectionFile> replay;  // nullable
  std::shared_ptr<SelectionRecorder> recorder;  // nullable
  Logger logger = Logger();
};

}  // namespace mge
