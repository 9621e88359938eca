// SPDX-License-Identifier: Apache-2.0
// The processes of one training as a group of ranks: messages between them, and the end of all if one fails.
//
// Algorithm: each process tells all others when it leaves, with the error if there is one. A process that waits for one that
// has left fails at once, so an error of one process ends all of them in their next exchange. A process that dies without a
// word is the launcher's business: mpirun then ends the others. One that is late is named, because each message has a sender.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/stop.h"
#include "core/plugin/transport.h"

namespace mge {

// How a process waits for others.
struct GroupWait {
  std::string what;                   // for errors: "the sum of the gradients of step 3"
  std::chrono::nanoseconds limit{0};  // then the group has failed
  const StopControl* stop = nullptr;  // ends the wait early
};

// A part of an exchange: bytes to a peer, or from it.
struct GroupMessage {
  uint32_t peer = 0;
  bool sends = false;
  void* data = nullptr;
  size_t bytes = 0;
};

// Thread-safe. After a failure, all later exchanges fail, and the processes must be started again.
class ProcessGroup {
 public:
  // Tells the other processes the name of this host. Fails with kRankFailed.
  static absl::StatusOr<std::shared_ptr<ProcessGroup>> Create(std::shared_ptr<Transport> transport, const std::string& host,
                                                              std::chrono::nanoseconds timeout);
  // Leaves the group. Waits for the other processes: for a few seconds after a failure, then ends them.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  uint32_t rank() const { return transport_->rank(); }
  uint32_t ranks() const { return transport_->ranks(); }
  std::string Name(uint32_t rank) const;  // "rank 2 of 4 (host b, process 4711)"
  const std::string& host(uint32_t rank) const { return hosts_[rank]; }
  std::string library() const { return transport_->library(); }
  // Returns a channel for messages of one purpose. All processes must call it in the same order.
  uint32_t NewChannel();

  // Moves messages, and returns when all are done. `owner` keeps their memory: after a failure, until the process leaves.
  // Fails with kRankFailed, which names the process that is late, has left or has failed, or as wait.stop says.
  absl::Status Exchange(uint32_t channel, std::span<const GroupMessage> messages, std::shared_ptr<const void> owner,
                        const GroupWait& wait);
  // Returns the texts of all processes, by rank. A text has at most kMaxText bytes.
  absl::StatusOr<std::vector<std::string>> Gather(uint32_t channel, const std::string& text, const GroupWait& wait);
  // Copies the bytes of rank `root` to those of all others.
  absl::Status Broadcast(uint32_t channel, uint32_t root, std::span<std::byte> bytes, const GroupWait& wait);

  // Lets the other processes fail with this error, and this one leave soon.
  void Fail(const absl::Status& status);

  static constexpr size_t kMaxText = 1 << 16;

 private:
  // Why a process leaves. kFollows: because another one has left.
  enum class Reason : int32_t { kEnded, kFailed, kFollows };
  // The last message of a process.
  struct Farewell {
    Reason reason = Reason::kEnded;
    char text[1020] = {};
  };
  explicit ProcessGroup(std::shared_ptr<Transport> transport) : transport_(std::move(transport)) {}
  absl::Status Start();  // to listen for farewells
  // Returns the error of the first process of `pending` that has left, or OK.
  absl::Status CheckLeft(std::span<const mge_message> pending);
  absl::Status WaitForAll(MessageExchange& exchange, std::span<const mge_message> messages, const GroupWait& wait);
  absl::Status Late(std::span<const mge_message> messages, const GroupWait& wait) const;

  const std::shared_ptr<Transport> transport_;
  std::vector<std::string> hosts_;  // by rank
  std::vector<int64_t> processes_;  // their numbers, by rank
  mutable std::mutex mutex_;
  uint32_t channels_ = 1;                          // guarded by mutex_, as all below
  absl::Status failure_ = {};                      // the first one
  bool follows_ = false;                           // it was another process that has failed or left first
  std::vector<std::shared_ptr<const void>> kept_;  // memory of sends that have failed
  std::vector<Farewell> farewells_;                // of the other processes
  std::vector<mge_message> listening_;             // for them
  std::unique_ptr<MessageExchange> listener_;
};

}  // namespace mge
