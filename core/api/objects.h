// SPDX-License-Identifier: Apache-2.0
// What the handles of the C API point to, and the way from a Status to one of them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/engine/runtime.h"
#include "core/engine/session.h"
#include "core/engine/steering.h"
#include "core/profile/profile.h"
#include "core/profile/recorder.h"
#include "core/profile/summary.h"
#include "mge/mge.h"

// The texts belong to whoever made the object; see status.cc.
struct mge_status {
  int32_t kind;
  int32_t id;
  const char *text, *title, *what, *where, *fix;
};

struct mge_string {
  std::string text;
};

struct mge_tensor {
  mge::HostValue value;
};

struct mge_runtime {
  std::shared_ptr<mge::Runtime> runtime;
};

struct mge_session {
  std::shared_ptr<mge::Session> session;
};

struct mge_profile {
  std::shared_ptr<mge::Profile> profile;  // with the controls on which it is set
};

struct mge_run_control {
  mge::Steering steering;
  std::mutex mutex;
  std::shared_ptr<mge::Profile> profile;  // nullable; guarded by `mutex`
};

namespace mge::api {

// NULL for OK, else a status for the caller. One that there is no memory for is a constant that says so.
mge_status* Wrap(const absl::Status& status) noexcept;

// The exception that is being handled, as the status of the function that it would leave.
mge_status* Thrown(const char* function) noexcept;

// A misuse of the API: an argument that must not be what it is.
mge_status* Misuse(std::string_view function, std::string_view what);

// The first of these arguments of a function that must not be NULL and is, as a misuse; NULL if there is none.
struct Argument {
  const char* name;
  bool given;
  Argument(const char* n, const void* pointer) : name(n), given(pointer != nullptr) {}
  Argument(const char* n, bool is_given) : name(n), given(is_given) {}
};
mge_status* NullAmong(std::string_view function, std::initializer_list<Argument> arguments);

mge_string* NewString(std::string text);

// A recorder for a run of the session with this control, which begins now; none where no profile is set.
std::optional<Recorder> RecorderOf(mge_run_control* control, Session& session);  // nullable

// MGE_VALUE_... tensor.cc.
int32_t PublicKind(ValueKind kind);

// The declared type of an input that exists. session_values.cc.
ValueType DeclaredInput(const mge_session& s, size_t i);

// "NAME=VALUE" texts of a caller. runtime.cc.
absl::StatusOr<std::vector<Assignment>> Assignments(const char* const* list, size_t count);

// The types of an array of tensors; NULL entries are a misuse.
absl::StatusOr<std::vector<InputType>> TypesOf(const Session& session, mge_tensor* const* inputs, size_t count);

// The reports; reports.cc.
absl::StatusOr<std::string> RuntimeReport(Runtime& runtime, std::string_view schema);
absl::StatusOr<std::string> SessionReport(Session& session, const Plan* plan, std::string_view schema);
// A file as a value of that kind: .npy, .npz ("file.npz:name"), .pb. tensor.cc.
absl::StatusOr<HostValue> ReadValue(const std::string& path, ValueKind kind);

// "mge.plan/1"; `times` and `summary` (nullable) of a profile.
std::string PlanJson(const Plan& plan, const StepTimes& times = nullptr, const Summary* summary = nullptr);
std::string ProfileJson(const Recording& recording);  // "mge.profile/1"; profile.cc

// "mge.plugins/1"; plugins.cc.
std::string PluginsJson(std::span<const PluginFile> files, std::span<const PluginDirectory> directories,
                        const Quarantine& quarantine);

// The options of a runtime as a caller of C gives them (nullable); the logger is left out. runtime.cc.
absl::StatusOr<RuntimeOptions> OptionsOf(const mge_runtime_options* given);

// The plan with those that its bodies ran with: bytes that an instance of each holds on its device, with the packed constants, as
// planned and as they are; steps.
struct PlanTotals {
  uint64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
  int64_t arena_bytes = 0, packed_bytes = 0, uploaded_bytes = 0, constant_bytes = 0;
  uint32_t steps = 0, reference_steps = 0;
};
absl::StatusOr<PlanTotals> TotalsOf(const Plan& plan);

}  // namespace mge::api

// Ends the function-try-block of a function of the API: no exception leaves it.
#define MGE_API_CATCH \
  catch (...) {       \
    return ::mge::api::Thrown(__func__); \
  }

// Runs an expression that gives a Status and leaves the function if it failed.
#define MGE_API_RETURN_IF_ERROR(expr)                                             \
  do {                                                                            \
    if (absl::Status s_ = (expr); !s_.ok()) return ::mge::api::Wrap(s_);          \
  } while (false)
#define MGE_API_ASSIGN_OR_RETURN(lhs, expr) \
  MGE_API_ASSIGN_OR_RETURN_IMPL_(MGE_CONCAT_(mge_or_, __LINE__), lhs, expr)
#define MGE_API_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr)       \
  auto tmp = (expr);                                         \
  if (!tmp.ok()) return ::mge::api::Wrap(tmp.status());      \
  lhs = std::move(tmp).value()

// Leaves the function with a misuse if one of these arguments is NULL: {"out", out}, {"data", size == 0 || data}.
#define MGE_API_NEEDS(...)                                                                            \
  do {                                                                                                \
    if (mge_status* s_ = ::mge::api::NullAmong(__func__, {__VA_ARGS__})) return s_;                   \
  } while (false)
