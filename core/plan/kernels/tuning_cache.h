// SPDX-License-Identifier: Apache-2.0
// The tuning cache: measured times of kernels, kept for later sessions, later processes and other users.
//
// Measuring all candidates of a model takes seconds to minutes, and the times stay valid until backend, driver or problem
// change. The cache therefore has one file per problem, named by ProblemKey::timing, which is a hash of all that the times
// depend on. Algorithm of a write: locks the directory's lock file, reads the problem's file, merges the new times, writes a
// temporary file and renames it. A killed writer leaves at most a temporary file, which a later process removes. The newer
// time of a candidate replaces the older one. Several processes can so add to one problem at the same time. A checksum at
// the end of the file reveals damage.
//
// A candidate that was killed or crashed while it was timed (timing_workers.h) has a line too, with the time limit. It is
// timed again only under a larger limit, and otherwise left out.
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

// The result of measuring one candidate of a problem.
struct Timing {
  std::string id;
  double us = -1;      // microseconds; negative: the candidate cannot be used
  bool wrong = false;  // true: its results were wrong
  std::string fault;   // the reason why it cannot be used; if it has a time: a remark
  double limit_s = 0;  // greater than 0: under this time limit, its process was killed or crashed
};

// The results for one problem.
struct TuningRecord {
  std::string text;  // the problem as text (ProblemKey::text)
  std::vector<Timing> timings;
  // Returns the timing of a candidate, or nullptr if there is none.
  const Timing* Find(std::string_view id) const;
  // Adds the timings of `other`. They replace timings of the same candidates.
  void Merge(const TuningRecord& other);
};

// A cache in memory and, optionally, in a directory of text files. Thread-safe. A damaged file is reported once, ignored,
// and written again. If the directory cannot be written, the cache logs one warning, still reads it, and keeps new times in
// memory. Users may share a directory. Each then trusts the times of the others, which decide the choice among the offered
// kernels. A write never follows a symbolic link.
class TuningCache {
 public:
  // `directory` is created at the first write. If it is empty, the cache is in memory only.
  explicit TuningCache(std::string directory = {}, Logger logger = Logger());
  TuningCache(const TuningCache&) = delete;
  TuningCache& operator=(const TuningCache&) = delete;

  // Returns the record of a problem, from memory or from its file. `key` is a ProblemKey::timing.
  std::optional<TuningRecord> Find(const std::string& key);
  // Adds a record and writes it. Find() returns it at once, also on other threads. If another process writes, waits until it
  // has finished or `stop` (nullable) is set. The next call writes records that were not written.
  void Add(const std::string& key, const TuningRecord& record, const StopControl* stop = nullptr);

  const std::string& directory() const { return directory_; }
  // Returns false if there is no directory, or if a write has failed.
  bool writable();

 private:
  std::string PathOf(const std::string& key) const { return directory_ + "/" + key + ".tuning"; }
  // Reads the file of a problem. Needs mutex_.
  std::optional<TuningRecord> Read(const std::string& key);
  // Writes all records of unwritten_.
  absl::Status Write(const StopControl* stop);

  const std::string directory_;
  Logger logger_;
  std::mutex mutex_;  // not held while this process waits for another one
  bool writable_;
  std::map<std::string, TuningRecord> records_, unwritten_;
  std::set<std::string> damaged_;  // keys of the damaged files that were reported
};

// Returns the contents of a file.
std::string TuningText(const std::string& key, const TuningRecord& record);
// Parses the contents of a file. Fails with kFileAccess if they are damaged or belong to another key.
absl::StatusOr<TuningRecord> ParseTuningText(const std::string& key, std::string_view text);

}  // namespace mge
