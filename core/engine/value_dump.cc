// SPDX-License-Identifier: Apache-2.0
#include "core/engine/value_dump.h"

#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/npy.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr size_t kLongestName = 150;  // characters; a file's name has at most 255

// Returns a name without characters that could leave the directory or control a terminal: '_' replaces them.
std::string PlainName(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, kLongestName)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
    out += plain ? c : '_';
  }
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ValueDump>> ValueDump::Create(const Plan& plan, const std::string& directory, bool inputs,
                                                             const Logger& logger) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return Fail(errors::kFileWrite, fmt::format("the directory '{}' cannot be created", directory),
                {.what = error.message(), .where = "debug.dump_dir", .fix = "name a directory that you can write"});
  }
  return std::unique_ptr<ValueDump>(new ValueDump(plan, directory, inputs, logger));
}

const RecordedUnit* ValueDump::UnitOf(const Step& step) const {
  const auto unit = static_cast<size_t>(step.unit);
  if (unit >= plan_.recorded_units.size() || plan_.units[unit].nodes.empty()) return nullptr;
  return &plan_.recorded_units[unit];
}

absl::Status ValueDump::BeforeStep(const Step& step, ValueReader& reader) {
  const RecordedUnit* unit = inputs_ ? UnitOf(step) : nullptr;
  if (!unit || unit->outputs.empty()) return absl::OkStatus();
  const int32_t id = plan_.values[static_cast<size_t>(unit->outputs.front())].id;
  for (size_t k = 0; k < unit->inputs.size(); ++k) {
    const RecordedValue& value = plan_.values[static_cast<size_t>(unit->inputs[k])];
    MGE_RETURN_IF_ERROR(Write(value, fmt::format("{:06}-inp{}", id, k), reader));
  }
  return absl::OkStatus();
}

absl::Status ValueDump::AfterStep(const Step& step, ValueReader& reader) {
  const RecordedUnit* unit = UnitOf(step);
  if (!unit) return absl::OkStatus();
  for (const int32_t v : unit->outputs) {
    const RecordedValue& value = plan_.values[static_cast<size_t>(v)];
    MGE_RETURN_IF_ERROR(Write(value, fmt::format("{:06}", value.id), reader));
  }
  return absl::OkStatus();
}

absl::Status ValueDump::Write(const RecordedValue& value, const std::string& prefix, ValueReader& reader) {
  MGE_ASSIGN_OR_RETURN(std::optional<Tensor> tensor, reader.Plain(value));
  const std::string part = plan_.part.empty() ? "" : PlainName(plan_.part) + ".";
  const std::string path = fmt::format("{}/{}{}_{}.npy", directory_, part, prefix, PlainName(value.name));
  absl::Status written =
      tensor ? WriteNpy(path, *tensor) : Fail(errors::kUnsupportedType, "it is not a tensor, or in a layout of the backend");
  if (ErrorId(written) != errors::kUnsupportedType.id) return written;
  if (left_out_.insert(value.name).second) {
    logger_.Warning("value '{}' is not written to '{}': {}", value.name, directory_, ErrorTitle(written));
  }
  return absl::OkStatus();
}

}  // namespace mge
