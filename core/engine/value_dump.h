// SPDX-License-Identifier: Apache-2.0
// Writes the values of a run to files (debug.dump_dir, debug.dump_inputs).
#pragma once

#include <set>
#include <string>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/engine/value_reader.h"
#include "core/plan/plan.h"

namespace mge {

// Writes each value that a step with nodes computes to DIRECTORY/ID_NAME.npy, and its inputs to ID-inpK_NAME.npy with the id
// of the step's first output. A later run, or a later call of the same body, replaces the files. A value that .npy cannot
// express is reported once and left out.
class ValueDump {
 public:
  // Creates the directory. Fails with kFileWrite if that fails. The arguments must outlive the result, except `directory`.
  static absl::StatusOr<std::unique_ptr<ValueDump>> Create(const Plan& plan, const std::string& directory, bool inputs,
                                                           const Logger& logger);

  // Writes the inputs of a step that has not begun. Fails with kFileWrite.
  absl::Status BeforeStep(const Step& step, ValueReader& reader);
  // Writes the outputs of a step that has ended. Fails with kFileWrite.
  absl::Status AfterStep(const Step& step, ValueReader& reader);

 private:
  ValueDump(const Plan& plan, std::string directory, bool inputs, const Logger& logger)
      : plan_(plan), directory_(std::move(directory)), inputs_(inputs), logger_(logger) {}
  // Returns the record of a step's unit, or nullptr if the unit has no nodes.
  const RecordedUnit* UnitOf(const Step& step) const;
  absl::Status Write(const RecordedValue& value, const std::string& prefix, ValueReader& reader);

  const Plan& plan_;
  const std::string directory_;
  const bool inputs_;
  const Logger logger_;
  std::set<std::string> left_out_;  // names of values that were reported
};

}  // namespace mge
