// SPDX-License-Identifier: Apache-2.0
// The results and messages that threads of the library have for the application.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/api/objects.h"
#include "core/base/status.h"
#include "mge/mge.h"

namespace mge::api {

struct EndedRun {
  uint64_t tag = 0;
  absl::Status status = {};
  std::vector<std::unique_ptr<mge_tensor>> outputs = {};  // empty on error
};

struct Message {
  int32_t level;
  std::string text;
};

// Two queues, first in, first out. Thread-safe. A forked child has its own queues, and does not use the descriptor, whose
// counter it shares with the parent.
class Inbox {
 public:
  explicit Inbox(int descriptor);  // an eventfd, which the inbox then owns
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int descriptor() const { return descriptor_; }  // readable while a queue is not empty
  // Moves the elements of `run` into the queue. Needs no memory, so that no run is lost.
  void Add(std::list<EndedRun>& run);
  void Add(Message message);
  std::optional<EndedRun> TakeRun();
  std::optional<Message> TakeMessage();

 private:
  template <typename Queue>
  std::optional<typename Queue::value_type> TakeFrom(Queue& from);
  void Signal();
  void Unsignal();

  const int descriptor_;
  const int process_;
  std::mutex mutex_;
  std::list<EndedRun> runs_;
  std::deque<Message> messages_;
};

}  // namespace mge::api

struct mge_inbox {
  std::shared_ptr<mge::api::Inbox> inbox;
};
