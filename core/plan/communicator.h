// SPDX-License-Identifier: Apache-2.0
// Communicators: the rank of a session in a group of ranks, which exchange tensors by collective operators.
#pragma once

#include <array>
#include <atomic>
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

// A session's place in a group of ranks.
struct CollectiveGroup {
  CollectiveId id = {};
  uint32_t rank = 0;
  uint32_t ranks = 1;
  std::chrono::nanoseconds timeout{0};  // for joining the group, and for each operation
};

// One rank of a group on one device. The device must outlive it.
class Communicator {
 public:
  // Joins the group. Returns when all ranks have joined, or fails after the timeout.
  static absl::StatusOr<std::shared_ptr<Communicator>> Join(Device& device, const CollectiveGroup& group);
  // Leaves the group. All operations must have ended.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  Device& device() const { return device_; }
  const mge_collective_api& api() const { return *device_.backend().plugin().collective; }
  mge_communicator* handle() const { return handle_; }
  // Ends pending operations and refuses later ones. A run that stops between two operations calls it, because the other
  // ranks would wait for it. Safe on any thread.
  void Abort() noexcept;
  bool aborted() const { return aborted_.load(std::memory_order_relaxed); }

 private:
  explicit Communicator(Device& device) : device_(device) {}
  Device& device_;
  mge_communicator* handle_ = nullptr;
  std::atomic<bool> aborted_{false};
};

// The communicator of a session, created at its first use. Thread-safe.
class Communicators {
 public:
  explicit Communicators(const CollectiveGroup& group) : group_(group) {}
  const CollectiveGroup& group() const { return group_; }
  // Returns the session's communicator, on this device. All calls must name the same device.
  absl::StatusOr<std::shared_ptr<Communicator>> On(Device& device);

 private:
  const CollectiveGroup group_;
  std::mutex mutex_;
  std::shared_ptr<Communicator> communicator_;  // guarded by mutex_
};

}  // namespace mge
