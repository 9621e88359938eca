// SPDX-License-Identifier: Apache-2.0
// The structs behind the handles of the C API, and the functions that its sources share. The caller of the C API owns the
// objects that it gets, and frees them with the release functions in mge.h.
#pragma once

#include <cxxabi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/source_file.h"
#include "core/base/tensor.h"
#include "core/eager/eager_interpreter.h"
#include "core/eager/eager_tape.h"
#include "core/engine/run_control.h"
#include "core/engine/runtime.h"
#include "core/engine/session.h"
#include "core/plugin/context.h"
#include "core/profile/profile.h"
#include "core/profile/recorder.h"
#include "core/profile/summary.h"
#include "core/train/restore_export.h"
#include "core/train/training.h"
#include "mge/eager.h"
#include "mge/mge.h"

// A status. Its texts are owned by a derived struct, or are constants; see status.cc.
struct mge_status {
  mge_code code;
  int32_t exit_code;
  int32_t id;
  const char *text, *title, *what, *where, *fix;
};

struct mge_string {
  std::string text;
};

namespace mge::api {

// The model that a session trains, as it was loaded.
struct TrainedModel {
  std::shared_ptr<const SourceFile> file;  // nullptr for a model from memory
  Bytes bytes = {};                        // of a model from memory
  std::shared_ptr<const void> owner = {};  // of the bytes; nullptr: they outlive the session
  std::string folder = {};                 // of the file
  std::vector<std::string> parameters = {};
  std::shared_ptr<const onnx::Model> model = {};  // without its training step
  TrainingOptions options = {};
  RestoredExport restored = {};  // where `model` differs from the file
};

// An input or output of a session. Its texts stay where they are: mge_value_facts points to them.
struct DescribedValue {
  DescribedValue(std::string value_name, ValueType value_type);
  DescribedValue(DescribedValue&&) = default;
  std::string name;
  ValueType type;
  std::vector<const char*> dim_names;  // of `type`
};

// Marks an object as alive. Memory that was freed mostly keeps its bytes for a while, so that the use of an object after its
// release is seen, though not always.
class LifeMark {
 public:
  ~LifeMark() { mark_ = 0; }
  bool alive() const { return mark_ == kAlive; }

 private:
  static constexpr uint32_t kAlive = 0x4d474521;
  volatile uint32_t mark_ = kAlive;  // volatile: the compiler keeps the write in the destructor
};

}  // namespace mge::api

struct mge_tensor {
  mge::HostValue value;
  bool read_only = false;
  mge::api::LifeMark life = {};
};

struct mge_runtime {
  std::shared_ptr<mge::Runtime> runtime;
  std::shared_ptr<mge::Profile> profile;  // the recording of profile.autostart, shared with the sessions; nullable
};

struct mge_session {
  std::shared_ptr<mge::Session> session;
  std::shared_ptr<mge::Profile> profile;                       // of the runtime; nullable
  std::vector<std::string> states = {};                        // the names of all states
  std::shared_ptr<const mge::api::TrainedModel> trained = {};  // of a session that trains; nullable
  bool converts = false;  // whether it takes inputs of other element types, as one that trains or evaluates does
  std::vector<mge::api::DescribedValue> inputs = {}, outputs = {};
};

struct mge_run_fence {
  std::shared_ptr<mge::RunFence> fence;
};

struct mge_profile {
  std::shared_ptr<mge::Profile> profile;  // shared with the run controls that use it
};

struct mge_run_control {
  std::atomic<int32_t> owners{1};  // the application, and runs in progress that do not end with a call
  mge::RunControl run_control;
  std::mutex mutex;
  std::shared_ptr<mge::Profile> profile;  // nullable; guarded by `mutex`
};

struct mge_eager {
  std::shared_ptr<mge::EagerInterpreter> interpreter;
};

struct mge_eager_tensor {
  mge::EagerTensorPtr tensor;
};

struct mge_eager_tape {
  std::shared_ptr<mge::EagerTape> tape;
};

namespace mge::api {

// Returns NULL for OK, else a new status. If there is no memory for it, returns a constant status for kOutOfMemory.
mge_status* Wrap(const absl::Status& status) noexcept;

// Converts the exception that is being handled into the status that `function` returns.
mge_status* Thrown(const char* function) noexcept;

// Returns a kApiMisuse status: `function` was called with an invalid argument or in a wrong state.
mge_status* Misuse(std::string_view function, std::string_view what);

// Returns a kApiMisuse status that names the first argument that is NULL or a released tensor, or NULL if there is none.
struct Argument {
  const char* name;
  bool given, released = false;
  Argument(const char* n, const void* pointer) : name(n), given(pointer != nullptr) {}
  Argument(const char* n, const mge_tensor* tensor)
      : name(n), given(tensor != nullptr), released(tensor && !tensor->life.alive()) {}
  Argument(const char* n, bool is_given) : name(n), given(is_given) {}
};
mge_status* NullAmong(std::string_view function, std::initializer_list<Argument> arguments);

mge_string* NewString(std::string text);
mge_tensor* NewTensor(Tensor tensor);
bool IsElementType(mge_dtype dtype);  // strings included

// Returns the context of this thread: see mge_device_current. Defined in context.cc.
absl::StatusOr<Context> CurrentContextOf(Runtime& runtime);

// Returns a recorder for a run that begins now: into the profile of `control`, which may be NULL, else into that of the
// session. Returns nullopt if neither has a profile.
std::optional<Recorder> RecorderOf(mge_run_control* control, const mge_session& session);

// Returns what adds the runs of eager operators to the profile of the runtime, if there is one that wants them.
RunWatch EagerWatch(const mge_runtime& runtime);
// Returns the profile for all runs of a runtime if profile.autostart is set, else null. Its last owner writes profile.file.
absl::StatusOr<std::shared_ptr<Profile>> AutomaticProfile(std::shared_ptr<Runtime> runtime);

// Returns the MGE_VALUE_... constant of a kind. Defined in values.cc.
int32_t PublicKind(ValueKind kind);

// Sets the inputs and outputs of a new session. Defined in session_values.cc.
void DescribeValues(mge_session& s);

// Returns the declared type of input `i`, which must exist. Defined in session_values.cc.
ValueType DeclaredInput(const mge_session& s, size_t i);

// Parses a caller's texts "NAME=VALUE". Defined in runtime.cc.
absl::StatusOr<std::vector<Assignment>> Assignments(const char* const* list, size_t count);

// The options of a session that trains.
struct TrainingRequest {
  TrainingOptions options;
  bool data_parallel = false;
  // Lines "name: value" that all processes of a training must share: version, options, and the caller's.
  std::string facts = {};
};
// Defined in training.cc. Fails with kApiMisuse.
absl::StatusOr<TrainingRequest> TrainingRequestOf(const mge_training_options& given, const Snapshot& settings);

// Fails with kNotFinite if a state that is to be written has NaN. Infinity is allowed: masks have it. Defined in training.cc.
absl::Status CheckNoNan(const std::string& name, const Tensor& state);

struct ReleaseControl {
  void operator()(mge_run_control* control) const { mge_run_control_release(control); }
};
using ControlPtr = std::unique_ptr<mge_run_control, ReleaseControl>;  // one of its owners

// Checks that input `i` is a tensor that was not released. Fails with kApiMisuse.
absl::Status CheckInput(const mge_tensor* input, size_t i);
// Checks the number of inputs, and each with CheckInput(). Fails with kBadInput or kApiMisuse.
absl::Status CheckGiven(const Session& session, mge_tensor* const* inputs, size_t count);
// Sets `out` to the value that input `i` declares: an empty sequence becomes one of maps, an empty optional one of sequences,
// where that is declared. Fails with kBadInput if the elements have another type. Defined in values.cc.
absl::Status TakeInput(const Session& session, size_t i, const HostValue& given, HostValue& out);
// Returns the types of the inputs and their places. Fails like CheckGiven(), and with kBadInput for another device.
absl::StatusOr<std::vector<InputType>> TypesOf(const Session& session, mge_tensor* const* inputs, size_t count);

// The state of a device, opened if possible. Defined in devices.cc.
struct DeviceState {
  bool works = false;
  std::string reason = {};                   // why it does not
  uint64_t total_bytes = 0, free_bytes = 0;  // 0: unknown
};
DeviceState StateOf(Device& device);

// Return a report as JSON. Fail with kApiMisuse for an unknown schema. Defined in reports.cc.
absl::StatusOr<std::string> RuntimeReport(Runtime& runtime, std::string_view schema);
absl::StatusOr<std::string> SessionReport(Session& session, const Plan* plan, std::string_view schema);

// Reads a value from a file: .npy, .npz ("file.npz:name") or .pb. Defined in tensor.cc.
absl::StatusOr<HostValue> ReadValue(const std::string& path, ValueKind kind);

// Returns an "mge.plan/1" report. `times` and `summary` come from a profile and may be null. Defined in reports.cc.
std::string PlanJson(const Plan& plan, const StepTimes& times = nullptr, const Summary* summary = nullptr);
std::string ProfileJson(const Recording& recording);  // "mge.profile/1"; defined in profile.cc
std::string ProfilePage(const Recording& recording);  // the same as a page of HTML

// Returns an "mge.plugins/1" report. Defined in plugins.cc.
std::string PluginsJson(std::span<const PluginFile> files, std::span<const PluginDirectory> directories,
                        const Quarantine& quarantine);

// Converts the options of a C caller, except the logger. `given` may be NULL. Defined in runtime.cc.
absl::StatusOr<RuntimeOptions> OptionsOf(const mge_runtime_options* given);

// Sums over a plan and the plans of its bodies. The peaks are the device memory of one instance of each plan, constants
// included.
struct PlanTotals {
  uint64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
  int64_t arena_bytes = 0, packed_bytes = 0, uploaded_bytes = 0, uploaded_packed_bytes = 0, constant_bytes = 0;
  uint32_t steps = 0, reference_steps = 0;
};
absl::StatusOr<PlanTotals> TotalsOf(const Plan& plan);

}  // namespace mge::api

// Ends the function-try-block of an API function: converts an exception into the returned status.
#define MGE_API_CATCH                    \
  catch (abi::__forced_unwind&) {        \
    throw;                               \
  }                                      \
  catch (...) {                          \
    return ::mge::api::Thrown(__func__); \
  }

// Evaluates an expression of type Status and, if it failed, returns it from the API function.
#define MGE_API_RETURN_IF_ERROR(expr)                                    \
  do {                                                                   \
    if (absl::Status s_ = (expr); !s_.ok()) return ::mge::api::Wrap(s_); \
  } while (false)
#define MGE_API_ASSIGN_OR_RETURN(lhs, expr) MGE_API_ASSIGN_OR_RETURN_IMPL_(MGE_CONCAT_(mge_or_, __LINE__), lhs, expr)
#define MGE_API_ASSIGN_OR_RETURN_IMPL_(tmp, lhs, expr)  \
  auto tmp = (expr);                                    \
  if (!tmp.ok()) return ::mge::api::Wrap(tmp.status()); \
  lhs = std::move(tmp).value()

// Returns a kApiMisuse status from the API function if an argument is NULL: {"out", out}, {"data", size == 0 || data}.
#define MGE_API_NEEDS(...)                                                          \
  do {                                                                              \
    if (mge_status* s_ = ::mge::api::NullAmong(__func__, {__VA_ARGS__})) return s_; \
  } while (false)
