// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/html/plan_page.h"
#include "core/plan/bodies.h"
#include "fmt/format.h"

using mge::DType;
using mge::api::Misuse;
using mge::api::Wrap;

namespace {

// Converts uint16 to bfloat16, and uint8 to a narrow type, if the model declares them. Files of ONNX's tests and of NumPy store the
// bits of such elements.
void TakeAs(DType declared, mge::Tensor& tensor) {
  const bool bits = (declared == DType::kBF16 && tensor.dtype() == DType::kU16) ||
                    (mge::kNarrow.Contains(declared) && tensor.dtype() == DType::kU8);
  if (bits) tensor = tensor.Within(declared, tensor.shape(), tensor.data());
}

mge_status* ReadInto(const char* path, const mge::ValueType& declared, mge_tensor** out) {
  MGE_API_ASSIGN_OR_RETURN(mge::HostValue value, mge::api::ReadValue(path, declared.kind));
  TakeAs(declared.type.dtype, value.tensor);
  *out = new mge_tensor{std::move(value)};
  return nullptr;
}

}  // namespace

namespace mge::api {

absl::Status CheckInput(const mge_tensor* input, size_t i) {
  if (!input) return Fail(errors::kApiMisuse, fmt::format("input {} is NULL", i));
  if (!input->life.alive()) return Fail(errors::kApiMisuse, fmt::format("input {} is a tensor that was released", i));
  return absl::OkStatus();
}

absl::Status CheckGiven(const Session& session, mge_tensor* const* inputs, size_t count) {
  if (static_cast<int>(count) != session.input_count()) {
    return Fail(errors::kBadInput, "the number of inputs does not match the model",
                {.what = fmt::format("expected {}, got {}", session.input_count(), count)});
  }
  for (size_t i = 0; i < count; ++i) MGE_RETURN_IF_ERROR(CheckInput(inputs[i], i));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<InputType>> TypesOf(const Session& session, mge_tensor* const* inputs, size_t count) {
  MGE_RETURN_IF_ERROR(CheckGiven(session, inputs, count));
  std::vector<InputType> types;
  for (size_t i = 0; i < count; ++i) {
    MGE_ASSIGN_OR_RETURN(InputType type, session.InputTypeOf(i, inputs[i]->value));
    types.push_back(std::move(type));
  }
  return types;
}

absl::StatusOr<PlanTotals> TotalsOf(const Plan& plan) {
  PlanTotals t;
  absl::Status status;
  ForEachPlan(plan, [&](const Plan& p, const std::string&) {
    t.planned_peak_bytes += static_cast<uint64_t>(PlannedPeakBytes(p));
    t.arena_bytes += p.report.arena_bytes;
    t.packed_bytes += p.report.packed_bytes;
    t.uploaded_bytes += p.report.uploaded_bytes;
    t.uploaded_packed_bytes += p.report.uploaded_packed_bytes;
    t.constant_bytes += p.report.constant_bytes;
    t.steps += static_cast<uint32_t>(p.steps.size());
    t.reference_steps += static_cast<uint32_t>(p.report.reference_steps);
    InstanceStore& store = InstanceStore::Of(p);
    absl::StatusOr<std::unique_ptr<Instance>> instance = store.Acquire();
    if (!instance.ok()) return status.Update(instance.status());
    t.measured_peak_bytes += static_cast<uint64_t>((*instance)->arena_bytes() + p.report.measured_constant_bytes);
    store.Release(*std::move(instance));
  });
  if (!status.ok()) return status;
  return t;
}

}  // namespace mge::api

void mge_session_release(mge_session* session) {
  delete session;
  mge::ReleasedRuns().Reclaim(mge::kReleasedRunPatience);
}

mge_status* mge_session_read_input(mge_session* s, size_t i, const char* path, mge_tensor** out) try {
  MGE_API_NEEDS({"session", s}, {"path", path}, {"out", out});
  if (i >= mge_session_input_count(s)) {
    return Misuse("mge_session_read_input", fmt::format("input {} of {} inputs", i, mge_session_input_count(s)));
  }
  return ReadInto(path, mge::api::DeclaredInput(*s, i), out);
}
MGE_API_CATCH

mge_status* mge_session_read_output(mge_session* s, size_t i, const char* path, mge_tensor** out) try {
  MGE_API_NEEDS({"session", s}, {"path", path}, {"out", out});
  if (i >= mge_session_output_count(s)) {
    return Misuse("mge_session_read_output", fmt::format("output {} of {} outputs", i, mge_session_output_count(s)));
  }
  return ReadInto(path, s->session->output_types()[i], out);
}
MGE_API_CATCH

namespace {

// Returns the plan for these inputs in *out. `profile` may be null.
mge_status* ShowPlan(const char* function, mge_session* s, mge_tensor* const* inputs, size_t input_count,
                     const mge_profile* profile, const char* format, int32_t why, mge_string** out) {
  if (mge_status* null = mge::api::NullAmong(
          function, {{"session", s}, {"inputs", input_count == 0 || inputs != nullptr}, {"format", format}, {"out", out}})) {
    return null;
  }
  MGE_API_ASSIGN_OR_RETURN(std::vector<mge::InputType> types, mge::api::TypesOf(*s->session, inputs, input_count));
  MGE_API_ASSIGN_OR_RETURN(std::shared_ptr<const mge::Plan> plan, s->session->PlanFor(types));
  std::string_view f = format;
  if (f != "text" && f != "mge.plan/1" && f != "html") {
    return Misuse(function, R"(the format is "text", "mge.plan/1" or "html")");
  }
  mge::StepTimes times;
  mge::Summary summary;
  if (profile) {
    const mge::Recording recording = profile->profile->Read();
    summary = mge::Summarise(recording);
    times = mge::TimesOf(*profile->profile, recording, summary);
  }
  std::string shown;
  if (f == "text") {
    shown = mge::PlanText(*plan, why != 0, times);
  } else {
    shown = mge::api::PlanJson(*plan, times, profile ? &summary : nullptr);
  }
  if (f == "html") shown = mge::html::Page("Plan", mge::html::PlanBody(mge::html::Json::parse(shown)));
  *out = mge::api::NewString(std::move(shown));
  return nullptr;
}

}  // namespace

mge_status* mge_session_plan(mge_session* s, mge_tensor* const* inputs, size_t input_count, const char* format, int32_t why,
                             mge_string** out) try {
  return ShowPlan("mge_session_plan", s, inputs, input_count, nullptr, format, why, out);
}
MGE_API_CATCH

mge_status* mge_session_plan_measured(mge_session* s, mge_tensor* const* inputs, size_t input_count,
                                      const mge_profile* profile, const char* format, int32_t why, mge_string** out) try {
  MGE_API_NEEDS({"profile", profile});
  return ShowPlan("mge_session_plan_measured", s, inputs, input_count, profile, format, why, out);
}
MGE_API_CATCH

mge_status* mge_session_report(mge_session* s, const char* schema, mge_string** out) try {
  MGE_API_NEEDS({"session", s}, {"schema", schema}, {"out", out});
  std::shared_ptr<const mge::Plan> plan = s->session->last_plan();
  MGE_API_ASSIGN_OR_RETURN(std::string text, mge::api::SessionReport(*s->session, plan.get(), schema));
  *out = mge::api::NewString(std::move(text));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_session_memory(mge_session* s, mge_memory_facts* out) try {
  MGE_API_NEEDS({"session", s}, {"out", out});
  MGE_API_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_memory_facts>(out->struct_size, "mge_memory_facts"));
  std::shared_ptr<const mge::Plan> plan = s->session->last_plan();
  if (!plan) return Misuse("mge_session_memory", "nothing has run yet");
  mge_memory_facts facts = {};
  facts.struct_size = out->struct_size;
  MGE_API_ASSIGN_OR_RETURN(const mge::api::PlanTotals totals, mge::api::TotalsOf(*plan));
  facts.planned_peak_bytes = totals.planned_peak_bytes;
  facts.measured_peak_bytes = totals.measured_peak_bytes;
  facts.constant_bytes = static_cast<uint64_t>(totals.constant_bytes);
  facts.steps = totals.steps;
  facts.reference_steps = totals.reference_steps;
  facts.staged_bytes = s->session->staged_bytes();
  facts.engine_operations = s->session->operations();
  std::memcpy(out, &facts, std::min(out->struct_size, sizeof(facts)));
  return nullptr;
}
MGE_API_CATCH
