// SPDX-License-Identifier: Apache-2.0
// Communicators: the rank of a session in a group of ranks, which exchange tensors by collective operators.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/plugin/device.h"

namespace mge {

// The identity of a group of ranks, created by a backend.
using CollectiveId = std::array<uint8_t, MGE_UNIQUE_ID_BYTES>;

// Creates the id of a new group. Opens the device. Fails with kUnsupportedFeature if its backend has no collectives.
absl::StatusOr<CollectiveId> NewCollectiveId(Device& device);
// Converts between an id and its text form of hexadecimal digits. Parsing fails with kBadSetting.
std::string CollectiveIdText(const CollectiveId& id);
absl::StatusOr<CollectiveId> ParseCollectiveId(std::string_view text);

struct CollectiveStepArgs;  // core/plan/collective_step.h

// One rank of a group on one device. The device must outlive it. A run that stops between two operations calls Abort(),
// because the other ranks would wait for it.
class Communicator {
 public:
  Communicator(Device& device, uint32_t rank, uint32_t ranks) : device_(device), rank_(rank), ranks_(ranks) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Device& device() const { return device_; }
  uint32_t rank() const { return rank_; }
  uint32_t ranks() const { return ranks_; }
  // Runs the step of a collective operator: enqueues its operations on run->queue, or does them in the calling thread.
  virtual mge_code Run(const CollectiveStepArgs& step, const mge_run* run) = 0;
  // Ends pending operations and refuses later ones. Safe on any thread.
  virtual void Abort() noexcept = 0;

 private:
  Device& device_;
  const uint32_t rank_, ranks_;
};

// A session's rank in a group of ranks, and its communicator, which is created at its first use. Thread-safe.
class Communicators {
 public:
  virtual ~Communicators() = default;
  virtual uint32_t ranks() const = 0;
  // Returns whether collectives can run on the device.
  virtual bool Serve(const Device& device) const = 0;
  // Returns the session's communicator, on this device. All calls must name the same device.
  virtual absl::StatusOr<std::shared_ptr<Communicator>> On(Device& device) = 0;
};

// A session's place in a group of ranks whose transport is a backend's.
struct CollectiveGroup {
  CollectiveId id = {};
  uint32_t rank = 0;
  uint32_t ranks = 1;
  std::chrono::nanoseconds timeout{0};  // for joining the group, and for each operation
};

// Communicators of the table `collective` of a backend. The first call of On() joins the group: it returns when all ranks have
// joined, or fails after the timeout.
class BackendCommunicators final : public Communicators {
 public:
  explicit BackendCommunicators(const CollectiveGroup& group) : group_(group) {}
  uint32_t ranks() const override { return group_.ranks; }
  bool Serve(const Device& device) const override { return device.backend().plugin().collective != nullptr; }
  absl::StatusOr<std::shared_ptr<Communicator>> On(Device& device) override;

 private:
  const CollectiveGroup group_;
  std::mutex mutex_;
  std::shared_ptr<Communicator> communicator_;  // guarded by mutex_
};

}  // namespace mge
