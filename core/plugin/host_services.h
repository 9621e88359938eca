// SPDX-License-Identifier: Apache-2.0
// Host services: the mge_host table that a backend gets, the error object that it fills, and the values of its settings.
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
#include "core/plugin/blob_cache.h"
#include "mge/log_level.h"
#include "mge/plugin.h"

// The error that a function of a backend may fill through mge_host.fail. One object per call, on the caller's stack.
struct mge_error {
  mge_code code = MGE_OK;
  std::string text;
  absl::Status origin;  // the original error, if a host function called by the backend has failed (for example kOverBudget)
};

namespace mge {

// Functions of the compute pool, which is part of a higher layer. `owner` keeps `self` alive. If a function is null, bodies
// run in the calling thread.
struct ComputeFunctions {
  std::shared_ptr<void> owner;
  void* self = nullptr;
  void (*parallel_for)(void* self, uint64_t chunks, void (*body)(void* context, uint64_t chunk), void* context) = nullptr;
  uint32_t (*thread_count)(void* self) = nullptr;
};

// Checks the settings that a backend declares, and returns their values as text in the same order. Fails if a setting is
// declared wrongly or if the user gave an invalid value.
using DeclareSettings = std::function<absl::StatusOr<std::vector<std::string>>(
    std::string_view backend, std::span<const mge_setting* const> settings)>;

// Returns the value of a core setting as text, in the form of a backend's own settings. nullopt: there is no such setting.
using CoreSettings = std::function<std::optional<std::string>(std::string_view key)>;

// The host's side of one loaded backend. The table is valid for the lifetime of this object. Thread-safe, except that
// SetSettings() and SetBlobs() must be called before the backend starts.
class HostServices {
 public:
  HostServices(std::string backend, ComputeFunctions compute);
  ~HostServices();
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const mge_host* table() const { return &table_; }

  // Sets all values. Must be called once, before the backend starts.
  void SetSettings(std::vector<std::string> values);
  // Sets one value at any time. Texts that the backend has read earlier stay valid.
  void SetSetting(size_t index, std::string value);
  std::vector<std::string> settings() const;
  // Sets the cache of the backend's blobs. Without one the backend finds no blob and stores none.
  void SetBlobs(std::unique_ptr<const BlobCache> blobs) { blobs_ = std::move(blobs); }

  // Returns the number of host memory blocks that the backend has allocated and not released.
  int64_t allocations() const { return allocations_.load(std::memory_order_relaxed); }

  // Adds and removes the logger and the core settings of one runtime, identified by `user`. Several runtimes may share a
  // backend. Messages go to the runtime that attached first among those still attached, and its core settings are used.
  void Attach(const void* user, const Logger& logger, CoreSettings core = {});
  void Detach(const void* user);

  // Warns about host memory that the backend leaked, and releases the loggers and the compute pool. Called after stop(). The
  // table stays valid: a late call of parallel_for runs in the calling thread, and a late message is dropped.
  void Retire();

 private:
  // A runtime that uses the backend.
  struct User {
    const void* id;
    Logger logger;
    CoreSettings core;
  };

  static const HostServices& Of(void* self) { return *static_cast<const HostServices*>(self); }
  mge_code CoreSetting(std::string_view key, mge_text* out);
  mge_code StoreBlob(Bytes key, Bytes data);
  void Log(int32_t severity, std::string_view text) const;
  LogLevel LeastLogged() const;
  void LogAllocation(uint64_t bytes, uint64_t alignment, const void* address) const;  // if debug.external_allocations is set

  std::string backend_;
  ComputeFunctions compute_;
  std::vector<std::atomic<const std::string*>> settings_;
  std::mutex setting_mutex_;             // guards setting_texts_
  std::set<std::string> setting_texts_;  // every value ever returned, because a backend may still refer to an old one
  std::unique_ptr<const BlobCache> blobs_;
  std::atomic<bool> blobs_failed_{false};  // the warning about the cache was written
  mutable std::atomic<int64_t> allocations_{0};
  mutable std::mutex mutex_;
  std::vector<User> users_;
  std::optional<Logger> last_logger_;  // the logger that was detached last
  mge_host table_;
  mge_log_level_api log_level_;
};

// Converts an error code of a backend to a status for the user. `what` names the call: "backend cuda: open device 0". If the
// code is that of `error.origin`, returns `error.origin` unchanged.
absl::Status StatusOfBackend(mge_code code, const mge_error& error, std::string_view what);

// Converts an error of the host to a code for a backend. `error` (optional) keeps the status, so that StatusOfBackend()
// returns it if the backend passes the code on.
mge_code CodeForBackend(const absl::Status& status, mge_error* error) noexcept;

std::string CodeName(mge_code code);  // "MGE_DEVICE_LOST"

// Returns the error text of a backend on one line, with control characters escaped. If the text is empty, returns
// "the backend gave no reason (MGE_INTERNAL)".
std::string TextOfBackend(mge_code code, const mge_error& error);

}  // namespace mge
