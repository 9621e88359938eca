// SPDX-License-Identifier: Apache-2.0
// The runs of a session, for callers in C.
#include <chrono>
#include <optional>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "core/api/callback.h"
#include "core/api/convert_inputs.h"
#include "core/api/inbox.h"
#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "core/plugin/native_stream.h"
#include "fmt/format.h"

using mge::api::Misuse;
using mge::api::Wrap;

namespace {

// Values of one run. A model with more inputs or outputs needs an allocation in each run.
constexpr size_t kInlineValues = 32;
using Values = absl::InlinedVector<mge::HostValue, kInlineValues>;

// A checked call of mge_session_run().
struct Call {
  Values inputs = {};   // in the model's order
  Values outputs = {};  // undefined where the run creates one
  absl::InlinedVector<int, kInlineValues> places = {};
  absl::InlinedVector<std::shared_ptr<mge::RunFence>, 4> after = {};
};

absl::Status NamedTwice(std::string_view what, const char* name) {
  return mge::Fail(mge::errors::kApiMisuse, fmt::format("{} '{}' is named twice", what, name));
}

absl::Status IsNull(std::string_view what, size_t i) {
  return mge::Fail(mge::errors::kApiMisuse, fmt::format("{} {} is NULL", what, i));
}

absl::Status TakeNamedInputs(const mge::Session& session, mge_tensor* const* inputs, const char* const* names, size_t count,
                             Values& out) {
  const std::vector<mge::ValueId>& ids = session.graph().inputs();
  out.resize(ids.size());
  absl::InlinedVector<bool, kInlineValues> given(ids.size(), false);
  for (size_t i = 0; i < count; ++i) {
    if (!names[i]) return IsNull("the name of input", i);
    MGE_RETURN_IF_ERROR(mge::api::CheckInput(inputs[i], i));
    MGE_ASSIGN_OR_RETURN(const int place, session.InputIndex(names[i]));
    const auto at = static_cast<size_t>(place);
    if (given[at]) return NamedTwice("input", names[i]);
    given[at] = true;
    MGE_RETURN_IF_ERROR(mge::api::TakeInput(session, at, inputs[i]->value, out[at]));
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing == given.end()) return absl::OkStatus();
  const mge::Value& value = session.graph().value(ids[static_cast<size_t>(missing - given.begin())]);
  return mge::Fail(mge::errors::kBadInput, fmt::format("input '{}' is not given", value.name),
                   {.what = fmt::format("the model has {} inputs, {} are given", ids.size(), count),
                    .fix = fmt::format("give '{}' as {}", value.name, mge::TypeText(value.kind, value.type))});
}

absl::Status TakeInputs(const mge::Session& session, mge_tensor* const* inputs, const char* const* names, size_t count,
                        Values& out) {
  if (names) return TakeNamedInputs(session, inputs, names, count, out);
  MGE_RETURN_IF_ERROR(mge::api::CheckGiven(session, inputs, count));
  out.resize(count);
  for (size_t i = 0; i < count; ++i) MGE_RETURN_IF_ERROR(mge::api::TakeInput(session, i, inputs[i]->value, out[i]));
  return absl::OkStatus();
}

absl::Status TakeOutputs(const mge::Session& session, mge_tensor* const* outputs, const char* const* names, size_t count,
                         Call& call) {
  const auto all = static_cast<size_t>(session.output_count());
  if (!names && outputs && count != all) {
    return mge::Fail(mge::errors::kApiMisuse, fmt::format("output_count is {}, the model has {} outputs", count, all),
                     {.fix = "name the outputs to compute (output_names), or give room for all of them"});
  }
  if (names && count == 0) return mge::Fail(mge::errors::kApiMisuse, "no output is named");
  for (size_t i = 0; i < count && names; ++i) {
    if (!names[i]) return IsNull("the name of output", i);
    MGE_ASSIGN_OR_RETURN(const int place, session.OutputIndex(names[i]));
    if (std::find(call.places.begin(), call.places.end(), place) != call.places.end()) return NamedTwice("output", names[i]);
    call.places.push_back(place);
  }
  call.outputs.resize(names ? count : all);
  for (size_t i = 0; i < count && outputs; ++i) {
    if (!outputs[i]) continue;
    if (!outputs[i]->life.alive()) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("output {} is a tensor that was released", i));
    }
    if (outputs[i]->read_only) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("output {} is a tensor that must not be written", i),
                       {.fix = "give another tensor, or NULL: the run then creates one"});
    }
    call.outputs[i] = outputs[i]->value;
  }
  return absl::OkStatus();
}

// Starts a run on the engine. Its result goes to the callback or to the inbox. The run retains its control.
void Post(mge_session& s, const Call& call, const mge_run_options& o) {
  struct Posted {
    explicit Posted(mge_run_control* by) : control(by), state(by ? &by->run_control : nullptr) {
      if (by) by->owners.fetch_add(1, std::memory_order_relaxed);
    }
    const mge::api::ControlPtr control;
    mge::RunState state;  // destroyed before the control
    std::optional<mge::Recorder> recorder;
    std::list<mge::api::EndedRun> ended{1};  // made before the run, so that its end cannot fail for lack of memory
  };
  auto run = std::make_shared<Posted>(o.control);
  run->recorder = mge::api::RecorderOf(o.control, s);
  if (run->recorder) run->state.observer = &*run->recorder;
  run->ended.front().tag = o.tag;
  auto done = [run, inbox = o.inbox ? o.inbox->inbox : nullptr, done = o.done, state = o.state](
                  absl::Status status, std::vector<mge::HostValue> results) {
    run->state.Detach();
    mge::api::EndedRun& ended = run->ended.front();
    if (status.ok()) {
      status = mge::NoThrow([&] {
        if (run->recorder) run->recorder->Keep();
        for (mge::HostValue& v : results) {
          ended.outputs.push_back(std::make_unique<mge_tensor>());
          ended.outputs.back()->value = std::move(v);
        }
        return absl::OkStatus();
      });
      if (!status.ok()) ended.outputs.clear();
    }
    if (inbox) {
      ended.status = std::move(status);
      return inbox->Add(run->ended);
    }
    absl::InlinedVector<mge_tensor*, kInlineValues> tensors;
    if (status.ok()) {
      status = mge::NoThrow([&] {
        tensors.resize(ended.outputs.size());
        return absl::OkStatus();
      });
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = ended.outputs[i].release();
    mge::api::CallApplication(
        [&] { done(state, Wrap(status), tensors.empty() ? nullptr : tensors.data(), tensors.size()); });
  };
  s.session->Post({.inputs = {call.inputs.begin(), call.inputs.end()},
                   .outputs = {call.outputs.begin(), call.outputs.end()},
                   .places = {call.places.begin(), call.places.end()},
                   .after = {call.after.begin(), call.after.end()}},
                  run->state, std::move(done));
}

// Runs or enqueues in this thread. On error, `outputs` does not change.
absl::Status Submit(mge_session& s, Call& call, const mge_run_options& o, mge_tensor** outputs, mge_run_fence** fence) {
  absl::InlinedVector<std::unique_ptr<mge_tensor>, kInlineValues> made(call.outputs.size());
  for (size_t i = 0; i < made.size(); ++i) {
    if (!outputs[i]) made[i] = std::make_unique<mge_tensor>();
  }
  std::unique_ptr<mge_run_fence> enqueued;
  if (fence) enqueued = std::make_unique<mge_run_fence>();
  std::optional<mge::NativeStream> stream;
  if (o.native_stream) {
    MGE_ASSIGN_OR_RETURN(stream, mge::NativeStream::On(s.session->device(), o.native_stream));
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<mge::RunFence> before,
                         mge::RunFence::OfStream(s.session->shared_runtime(), *stream));
    call.after.push_back(std::move(before));
  }
  mge::RunState run(o.control ? &o.control->run_control : nullptr);
  std::optional<mge::Recorder> recorder = mge::api::RecorderOf(o.control, s);
  if (recorder) run.observer = &*recorder;
  const mge::RunRequest request = {.inputs = call.inputs,
                                   .outputs = std::span<mge::HostValue>(call.outputs),
                                   .places = call.places,
                                   .after = call.after,
                                   .wait = !fence};
  absl::StatusOr<std::shared_ptr<mge::RunFence>> submitted = s.session->Submit(request, run);
  if (stream) mge::GiveUp(std::move(call.after.back()));  // an error does not wait for the work on the stream
  MGE_RETURN_IF_ERROR(submitted.status());
  std::shared_ptr<mge::RunFence> end = *std::move(submitted);
  if (stream && end) MGE_RETURN_IF_ERROR(end->Delay(*stream));
  if (recorder) recorder->Keep();
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i]) outputs[i] = made[i].release();
    outputs[i]->value = std::move(call.outputs[i]);
  }
  if (!fence) return absl::OkStatus();
  enqueued->fence = std::move(end);
  *fence = enqueued.release();
  return absl::OkStatus();
}

}  // namespace

mge_status* mge_session_run(mge_session* s, mge_tensor* const* inputs, size_t input_count, mge_tensor** outputs,
                            size_t output_count, const mge_run_options* options, mge_run_fence** fence) try {
  mge_run_options o = {};
  if (options) {
    MGE_API_ASSIGN_OR_RETURN(o, mge::api::CopyOptions(options, "mge_run_options"));
  }
  const bool posted = o.done || o.inbox;
  MGE_API_NEEDS({"session", s}, {"inputs", input_count == 0 || inputs != nullptr},
                {"outputs", posted || output_count == 0 || outputs != nullptr},
                {"after", o.after_count == 0 || o.after != nullptr});
  if (posted && (fence || (o.done && o.inbox))) {
    return Misuse("mge_session_run", "a run has one of these: a fence, the callback 'done', an inbox");
  }
  if (posted && o.native_stream) {
    return Misuse("mge_session_run",
                  "native_stream cannot order a run that begins later, with 'done' or an inbox; enqueue it with a fence");
  }
  Call call;
  MGE_API_RETURN_IF_ERROR(TakeInputs(*s->session, inputs, o.input_names, input_count, call.inputs));
  if (s->converts) MGE_API_RETURN_IF_ERROR(mge::api::ConvertInputs(*s->session, std::span<mge::HostValue>(call.inputs)));
  MGE_API_RETURN_IF_ERROR(TakeOutputs(*s->session, outputs, o.output_names, output_count, call));
  for (size_t i = 0; i < o.after_count; ++i) {
    if (!o.after[i]) return Misuse("mge_session_run", fmt::format("fence {} is NULL", i));
    call.after.push_back(o.after[i]->fence);
  }
  if (!posted) return Wrap(Submit(*s, call, o, outputs, fence));
  Post(*s, call, o);
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_run_fence_wait(mge_run_fence* fence, double seconds, int32_t* reached) try {
  MGE_API_NEEDS({"fence", fence}, {"reached", reached});
  constexpr double kLongest = 1e9;  // seconds
  const double limit = seconds >= 0 && seconds < kLongest ? seconds : kLongest;
  const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limit));
  *reached = 1;
  MGE_API_ASSIGN_OR_RETURN(const bool ended, fence->fence->Wait(wait));
  *reached = ended;
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_run_fence_of_stream(mge_runtime* runtime, const char* device, void* native_stream, mge_run_fence** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"device", device}, {"native_stream", native_stream}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::Resolution found, runtime->runtime->devices().Resolve(std::string_view(device)));
  if (found.devices.size() != 1) {
    return Misuse("mge_run_fence_of_stream", fmt::format("'{}' is not the name of one device", device));
  }
  MGE_API_ASSIGN_OR_RETURN(const mge::NativeStream stream,
                           mge::NativeStream::On(*found.devices.front().device, native_stream));
  auto fence = std::make_unique<mge_run_fence>();
  MGE_API_ASSIGN_OR_RETURN(fence->fence, mge::RunFence::OfStream(runtime->runtime, stream));
  *out = fence.release();
  return nullptr;
}
MGE_API_CATCH

void mge_run_fence_release(mge_run_fence* fence) {
  if (!fence) return;
  mge::GiveUp(std::move(fence->fence));
  delete fence;
}

mge_status* mge_run_control_create(mge_run_control** out) try {
  MGE_API_NEEDS({"out", out});
  *out = new mge_run_control;
  return nullptr;
}
MGE_API_CATCH

void mge_run_control_release(mge_run_control* control) {
  if (control && control->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete control;
}
void mge_run_control_set_timeout(mge_run_control* control, double seconds) { control->run_control.SetTimeout(seconds); }
void mge_run_control_set_seed(mge_run_control* control, uint64_t seed) { control->run_control.SetSeed(seed); }
void mge_run_control_set_priority(mge_run_control* control, int32_t priority) { control->run_control.SetPriority(priority); }
void mge_run_control_cancel(mge_run_control* control) { control->run_control.Cancel(); }
void mge_run_control_reset(mge_run_control* control) { control->run_control.Reset(); }

mge_status* mge_run_control_overdue(const mge_run_control* control, double* seconds, mge_string** place) try {
  MGE_API_NEEDS({"control", control}, {"seconds", seconds});
  mge::RunState::Overdue overdue = control->run_control.LookAt();
  if (place) *place = mge::api::NewString(std::move(overdue.place));
  *seconds = overdue.seconds;
  return nullptr;
}
MGE_API_CATCH
