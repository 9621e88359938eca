// SPDX-License-Identifier: Apache-2.0
// The API function of learning rates over the time of a training.
#include <algorithm>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "mge/schedules.hpp"

namespace {

absl::Status Bad(std::string title, std::string fix) {
  return mge::Fail(mge::errors::kBadInput, std::move(title), {.where = "mge_schedule_rate", .fix = std::move(fix)});
}

absl::StatusOr<mge::Schedule> ScheduleOf(const mge_schedule& given) {
  MGE_ASSIGN_OR_RETURN(const mge_schedule o, mge::api::CopyOptions(&given, "mge_schedule"));
  mge::Schedule out;
  if (o.name && *o.name) out.name = o.name;
  std::vector<std::string_view> names;
  for (const mge::ScheduleRow& row : mge::kSchedules) names.push_back(row.name);
  if (std::ranges::find(names, out.name) == names.end()) {
    return Bad(fmt::format("there is no schedule '{}'", out.name), fmt::format("use one of {}", fmt::join(names, ", ")));
  }
  out.rate = o.rate;
  out.warmup = o.warmup;
  out.step_factor = o.step_factor;
  out.step_count = o.step_count;
  if (!(out.rate >= 0)) return Bad(fmt::format("rate = {} is negative", out.rate), "give a rate of 0 or more");
  if (!(out.warmup >= 0 && out.warmup < 1)) {
    return Bad(fmt::format("warmup = {} is outside of [0, 1)", out.warmup), "give the part of the training, such as 0.1");
  }
  for (size_t i = 0; i < o.point_count; ++i) out.points.push_back({o.points[2 * i], o.points[2 * i + 1]});
  const bool sorted = std::ranges::is_sorted(out.points, {}, &mge::SchedulePoint::part);
  if ((out.name == "table") != !out.points.empty() || !sorted) {
    return Bad(fmt::format("the schedule '{}' has {} points", out.name, out.points.size()),
               "\"table\" needs points whose parts rise, and the others have none");
  }
  return out;
}

}  // namespace

mge_status* mge_schedule_rate(const mge_schedule* schedule, double part, double* rate) try {
  MGE_API_NEEDS({"schedule", schedule}, {"rate", rate});
  MGE_API_ASSIGN_OR_RETURN(const mge::Schedule known, ScheduleOf(*schedule));
  if (!(part >= 0 && part <= 1)) {
    return mge::api::Wrap(Bad(fmt::format("part = {} is outside of [0, 1]", part), "divide the steps done by all steps"));
  }
  *rate = known.At(part);
  return nullptr;
}
MGE_API_CATCH
