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

struct StageProgress {
  std::string stage;
  uint64_t done, total;
};

// Queues, first in, first out, and the latest progress of each stage. Thread-safe. A forked child has its own queues, and does not use the descriptor, whose
// counter it shares with the parent.
class Inbox {
 public:
  explicit Inbox(int descriptor);  // an eventfd, which the inbox then owns
  ~Inbox();
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int descriptor() const { return descriptor_; }  // readable while something can be taken
  // Moves the elements of `run` into the queue. Needs no memory, so that no run is lost.
  void Add(std::list<EndedRun>& run);
  void Add(Message message);
  void Add(StageProgress progress);  // replaces an earlier one of the stage
  std::optional<EndedRun> TakeRun();
  std::optional<Message> TakeMessage();
  std::optional<StageProgress> TakeProgress();

 private:
  template <typename Queue>
  std::optional<typename Queue::value_type> TakeFrom(Queue& from);
  size_t size() const { return runs_.size() + messages_.size() + stages_.size(); }
  void Signal();
  void Unsignal();

  const int descriptor_;
  const int process_;
  std::mutex mutex_;
  std::list<EndedRun> runs_;
  std::deque<Message> messages_;
  std::deque<StageProgress> stages_;  // those that have advanced since they were taken
};

}  // namespace mge::api

struct mge_inbox {
  std::shared_ptr<mge::api::Inbox> inbox;
};
