// SPDX-License-Identifier: Apache-2.0
#include "core/api/objects.h"
#include "core/base/exception.h"
#include "core/base/file.h"
#include "core/env/settings.h"
#include "core/html/profile_page.h"
#include "core/profile/summary.h"
#include "core/profile/timeline.h"
#include "core/profile/trace.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

using mge::api::Misuse;

namespace mge::api {
namespace {

using Json = nlohmann::ordered_json;

// Returns null for a negative number, which means that the value is unknown.
Json Known(double value) { return value < 0 ? Json() : Json(value); }

Json StepJson(const Recording& recording, const StepSummary& row) {
  const ProfiledStep& step = recording.plans[static_cast<size_t>(row.plan)].steps[static_cast<size_t>(row.step)];
  return {{"body", PathOf(recording, row.plan)},
          {"unit", step.unit},
          {"kind", UnitKindName(step.kind)},
          {"label", step.label},
          {"nodes", step.nodes},
          {"operators", step.ops},
          {"operator", step.main_op},
          {"device", step.device},
          {"queue", step.queue},
          {"kernel", step.kernel},
          {"calls", row.calls},
          {"time_us", row.time_us},
          {"share", row.share},
          {"call_median_us", row.median_us},
          {"call_min_us", row.least_us},
          {"estimated_us", Known(step.estimated_us)},
          {"estimate_off", row.off},
          {"flops", Known(step.flops)},
          {"bytes", Known(step.bytes)},
          {"gflops_per_s", Known(row.gflops)},
          {"gb_per_s", Known(row.gbytes)},
          {"balance", Known(row.balance)},
          {"busy", row.busy}};
}

// The bits of profile.mode. The values 0 and 1 are short forms of sums.
enum ProfileEvents : int64_t { kOperatorSteps = 1, kAddedSteps = 2, kCalls = 4, kMemory = 8, kEagerRuns = 16 };

int64_t EventsOf(const Snapshot& settings) {
  const int64_t mode = settings.Get<kProfileMode>();
  return mode > 1 ? mode : mode == 1 ? kOperatorSteps | kAddedSteps | kEagerRuns : kOperatorSteps;
}

// Owns a profile and writes it to profile.file when it is destroyed.
struct ProfileFile {
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<const Snapshot> settings;
  const int64_t events;
  Profile profile;

  ProfileFile(std::shared_ptr<Runtime> r, std::shared_ptr<const Snapshot> s)
      : runtime(std::move(r)), settings(std::move(s)), events(EventsOf(*settings)), profile((events & kMemory) != 0) {}
  ~ProfileFile() {
    const std::string& path = settings->Get<kProfileFile>();
    const absl::Status written = NoThrow([&] {
      Recording recording = profile.Read();
      if (settings->Get<kProfileOnlyWait>()) {
        KeepOnlyWaits(recording);
      } else {
        KeepSteps(recording, (events & kOperatorSteps) != 0, (events & kAddedSteps) != 0);
      }
      return WriteFileAtomically(path, AsBytes(TraceText(recording, (events & kCalls) != 0)));
    });
    if (!written.ok()) runtime->logger().Error("the profile was not written: {}", Std(written.message()));
  }
};

Json ProfileObject(const Recording& recording) {
  const Summary s = Summarise(recording);
  Json steps = Json::array(), operators = Json::array();
  for (const StepSummary& row : s.steps) steps.push_back(StepJson(recording, row));
  for (const OperatorSummary& row : s.operators) {
    operators.push_back({{"operator", row.op},
                         {"steps", row.steps},
                         {"calls", row.calls},
                         {"time_us", row.time_us},
                         {"share", row.share},
                         {"gflops_per_s", Known(row.gflops)},
                         {"gb_per_s", Known(row.gbytes)}});
  }
  return {{"schema", "mge.profile/1"},
          {"device", recording.plans.empty() ? "" : recording.plans.front().device},
          {"threads", s.width},
          {"runs", s.runs},
          {"counted_runs", s.counted},
          {"dropped_runs", recording.dropped},
          {"wall_us", s.wall_us},
          {"planning_us", s.planning_us},
          {"between_steps_us", s.between_us},
          {"estimated_us", s.estimated_us},
          {"estimated_steps_us", s.estimated_steps_us},
          {"estimate_off", s.off},
          {"steps", std::move(steps)},
          {"operators", std::move(operators)}};
}

}  // namespace

std::string ProfileJson(const Recording& recording) {
  return ProfileObject(recording).dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string ProfilePage(const Recording& recording) {
  // Read again: a text that is not UTF-8 has been replaced.
  const Json profile = Json::parse(ProfileJson(recording)), timeline = Json::parse(TimelineText(recording));
  return html::Page("Profile", html::ProfileBody(profile, timeline));
}

std::optional<Recorder> RecorderOf(mge_run_control* control, const mge_session& s) {
  std::shared_ptr<Profile> profile;
  if (control) {
    std::lock_guard lock(control->mutex);
    profile = control->profile;
  }
  if (!profile) profile = s.profile;
  if (!profile) return std::nullopt;
  return std::optional<Recorder>(std::in_place, std::move(profile), s.session->threads(),
                                 s.session->runtime().pool().reserved_count());
}

RunWatch EagerWatch(const mge_runtime& runtime) {
  if (!runtime.profile || !(EventsOf(*runtime.runtime->registry().snapshot()) & kEagerRuns)) return {};
  return [profile = runtime.profile](Session& session, const std::function<absl::Status(RunObserver*)>& run) {
    Recorder recorder(profile, session.threads(), session.runtime().pool().reserved_count());
    absl::Status status = run(&recorder);
    if (status.ok()) recorder.Keep();
    return status;
  };
}

absl::StatusOr<std::shared_ptr<Profile>> AutomaticProfile(std::shared_ptr<Runtime> runtime) {
  const std::shared_ptr<const Snapshot> settings = runtime->registry().snapshot();
  if (!settings->Get<kProfileAutostart>()) return std::shared_ptr<Profile>();
  // A file that cannot be written is an error now, not when the recording is over.
  if (const absl::Status writable = AtomicFile::Create(settings->Get<kProfileFile>()).status(); !writable.ok()) {
    return AddWhere(writable, fmt::format("{} ({})", kProfileFile.key, settings->OriginOf<kProfileFile>().Describe()));
  }
  auto file = std::make_shared<ProfileFile>(std::move(runtime), settings);
  return std::shared_ptr<Profile>(file, &file->profile);
}

}  // namespace mge::api

mge_status* mge_profile_create(mge_profile** out) try {
  MGE_API_NEEDS({"out", out});
  *out = new mge_profile{std::make_shared<mge::Profile>()};
  return nullptr;
}
MGE_API_CATCH

void mge_profile_release(mge_profile* profile) { delete profile; }
void mge_profile_reset(mge_profile* profile) { profile->profile->Reset(); }

void mge_run_control_set_profile(mge_run_control* control, mge_profile* profile) {
  std::shared_ptr<mge::Profile> given = profile ? profile->profile : nullptr;
  std::lock_guard lock(control->mutex);
  control->profile.swap(given);
}

mge_status* mge_profile_report(const mge_profile* profile, const char* format, mge_string** out) try {
  MGE_API_NEEDS({"profile", profile}, {"format", format}, {"out", out});
  const std::string_view f = format;
  std::string (*report)(const mge::Recording&) = nullptr;
  if (f == "mge.profile/1") report = mge::api::ProfileJson;
  if (f == "mge.timeline/1") report = mge::TimelineText;
  if (f == "trace") report = [](const mge::Recording& recording) { return mge::TraceText(recording); };
  if (f == "html") report = mge::api::ProfilePage;
  if (!report) {
    return Misuse("mge_profile_report", R"(the format is "mge.profile/1", "mge.timeline/1", "trace" or "html")");
  }
  *out = mge::api::NewString(report(profile->profile->Read()));
  return nullptr;
}
MGE_API_CATCH
