// SPDX-License-Identifier: Apache-2.0
// Runs whose caller does not wait: with a callback, or with an inbox that keeps their results.
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "core/api/callback.h"
#include "core/api/inbox.h"
#include "core/api/objects.h"
#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/exception.h"
#include "fmt/format.h"

using mge::api::Misuse;
using mge::api::Wrap;

namespace {

using Outputs = std::vector<std::unique_ptr<mge_tensor>>;

// Starts a run. Calls done(status, outputs) once, when the run uses neither its inputs nor its control any more.
template <typename Done>
mge_status* Start(mge_session* s, mge_tensor* const* inputs, size_t input_count, mge_run_control* control, Done done) {
  MGE_API_RETURN_IF_ERROR(mge::api::CheckGiven(*s->session, inputs, input_count));
  std::vector<mge::HostValue> in(input_count), out(mge_session_output_count(s));
  for (size_t i = 0; i < input_count; ++i) {
    MGE_API_RETURN_IF_ERROR(mge::api::TakeInput(*s->session, i, inputs[i]->value, in[i]));
  }
  auto run = std::make_shared<mge::RunState>(control ? &control->run_control : nullptr);
  auto recorder = std::make_shared<std::optional<mge::Recorder>>(mge::api::RecorderOf(control, *s));
  if (*recorder) run->observer = &**recorder;
  s->session->Post(std::move(in), std::move(out), *run,
                   [run, recorder, done](absl::Status status, std::vector<mge::HostValue> results) {
                     run->Detach();
                     Outputs made;
                     if (status.ok()) {
                       status = mge::NoThrow([&] {
                         if (*recorder) (*recorder)->Keep();
                         for (mge::HostValue& v : results) {
                           made.push_back(std::make_unique<mge_tensor>());
                           made.back()->value = std::move(v);
                         }
                         return absl::OkStatus();
                       });
                     }
                     done(std::move(status), std::move(made));
                   });
  return nullptr;
}

}  // namespace

namespace mge::api {

Inbox::Inbox(int descriptor) : descriptor_(descriptor), process_(getpid()) {}
Inbox::~Inbox() { close(descriptor_); }

void Inbox::Signal() {
  const uint64_t one = 1;
  if (getpid() == process_ && write(descriptor_, &one, sizeof(one)) < 0) return;  // impossible: the counter is 0
}

void Inbox::Unsignal() {
  uint64_t count = 0;
  if (getpid() == process_ && read(descriptor_, &count, sizeof(count)) < 0) return;
}

void Inbox::Add(std::list<EndedRun>& run) {
  std::lock_guard lock(mutex_);
  runs_.splice(runs_.end(), run);
  if (runs_.size() + messages_.size() == 1) Signal();
}

void Inbox::Add(Message message) {
  std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
  if (runs_.size() + messages_.size() == 1) Signal();
}

template <typename Queue>
std::optional<typename Queue::value_type> Inbox::TakeFrom(Queue& from) {
  std::lock_guard lock(mutex_);
  if (from.empty()) return std::nullopt;
  std::optional<typename Queue::value_type> out = std::move(from.front());
  from.pop_front();
  if (runs_.empty() && messages_.empty()) Unsignal();
  return out;
}

std::optional<EndedRun> Inbox::TakeRun() { return TakeFrom(runs_); }
std::optional<Message> Inbox::TakeMessage() { return TakeFrom(messages_); }

}  // namespace mge::api

mge_status* mge_session_run_async(mge_session* s, mge_tensor* const* inputs, size_t input_count, mge_run_control* control,
                                  mge_done_fn done, void* state) try {
  MGE_API_NEEDS({"session", s}, {"done", done != nullptr}, {"inputs", input_count == 0 || inputs != nullptr});
  return Start(s, inputs, input_count, control, [done, state](absl::Status status, Outputs made) {
    std::vector<mge_tensor*> tensors;
    if (status.ok()) {
      status = mge::NoThrow([&] {
        tensors.resize(made.size());
        return absl::OkStatus();
      });
    }
    for (size_t i = 0; i < tensors.size(); ++i) tensors[i] = made[i].release();
    mge::api::CallApplication(
        [&] { done(state, Wrap(status), tensors.empty() ? nullptr : tensors.data(), tensors.size()); });
  });
}
MGE_API_CATCH

mge_status* mge_inbox_create(mge_inbox** out) try {
  MGE_API_NEEDS({"out", out});
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) {
    return Wrap(mge::Fail(mge::errors::kOutOfMemory, "the system refused a file descriptor",
                          {.what = mge::ErrnoText(errno), .fix = "close other files, or raise the limit (ulimit -n)"}));
  }
  *out = new mge_inbox{std::make_shared<mge::api::Inbox>(descriptor)};
  return nullptr;
}
MGE_API_CATCH

void mge_inbox_release(mge_inbox* inbox) { delete inbox; }

int32_t mge_inbox_descriptor(const mge_inbox* inbox) { return inbox->inbox->descriptor(); }

mge_status* mge_inbox_run(mge_inbox* inbox, uint64_t tag, mge_session* s, mge_tensor* const* inputs, size_t input_count,
                          mge_run_control* control) try {
  MGE_API_NEEDS({"inbox", inbox}, {"session", s}, {"inputs", input_count == 0 || inputs != nullptr});
  auto run = std::make_shared<std::list<mge::api::EndedRun>>(1);
  run->front().tag = tag;
  return Start(s, inputs, input_count, control, [to = inbox->inbox, run](absl::Status status, Outputs made) {
    run->front().status = std::move(status);
    run->front().outputs = std::move(made);
    to->Add(*run);
  });
}
MGE_API_CATCH

int32_t mge_inbox_take_run(mge_inbox* inbox, uint64_t* tag, mge_status** status, mge_tensor** outputs, size_t capacity,
                           size_t* count) {
  std::optional<mge::api::EndedRun> run = inbox->inbox->TakeRun();
  if (!run) return 0;
  *tag = run->tag;
  *count = 0;
  if (run->status.ok() && run->outputs.size() > capacity) {
    *status = Misuse("mge_inbox_take_run",
                     fmt::format("the run has {} outputs, and there is room for {}", run->outputs.size(), capacity));
    return 1;
  }
  *status = Wrap(run->status);
  for (std::unique_ptr<mge_tensor>& output : run->outputs) outputs[(*count)++] = output.release();
  return 1;
}

int32_t mge_inbox_take_message(mge_inbox* inbox, int32_t* level, mge_string** message) {
  std::optional<mge::api::Message> taken = inbox->inbox->TakeMessage();
  if (!taken) return 0;
  *level = taken->level;
  *message = mge::api::NewString(std::move(taken->text));
  return 1;
}
