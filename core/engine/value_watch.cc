// SPDX-License-Identifier: Apache-2.0
#include "core/engine/value_watch.h"

#include <algorithm>
#include <string>

#include "core/base/errors.h"
#include "core/engine/instance_queues.h"
#include "fmt/format.h"

namespace mge {
namespace {

std::string TextOf(const RecordedValue& value) {
  return fmt::format("value '{}' (id {}, {}, {} bytes{})", value.name, value.id, value.type.ToString(), value.bytes,
                     value.device ? " on " + value.device->name() : "");
}

const RecordedUnit* UnitOf(const Plan& plan, const Step& step) {
  const auto unit = static_cast<size_t>(step.unit);
  return unit < plan.recorded_units.size() ? &plan.recorded_units[unit] : nullptr;
}

}  // namespace

ValueWatch::ValueWatch(const Plan& plan, int64_t id, const Logger& logger) : plan_(plan), logger_(logger) {
  for (const RecordedValue& value : plan.values) {
    if (value.id != id || value.constant.defined() || value.location.kind != Location::Kind::kSlot) continue;
    Version& version = versions_.emplace_back(Version{&value});
    const auto index = static_cast<int32_t>(&value - plan.values.data());
    for (const RecordedUnit& unit : plan.recorded_units) {
      if (std::count(unit.outputs.begin(), unit.outputs.end(), index)) version.is_input = false;
    }
  }
}

void ValueWatch::BeginRun() {
  began_ = false;
  for (Version& version : versions_) version.bytes.reset();
}

absl::Status ValueWatch::BeforeStep(const Step& step, ValueReader& reader) {
  for (Version& version : versions_) {
    if (version.bytes && version.value->last_read < step.unit) version.bytes.reset();
    if (!began_ && version.is_input) MGE_RETURN_IF_ERROR(Begin(version, "the caller", reader));
  }
  began_ = true;
  return absl::OkStatus();
}

absl::Status ValueWatch::AfterStep(const Step& step, ValueReader& reader) {
  const RecordedUnit* unit = UnitOf(plan_, step);
  for (Version& version : versions_) {
    const auto index = static_cast<int32_t>(version.value - plan_.values.data());
    if (unit && std::count(unit->outputs.begin(), unit->outputs.end(), index)) {
      MGE_RETURN_IF_ERROR(Begin(version, StepPlace(plan_.units[static_cast<size_t>(step.unit)]), reader));
      continue;
    }
    if (!version.bytes) continue;
    const bool over = version.value->last_read <= step.unit;
    if (over && Overwrites(step, version)) {
      version.bytes.reset();
      continue;
    }
    MGE_RETURN_IF_ERROR(Compare(version, step, reader));
    if (!over) continue;
    logger_.Info("{} has no further reader and is not checked any more", TextOf(*version.value));
    version.bytes.reset();
  }
  return absl::OkStatus();
}

absl::Status ValueWatch::Begin(Version& version, const std::string& writer, ValueReader& reader) {
  MGE_ASSIGN_OR_RETURN(version.bytes, reader.Bytes(*version.value));
  logger_.Warning("{} at {}, written by {}: its bytes are checked after every step", TextOf(*version.value),
                  reader.AddressOf(*version.value), writer);
  return absl::OkStatus();
}

absl::Status ValueWatch::Compare(const Version& version, const Step& step, ValueReader& reader) const {
  MGE_ASSIGN_OR_RETURN(const std::vector<std::byte> now, reader.Bytes(*version.value));
  const Unit& unit = plan_.units[static_cast<size_t>(step.unit)];
  const auto [first, other] = std::mismatch(now.begin(), now.end(), version.bytes->begin());
  if (first == now.end()) {
    logger_.Debug("{} is unchanged after {}", TextOf(*version.value), StepPlace(unit));
    return absl::OkStatus();
  }
  size_t changed = 0;
  for (size_t i = 0; i < now.size(); ++i) changed += now[i] != (*version.bytes)[i];
  return Fail(errors::kKernelFailed, fmt::format("a step changed the bytes of {}", TextOf(*version.value)),
              {.what = fmt::format("{} of its bytes differ, the first at offset {}; it was still to be read", changed,
                                   first - now.begin()),
               .where = StepPlace(unit),
               .fix = "report it to the author of the backend, who can find it with `mge sdk test`"});
}

bool ValueWatch::Overwrites(const Step& step, const Version& version) const {
  const RecordedUnit* unit = UnitOf(plan_, step);
  return unit && std::any_of(unit->outputs.begin(), unit->outputs.end(), [&](int32_t v) {
           const RecordedValue& out = plan_.values[static_cast<size_t>(v)];
           return out.location.kind == Location::Kind::kSlot && out.device == version.value->device &&
                  out.location.slot.base == version.value->location.slot.base &&
                  out.location.slot.offset == version.value->location.slot.offset;
         });
}

}  // namespace mge
