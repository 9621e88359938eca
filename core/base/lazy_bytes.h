// SPDX-License-Identifier: Apache-2.0
// The bytes of a large constant, produced when somebody needs them: read from a file, or computed from other constants.
//
// Kernels keep constants in a form of their own. The original bytes are needed only to make that form, so they need not stay
// in memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "core/base/status.h"

namespace mge {

// The least size, in bytes, of a constant that is read only when it is needed.
inline constexpr int64_t kLazyBytes = 64 << 10;

// Safe on any thread.
class LazyBytes {
 public:
  // Writes the bytes. Called any number of times, and always writes the same.
  using Fill = std::function<absl::Status(std::span<std::byte> out)>;

  // A read-only mapping of the bytes.
  struct Map {
    // Returns it, or null where there can be none. Its address need not be aligned for the elements. Fails if they have changed.
    std::function<absl::StatusOr<std::shared_ptr<std::byte>>()> make;
    std::function<absl::Status()> check;  // fails if the bytes have changed
  };

  // `key` identifies the bytes: objects with the same key have the same bytes. Empty: unknown. `first` (nullable) has the bytes;
  // it is kept for the first user. Pin() uses `map` if it is set.
  LazyBytes(int64_t bytes, std::string key, Fill fill, std::shared_ptr<const std::byte> first = nullptr, Map map = Map())
      : bytes_(bytes), key_(std::move(key)), fill_(std::move(fill)), map_(std::move(map)), first_(std::move(first)) {}

  int64_t bytes() const { return bytes_; }
  const std::string& key() const { return key_; }

  // Writes the bytes to `out`, which has bytes() bytes. Fails as `fill` does.
  absl::Status ReadInto(std::span<std::byte> out);

  // Returns memory with the bytes, which is freed with the last copy of the pointer. Errors: those of `fill`; kOutOfMemory.
  absl::StatusOr<std::shared_ptr<const std::byte>> Hold();

  // Returns the bytes, for readers that cannot report an error. Their address is the same in every call. They stay in memory
  // until the last reader is removed, or is the only one and calls Unpin(). If the bytes cannot be produced, they are 0, and
  // status() is the error.
  const std::byte* Pin();
  void AddReader();
  void RemoveReader();
  void Unpin();

  // Returns the error of the first Pin() that failed, or an error if mapped bytes have changed since.
  absl::Status status() const;

 private:
  std::shared_ptr<const std::byte> PresentLocked();
  void UnpinLocked();

  const int64_t bytes_;
  const std::string key_;
  const Fill fill_;
  const Map map_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const std::byte> first_;
  std::weak_ptr<const std::byte> held_;
  std::shared_ptr<std::byte> pages_;  // of Pin(); without Pin() they take address space only
  bool mapped_ = false;               // pages_ is a mapping
  int readers_ = 0;
  absl::Status status_;
  std::atomic<const std::byte*> pinned_ = nullptr;
};

}  // namespace mge
