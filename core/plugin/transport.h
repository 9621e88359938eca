// SPDX-License-Identifier: Apache-2.0
// Transports: plugins that move messages between the processes of one launch (mge/transport.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "core/plugin/discovery.h"
#include "mge/transport.h"

namespace mge {

// Messages on their way. At its end, receives that are not done are cancelled; the data of sends that are not done must stay
// valid until the transport has left.
class MessageExchange {
 public:
  virtual ~MessageExchange() = default;
  // Waits until all messages are done, but not longer than `limit`. Returns whether they are. Sets `done` of each message.
  virtual absl::StatusOr<bool> Wait(std::chrono::nanoseconds limit) = 0;
};

// The connection of this process to the others. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual uint32_t rank() const = 0;
  virtual uint32_t ranks() const = 0;
  virtual std::string library() const = 0;  // that moves the messages: "Open MPI 4.1.4"
  // Starts to move messages. The list must outlive the exchange. Messages of one channel between two processes arrive in the
  // order of their starts.
  virtual absl::StatusOr<std::unique_ptr<MessageExchange>> Start(uint32_t channel, std::span<mge_message> messages) = 0;
  // Returns when all processes have called it; 0: however long that takes. After the limit, ends all processes with exit
  // code 1. No exchange must exist.
  virtual void Leave(std::chrono::nanoseconds limit) = 0;
};

// Opens the first of these files and joins the processes. Returns when all have joined. Fails with kUnsupportedFeature if
// there is no file, with kPluginRefused if it cannot be used, with kRankFailed if the processes do not join within the timeout
// or are not `ranks`.
absl::StatusOr<std::shared_ptr<Transport>> JoinTransport(const std::vector<FoundPlugin>& found, uint32_t ranks,
                                                         std::chrono::nanoseconds timeout, const Logger& logger);

}  // namespace mge
