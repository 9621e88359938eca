// SPDX-License-Identifier: Apache-2.0
// Finds the step that changes the bytes of a value which is still to be read (debug.watch_value).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/value_reader.h"
#include "core/plan/plan.h"

namespace mge {

// Watches all versions of one value: copies in several memories and layouts. A version is watched from the step that writes
// it, an input from the first step, until its last reader has ended. A step that may overwrite it in place ends the watch.
class ValueWatch {
 public:
  ValueWatch(const Plan& plan, int64_t id, const Logger& logger);

  void BeginRun();
  absl::Status BeforeStep(const Step& step, ValueReader& reader);
  // Compares the bytes. Fails with kKernelFailed, which names the step that changed them.
  absl::Status AfterStep(const Step& step, ValueReader& reader);

 private:
  struct Version {
    const RecordedValue* value;
    bool is_input = true;                                        // no step writes it
    std::optional<std::vector<std::byte>> bytes = std::nullopt;  // set while it is watched
  };
  absl::Status Begin(Version& version, const std::string& writer, ValueReader& reader);
  absl::Status Compare(const Version& version, const Step& step, ValueReader& reader) const;
  // Returns true if the step writes an output over the version's memory.
  bool Overwrites(const Step& step, const Version& version) const;

  const Plan& plan_;
  const Logger logger_;
  std::vector<Version> versions_;
  bool began_ = false;  // the inputs of this run are watched
};

}  // namespace mge
