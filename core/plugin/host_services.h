// SPDX-License-Identifier: Apache-2.0
// What the host gives a backend: the mge_host table, the slot for errors, and the values of the backend's own settings.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"
#include "mge/log_level.h"
#include "mge/plugin.h"

// The slot that a backend's function may fill; one per call, on the caller's stack.
struct mge_error {
  mge_code code = MGE_OK;
  std::string text;
  absl::Status origin;  // an error of the host itself that went through the backend, such as kOverBudget
};

namespace mge {

// The compute pool, which lives in a higher layer. `owner` keeps `self` alive. By default bodies run in the calling thread.
struct ComputeFunctions {
  std::shared_ptr<void> owner;
  void* self = nullptr;
  void (*parallel_for)(void* self, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context) = nullptr;
  uint32_t (*thread_count)(void* self) = nullptr;
};

// Judges the settings that a backend declares and answers their values as text, in the same order.
using DeclareSettings = std::function<absl::StatusOr<std::vector<std::string>>(
    std::string_view backend, std::span<const mge_setting* const> settings)>;

// The host's side of one loaded backend. Its table lives as long as it does.
class HostServices {
 public:
  HostServices(std::string backend, ComputeFunctions compute);
  ~HostServices();
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const mge_host* table() const { return &table_; }

  // Of all settings, before the backend starts; and of one of them, at any time.
  void SetSettings(std::vector<std::string> values);
  void SetSetting(size_t index, std::string value);
  std::vector<std::string> settings() const;

  // Blocks of host memory that the backend has taken and not released.
  int64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }

  // Where messages go. A backend may serve several runtimes: the one that attached first and is still there gets them.
  void Attach(const void* user, const Logger& logger);
  void Detach(const void* user);

  // After stop(): reports what the backend has not released as a leak, and lets go of all but the table, so that a late
  // call is harmless. Work then runs in the calling thread.
  void Retire();

 private:
  static const HostServices& Of(void* self) { return *static_cast<const HostServices*>(self); }
  void Log(int32_t severity, std::string_view text) const;
  LogLevel LeastLogged() const;

  std::string backend_;
  ComputeFunctions compute_;
  std::vector<std::atomic<const std::string*>> settings_;
  std::mutex setting_mutex_;             // of what follows; nothing is called under it
  std::set<std::string> setting_texts_;  // all that a setting has had: a backend may still hold one
  mutable std::atomic<int64_t> allocations_{0};
  mutable std::mutex mutex_;
  std::vector<std::pair<const void*, Logger>> loggers_;
  std::optional<Logger> last_logger_;  // of the user that detached last
  mge_host table_;
  mge_log_level_api log_level_;
};

// What a backend's answer means to a user. `what` names the call: "backend cuda: open device 0".
absl::Status StatusOfBackend(mge_code code, const mge_error& error, std::string_view what);

// The other way: what a backend is told of an error of the host. The slot (nullable) keeps the status, which comes back from
// StatusOfBackend if the backend passes the code on.
mge_code CodeForBackend(const absl::Status& status, mge_error* error) noexcept;

std::string CodeName(mge_code code);  // "MGE_DEVICE_LOST"

// "the backend gave no reason (MGE_INTERNAL)" if the slot is empty; control characters escaped, cut at 4096 bytes.
std::string TextOfBackend(mge_code code, const mge_error& error);

}  // namespace mge
