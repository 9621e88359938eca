// SPDX-License-Identifier: Apache-2.0
#include "core/engine/process_group.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "fmt/format.h"

namespace mge {
namespace {

using std::chrono::steady_clock;

constexpr uint32_t kFarewellChannel = 0;
constexpr std::chrono::milliseconds kSlice{10};       // the interval at which a wait looks for farewells and stop requests
constexpr std::chrono::milliseconds kArrival{500};    // for messages that were sent before a farewell
constexpr std::chrono::seconds kFarewellPatience{1};  // until farewells are sent
constexpr std::chrono::seconds kFailurePatience{5};   // until the other processes leave after a failure
constexpr uint32_t kMaxChannel = 32767;

struct Introduction {
  int64_t process = 0;
  char host[248] = {};
};

mge_message MessageOf(const GroupMessage& m) {
  mge_message out = {};
  out.data = m.data;
  out.bytes = m.bytes;
  out.peer = m.peer;
  out.sends = m.sends;
  return out;
}

template <size_t kSize>
void SetText(char (&to)[kSize], std::string_view text) {
  const size_t size = std::min(text.size(), kSize - 1);
  std::memcpy(to, text.data(), size);
  to[size] = 0;
}

template <size_t kSize>
std::string TextIn(const char (&from)[kSize]) {
  return EscapeControl(std::string(from, strnlen(from, kSize)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<ProcessGroup>> ProcessGroup::Create(std::shared_ptr<Transport> transport,
                                                                   const std::string& host,
                                                                   std::chrono::nanoseconds timeout) {
  std::shared_ptr<ProcessGroup> out(new ProcessGroup(std::move(transport)));
  MGE_RETURN_IF_ERROR(out->Start());
  auto all = std::make_shared<std::vector<Introduction>>(out->ranks());
  Introduction& mine = (*all)[out->rank()];
  mine.process = getpid();
  SetText(mine.host, host);
  out->hosts_.resize(out->ranks());
  out->processes_.resize(out->ranks());
  std::vector<GroupMessage> messages;
  for (uint32_t r = 0; r < out->ranks(); ++r) {
    if (r == out->rank()) continue;
    messages.push_back({r, true, &mine, sizeof(mine)});
    messages.push_back({r, false, &(*all)[r], sizeof(mine)});
  }
  MGE_RETURN_IF_ERROR(out->Exchange(out->NewChannel(), messages, all, {"the start", timeout}));
  for (uint32_t r = 0; r < out->ranks(); ++r) {
    out->hosts_[r] = TextIn((*all)[r].host);
    out->processes_[r] = (*all)[r].process;
  }
  return out;
}

ProcessGroup::~ProcessGroup() {
  Farewell farewell;
  bool failed = !failure_.ok();
  if (failed) {
    farewell.reason = follows_ ? Reason::kFollows : Reason::kFailed;
    SetText(farewell.text, ErrorTitle(failure_));
  }
  for (size_t i = 0; i < listening_.size() && !failed; ++i) {
    failed = listening_[i].done && farewells_[i].reason != Reason::kEnded;
  }
  std::vector<mge_message> messages;
  for (uint32_t r = 0; r < ranks(); ++r) {
    if (r != rank()) messages.push_back(MessageOf({r, true, &farewell, sizeof(farewell)}));
  }
  if (auto sent = transport_->Start(kFarewellChannel, messages); sent.ok()) (void)(*sent)->Wait(kFarewellPatience);
  listener_.reset();
  transport_->Leave(failed ? kFailurePatience : std::chrono::seconds(0));
}

absl::Status ProcessGroup::Start() {
  farewells_.resize(ranks() - 1);
  for (uint32_t r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    listening_.push_back(MessageOf({r, false, &farewells_[listening_.size()], sizeof(Farewell)}));
  }
  MGE_ASSIGN_OR_RETURN(listener_, transport_->Start(kFarewellChannel, listening_));
  return absl::OkStatus();
}

std::string ProcessGroup::Name(uint32_t rank) const {
  if (hosts_[rank].empty()) return fmt::format("rank {} of {}", rank, ranks());
  return fmt::format("rank {} of {} (host {}, process {})", rank, ranks(), hosts_[rank], processes_[rank]);
}

uint32_t ProcessGroup::NewChannel() {
  std::lock_guard lock(mutex_);
  const uint32_t channel = channels_;
  channels_ = channels_ == kMaxChannel ? 1 : channels_ + 1;
  return channel;
}

absl::Status ProcessGroup::CheckLeft(std::span<const mge_message> pending) {
  std::lock_guard lock(mutex_);
  MGE_RETURN_IF_ERROR(listener_->Wait(std::chrono::nanoseconds(0)).status());
  for (const Reason reason : {Reason::kFailed, Reason::kFollows, Reason::kEnded}) {
    for (size_t i = 0; i < listening_.size(); ++i) {
      const uint32_t peer = listening_[i].peer;
      if (!listening_[i].done || farewells_[i].reason != reason) continue;
      const bool failed = reason != Reason::kEnded;
      const bool needed = std::ranges::any_of(pending, [&](const mge_message& m) { return !m.done && m.peer == peer; });
      if (!failed && !needed) continue;
      follows_ = follows_ || failure_.ok();
      const std::string text = TextIn(farewells_[i].text);
      return mge::Fail(errors::kRankFailed, fmt::format("{} has {}", Name(peer), failed ? "failed" : "ended"),
                       {.what = text.empty() ? "it has left the group before the training has ended" : text,
                        .fix = "see the messages of that process, which come first"});
    }
  }
  return absl::OkStatus();
}

absl::Status ProcessGroup::Late(std::span<const mge_message> messages, const GroupWait& wait) const {
  std::vector<uint32_t> late;
  for (const mge_message& m : messages) {
    if (!m.done && std::ranges::find(late, m.peer) == late.end()) late.push_back(m.peer);
  }
  std::string names;
  for (const uint32_t r : late) names += (names.empty() ? "" : ", ") + Name(r);
  return mge::Fail(errors::kRankFailed,
                   fmt::format("{} has not come to {} within {:g} s", names, wait.what,
                               std::chrono::duration<double>(wait.limit).count()),
                   {.what = fmt::format("{} waits for it there", Name(rank())),
                    .fix = "look what that process does. If it is only slow, raise collective.timeout_seconds"});
}

absl::Status ProcessGroup::WaitForAll(MessageExchange& exchange, std::span<const mge_message> messages,
                                      const GroupWait& wait) {
  const auto begin = steady_clock::now();
  std::optional<steady_clock::time_point> left;  // when a farewell was seen
  for (;;) {
    MGE_ASSIGN_OR_RETURN(const bool done, exchange.Wait(kSlice));
    if (done) return absl::OkStatus();
    MGE_RETURN_IF_ERROR(CheckStop(wait.stop));
    const auto now = steady_clock::now();
    if (absl::Status status = CheckLeft(messages); !status.ok()) {
      if (!left) left = now;
      if (now - *left >= kArrival) return status;
    }
    if (now - begin >= wait.limit) return Late(messages, wait);
  }
}

absl::Status ProcessGroup::Exchange(uint32_t channel, std::span<const GroupMessage> messages,
                                    std::shared_ptr<const void> owner, const GroupWait& wait) {
  {
    std::lock_guard lock(mutex_);
    MGE_RETURN_IF_ERROR(failure_);
  }
  auto all = std::make_shared<std::vector<mge_message>>();
  for (const GroupMessage& m : messages) all->push_back(MessageOf(m));
  absl::Status status;
  {
    auto exchange = transport_->Start(channel, *all);
    status = exchange.status();
    if (status.ok()) status = WaitForAll(**exchange, *all, wait);
  }
  if (status.ok()) return status;
  Fail(status);
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(owner));
  kept_.push_back(std::move(all));
  return status;
}

absl::StatusOr<std::vector<std::string>> ProcessGroup::Gather(uint32_t channel, const std::string& text,
                                                              const GroupWait& wait) {
  struct Texts {
    std::vector<uint64_t> sizes;
    std::vector<std::string> texts;
  };
  MGE_CHECK(text.size() <= kMaxText);
  auto all = std::make_shared<Texts>();
  all->sizes.resize(ranks());
  all->texts.resize(ranks());
  all->sizes[rank()] = text.size();
  all->texts[rank()] = text;
  std::vector<GroupMessage> messages;
  for (uint32_t r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    messages.push_back({r, true, &all->sizes[rank()], sizeof(uint64_t)});
    messages.push_back({r, false, &all->sizes[r], sizeof(uint64_t)});
  }
  MGE_RETURN_IF_ERROR(Exchange(channel, messages, all, wait));
  messages.clear();
  for (uint32_t r = 0; r < ranks(); ++r) {
    if (r == rank()) continue;
    if (all->sizes[r] > kMaxText)
      return mge::Fail(errors::kRankFailed, fmt::format("{} has sent a text of {} bytes", Name(r), all->sizes[r]));
    all->texts[r].resize(static_cast<size_t>(all->sizes[r]));
    messages.push_back({r, true, all->texts[rank()].data(), all->texts[rank()].size()});
    messages.push_back({r, false, all->texts[r].data(), all->texts[r].size()});
  }
  MGE_RETURN_IF_ERROR(Exchange(channel, messages, all, wait));
  return std::move(all->texts);
}

absl::Status ProcessGroup::Broadcast(uint32_t channel, uint32_t root, std::span<std::byte> bytes, const GroupWait& wait) {
  auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  std::vector<GroupMessage> messages;
  for (uint32_t r = 0; r < ranks(); ++r) {
    if (r != rank() && (r == root || rank() == root)) messages.push_back({r, rank() == root, copy->data(), copy->size()});
  }
  MGE_RETURN_IF_ERROR(Exchange(channel, messages, copy, wait));
  std::ranges::copy(*copy, bytes.begin());
  return absl::OkStatus();
}

void ProcessGroup::Fail(const absl::Status& status) {
  std::lock_guard lock(mutex_);
  if (failure_.ok()) failure_ = status;
}

}  // namespace mge
