// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/plan/bodies.h"
#include "fmt/format.h"

using mge::DType;
using mge::api::Misuse;
using mge::api::Wrap;

namespace {

mge::SessionOptions OptionsOf(const mge_session_options* given) {
  mge_session_options o = {};
  if (given) std::memcpy(&o, given, std::min(given->struct_size, sizeof(o)));
  mge::SessionOptions options;
  if (o.device) options.device = o.device;
  options.threads = o.threads;
  for (size_t i = 0; i < o.skip_count; ++i) options.skip.push_back(o.skip[i]);
  return options;
}

const mge::Value& Input(const mge_session* s, size_t i) {
  return s->session->graph().value(s->session->graph().inputs()[i]);
}
const mge::Value& Output(const mge_session* s, size_t i) {
  return s->session->graph().value(s->session->graph().outputs()[i]);
}

mge_session* New(std::shared_ptr<mge::Session> session) {
  auto* out = new mge_session;
  out->session = std::move(session);
  return out;
}

// Files of ONNX's tests and of NumPy hold bfloat16 as uint16: what the model declares decides.
void TakeAs(DType declared, mge::Tensor& tensor) {
  if (declared == DType::kBF16 && tensor.dtype() == DType::kU16) {
    tensor = mge::Tensor::View(DType::kBF16, tensor.shape(), tensor.data(), tensor.owner());
  }
}

mge_status* ReadInto(const char* path, const mge::ValueType& declared, mge_tensor** out) {
  MGE_API_ASSIGN_OR_RETURN(mge::HostValue value, mge::api::ReadValue(path, declared.kind));
  TakeAs(declared.type.dtype, value.tensor);
  *out = new mge_tensor{std::move(value)};
  return nullptr;
}

mge::Steering* Of(mge_run_control* control) { return control ? &control->steering : nullptr; }

}  // namespace

namespace mge::api {

absl::StatusOr<std::vector<InputType>> TypesOf(const Session& session, mge_tensor* const* inputs, size_t count) {
  if (static_cast<int>(count) != session.input_count()) {
    return Fail(errors::kBadInput, "the number of inputs does not fit the model",
                {.what = fmt::format("expected {}, got {}", session.input_count(), count)});
  }
  std::vector<InputType> types;
  for (size_t i = 0; i < count; ++i) {
    if (!inputs[i]) return Fail(errors::kApiMisuse, fmt::format("input {} is NULL", i));
    types.push_back(TypeOfValue(inputs[i]->value));
  }
  return types;
}

absl::StatusOr<PlanTotals> TotalsOf(const Plan& plan) {
  PlanTotals t;
  absl::Status status;
  ForEachPlan(plan, [&](const Plan& p, const std::string&) {
    t.planned_peak_bytes += static_cast<uint64_t>(PlannedPeakBytes(p));
    t.arena_bytes += p.arena_bytes;
    t.packed_bytes += p.packed_bytes;
    t.uploaded_bytes += p.uploaded_bytes;
    t.constant_bytes += p.constant_bytes;
    t.steps += static_cast<uint32_t>(p.steps.size());
    t.reference_steps += static_cast<uint32_t>(p.reference_steps);
    InstanceStore& store = InstanceStore::Of(p);
    absl::StatusOr<std::unique_ptr<Instance>> instance = store.Take();
    if (!instance.ok()) return status.Update(instance.status());
    t.measured_peak_bytes += static_cast<uint64_t>((*instance)->arena_bytes() + p.measured_constant_bytes);
    store.Give(*std::move(instance));
  });
  if (!status.ok()) return status;
  return t;
}

}  // namespace mge::api

mge_status* mge_session_load(mge_runtime* runtime, const char* path, const mge_session_options* options,
                              mge_session** out) try {
  if (!runtime || !path || !out) return Misuse("mge_session_load", "a NULL argument");
  MGE_API_ASSIGN_OR_RETURN(std::shared_ptr<mge::Session> session,
                           mge::Session::Load(runtime->runtime, path, OptionsOf(options)));
  *out = New(std::move(session));
  return nullptr;
} MGE_API_CATCH

mge_status* mge_session_load_bytes(mge_runtime* runtime, const void* data, uint64_t size, const mge_session_options* options,
                                   mge_session** out) try {
  if (!runtime || !data || !out) return Misuse("mge_session_load_bytes", "a NULL argument");
  MGE_API_ASSIGN_OR_RETURN(mge::onnx::Model model,
                           mge::onnx::ReadModelBytes({static_cast<const std::byte*>(data), size}, nullptr));
  MGE_API_ASSIGN_OR_RETURN(std::shared_ptr<mge::Session> session,
                           mge::Session::Create(runtime->runtime, std::move(model), OptionsOf(options)));
  *out = New(std::move(session));
  return nullptr;
} MGE_API_CATCH

void mge_session_release(mge_session* session) { delete session; }

size_t mge_session_input_count(const mge_session* s) { return static_cast<size_t>(s->session->input_count()); }
size_t mge_session_output_count(const mge_session* s) { return static_cast<size_t>(s->session->output_count()); }
const char* mge_session_input_name(const mge_session* s, size_t i) {
  return i < mge_session_input_count(s) ? Input(s, i).name.c_str() : nullptr;
}
const char* mge_session_output_name(const mge_session* s, size_t i) {
  return i < mge_session_output_count(s) ? Output(s, i).name.c_str() : nullptr;
}
mge_dtype mge_session_input_dtype(const mge_session* s, size_t i) {
  return i < mge_session_input_count(s) ? static_cast<mge_dtype>(Input(s, i).type.dtype) : MGE_DTYPE_UNDEFINED;
}
int32_t mge_session_input_rank(const mge_session* s, size_t i) {
  return i < mge_session_input_count(s) && Input(s, i).type.has_rank ? static_cast<int32_t>(Input(s, i).type.dims.size()) : -1;
}
const int64_t* mge_session_input_dims(const mge_session* s, size_t i) {
  return i < mge_session_input_count(s) ? Input(s, i).type.dims.data() : nullptr;
}

mge_status* mge_session_read_input(mge_session* s, size_t i, const char* path, mge_tensor** out) try {
  if (!s || !path || !out || i >= mge_session_input_count(s)) return Misuse("mge_session_read_input", "no such input");
  return ReadInto(path, {Input(s, i).type, Input(s, i).kind}, out);
} MGE_API_CATCH

mge_status* mge_session_read_output(mge_session* s, size_t i, const char* path, mge_tensor** out) try {
  if (!s || !path || !out || i >= mge_session_output_count(s)) return Misuse("mge_session_read_output", "no such output");
  const auto& declared = s->session->info().outputs;
  return ReadInto(path, i < declared.size() ? declared[i].type : mge::ValueType{Output(s, i).type, Output(s, i).kind}, out);
} MGE_API_CATCH

mge_status* mge_session_run(mge_session* s, mge_tensor* const* inputs, size_t input_count, mge_tensor** outputs,
                            size_t output_count, mge_run_control* control) try {
  if (!s || (input_count && !inputs) || (output_count && !outputs)) return Misuse("mge_session_run", "a NULL argument");
  if (output_count != mge_session_output_count(s)) return Misuse("mge_session_run", "the number of outputs does not fit the model");
  MGE_API_RETURN_IF_ERROR(mge::api::TypesOf(*s->session, inputs, input_count).status());
  std::vector<mge::HostValue> in(input_count), out(output_count);
  for (size_t i = 0; i < input_count; ++i) in[i] = inputs[i]->value;
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i]) out[i] = outputs[i]->value;
  }
  mge::SteeredRun run(Of(control));
  std::vector<std::unique_ptr<mge_tensor>> made(output_count);  // all of them or none reach the caller
  for (size_t i = 0; i < output_count; ++i) {
    if (!outputs[i]) made[i] = std::make_unique<mge_tensor>();
  }
  std::optional<mge::Recorder> recorder = mge::api::RecorderOf(control, *s->session);
  if (recorder) run.control().observer = &*recorder;
  MGE_API_RETURN_IF_ERROR(s->session->Run(in, out, run.control()));
  if (recorder) recorder->Keep();
  for (size_t i = 0; i < output_count; ++i) {
    if (made[i]) outputs[i] = made[i].release();
    outputs[i]->value = std::move(out[i]);
  }
  return nullptr;
} MGE_API_CATCH

mge_status* mge_session_run_async(mge_session* s, mge_tensor* const* inputs, size_t input_count, mge_run_control* control,
                                  mge_done_fn done, void* state) try {
  if (!s || !done || (input_count && !inputs)) return Misuse("mge_session_run_async", "a NULL argument");
  MGE_API_RETURN_IF_ERROR(mge::api::TypesOf(*s->session, inputs, input_count).status());
  std::vector<mge::HostValue> in(input_count), out(mge_session_output_count(s));
  for (size_t i = 0; i < input_count; ++i) in[i] = inputs[i]->value;
  auto run = std::make_shared<mge::SteeredRun>(Of(control));
  auto recorder = std::make_shared<std::optional<mge::Recorder>>(mge::api::RecorderOf(control, *s->session));
  if (*recorder) run->control().observer = &**recorder;
  s->session->RunAsync(std::move(in), std::move(out), run->control(),
                       [run, recorder, done, state](absl::Status status, std::vector<mge::HostValue> results) {
                         run->Leave();
                         std::vector<std::unique_ptr<mge_tensor>> made;
                         std::vector<mge_tensor*> tensors;
                         if (status.ok()) status = mge::NoThrow([&] {
                           if (*recorder) (*recorder)->Keep();
                           for (mge::HostValue& v : results) {
                             made.push_back(std::make_unique<mge_tensor>());
                             made.back()->value = std::move(v);
                           }
                           tensors.resize(made.size());
                           return absl::OkStatus();
                         });
                         if (!status.ok()) return done(state, Wrap(status), nullptr, 0);
                         for (size_t i = 0; i < made.size(); ++i) tensors[i] = made[i].release();
                         done(state, nullptr, tensors.data(), tensors.size());
                       });
  return nullptr;
} MGE_API_CATCH

namespace {

// `profile`: nullable.
mge_status* ShowPlan(const char* function, mge_session* s, mge_tensor* const* inputs, size_t input_count,
                     const mge_profile* profile, const char* format, int32_t why, mge_string** out) {
  if (!s || !format || !out || (input_count && !inputs)) return Misuse(function, "a NULL argument");
  MGE_API_ASSIGN_OR_RETURN(std::vector<mge::InputType> types, mge::api::TypesOf(*s->session, inputs, input_count));
  MGE_API_ASSIGN_OR_RETURN(std::shared_ptr<const mge::Plan> plan, s->session->PlanFor(types));
  std::string_view f = format;
  if (f != "text" && f != "mge.plan/1") return Misuse(function, "the format is \"text\" or \"mge.plan/1\"");
  mge::StepTimes times;
  mge::Summary summary;
  if (profile) {
    const mge::Recording recording = profile->profile->Read();
    summary = mge::Summarise(recording);
    times = mge::TimesOf(*profile->profile, recording, summary);
  }
  *out = mge::api::NewString(f == "text" ? mge::PlanText(*plan, why != 0, times)
                                         : mge::api::PlanJson(*plan, times, profile ? &summary : nullptr));
  return nullptr;
}

}  // namespace

mge_status* mge_session_plan(mge_session* s, mge_tensor* const* inputs, size_t input_count, const char* format, int32_t why,
                             mge_string** out) try {
  return ShowPlan("mge_session_plan", s, inputs, input_count, nullptr, format, why, out);
} MGE_API_CATCH

mge_status* mge_session_plan_measured(mge_session* s, mge_tensor* const* inputs, size_t input_count, const mge_profile* profile,
                                      const char* format, int32_t why, mge_string** out) try {
  if (!profile) return Misuse("mge_session_plan_measured", "a NULL argument");
  return ShowPlan("mge_session_plan_measured", s, inputs, input_count, profile, format, why, out);
} MGE_API_CATCH

mge_status* mge_session_report(mge_session* s, const char* schema, mge_string** out) try {
  if (!s || !schema || !out) return Misuse("mge_session_report", "a NULL argument");
  std::shared_ptr<const mge::Plan> plan = s->session->last_plan();
  MGE_API_ASSIGN_OR_RETURN(std::string text, mge::api::SessionReport(*s->session, plan.get(), schema));
  *out = mge::api::NewString(std::move(text));
  return nullptr;
} MGE_API_CATCH

mge_status* mge_session_memory(mge_session* s, mge_memory_facts* out) try {
  if (!s || !out) return Misuse("mge_session_memory", "a NULL argument");
  std::shared_ptr<const mge::Plan> plan = s->session->last_plan();
  if (!plan) return Misuse("mge_session_memory", "nothing has run yet");
  mge_memory_facts facts = {};
  facts.struct_size = sizeof(facts);
  MGE_API_ASSIGN_OR_RETURN(const mge::api::PlanTotals totals, mge::api::TotalsOf(*plan));
  facts.planned_peak_bytes = totals.planned_peak_bytes;
  facts.measured_peak_bytes = totals.measured_peak_bytes;
  facts.constant_bytes = static_cast<uint64_t>(totals.constant_bytes);
  facts.steps = totals.steps;
  facts.reference_steps = totals.reference_steps;
  std::memcpy(out, &facts, std::min(out->struct_size, sizeof(facts)));
  return nullptr;
} MGE_API_CATCH

mge_status* mge_run_control_create(mge_run_control** out) try {
  if (!out) return Misuse("mge_run_control_create", "a NULL argument");
  *out = new mge_run_control;
  return nullptr;
} MGE_API_CATCH

void mge_run_control_release(mge_run_control* control) { delete control; }
void mge_run_control_set_timeout(mge_run_control* control, double seconds) { control->steering.SetTimeout(seconds); }
void mge_run_control_set_seed(mge_run_control* control, uint64_t seed) { control->steering.SetSeed(seed); }
void mge_run_control_cancel(mge_run_control* control) { control->steering.Cancel(); }
void mge_run_control_reset(mge_run_control* control) { control->steering.Reset(); }

mge_status* mge_run_control_overdue(const mge_run_control* control, double* seconds, mge_string** place) try {
  if (!control || !seconds) return Misuse("mge_run_control_overdue", "a NULL argument");
  mge::RunControl::Overdue overdue = control->steering.LookAt();
  if (place) *place = mge::api::NewString(std::move(overdue.place));
  *seconds = overdue.seconds;
  return nullptr;
} MGE_API_CATCH
