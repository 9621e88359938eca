// SPDX-License-Identifier: Apache-2.0
#include "core/api/inbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "fmt/format.h"

using mge::api::Misuse;
using mge::api::Wrap;

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
  if (size() == 1) Signal();
}

void Inbox::Add(Message message) {
  std::lock_guard lock(mutex_);
  messages_.push_back(std::move(message));
  if (size() == 1) Signal();
}

void Inbox::Add(StageProgress progress) {
  std::lock_guard lock(mutex_);
  const auto known =
      std::find_if(stages_.begin(), stages_.end(), [&](const StageProgress& s) { return s.stage == progress.stage; });
  if (known != stages_.end()) {
    *known = std::move(progress);
    return;
  }
  stages_.push_back(std::move(progress));
  if (size() == 1) Signal();
}

template <typename Queue>
std::optional<typename Queue::value_type> Inbox::TakeFrom(Queue& from) {
  std::lock_guard lock(mutex_);
  if (from.empty()) return std::nullopt;
  std::optional<typename Queue::value_type> out = std::move(from.front());
  from.pop_front();
  if (size() == 0) Unsignal();
  return out;
}

std::optional<EndedRun> Inbox::TakeRun() { return TakeFrom(runs_); }
std::optional<Message> Inbox::TakeMessage() { return TakeFrom(messages_); }
std::optional<StageProgress> Inbox::TakeProgress() { return TakeFrom(stages_); }

}  // namespace mge::api

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

int32_t mge_inbox_take_progress(mge_inbox* inbox, mge_string** stage, uint64_t* done, uint64_t* total) {
  std::optional<mge::api::StageProgress> taken = inbox->inbox->TakeProgress();
  if (!taken) return 0;
  *stage = mge::api::NewString(std::move(taken->stage));
  *done = taken->done;
  *total = taken->total;
  return 1;
}
