// SPDX-License-Identifier: Apache-2.0
// Unfinished work: work of a device that the host has stopped waiting for, with the memory that it may still access. Freeing
// that memory before the work ends would let the device write to memory of another owner.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

namespace mge {

// The time that cancelled work gets to end. After it, the work is considered stuck.
inline constexpr std::chrono::seconds kPatience{1};

// A piece of unfinished work. Owns all that the work may access. Must be destroyed only when the work is over.
class Unfinished {
 public:
  virtual ~Unfinished() = default;
  // Waits up to `patience` for the work. Returns whether it is over.
  virtual bool Over(std::chrono::nanoseconds patience) noexcept = 0;

 private:
  friend class UnfinishedList;
  std::unique_ptr<Unfinished> next_;
};

// An owning list of unfinished work. Thread-safe. Never allocates memory.
class UnfinishedList {
 public:
  UnfinishedList() = default;
  UnfinishedList(const UnfinishedList&) = delete;
  UnfinishedList& operator=(const UnfinishedList&) = delete;
  ~UnfinishedList();  // moves the remaining work to Lost()
  void Add(std::unique_ptr<Unfinished> work);
  // Frees the work that is over. Returns whether the list is then empty. `patience` is the wait for all work together. If
  // the list is empty, acquires no lock.
  bool Reclaim(std::chrono::nanoseconds patience);

  // Returns the list of leaked work. Its content is leaked on purpose, because a hung device may still write to the memory.
  static UnfinishedList& Lost();

 private:
  std::mutex mutex_;
  std::unique_ptr<Unfinished> first_;
  std::atomic<int> count_{0};
};

// Leaks the given objects on purpose: moves them to UnfinishedList::Lost(), where they are never destroyed.
template <typename... T>
void Leak(T&&... what) noexcept {
  static_assert((!std::is_reference_v<T> && ...));
  struct Things final : Unfinished {
    explicit Things(T&&... what) : what(std::move(what)...) {}
    bool Over(std::chrono::nanoseconds) noexcept override { return false; }
    std::tuple<T...> what;
  };
  if (std::unique_ptr<Things> things(new (std::nothrow) Things(std::move(what)...)); things) {
    UnfinishedList::Lost().Add(std::move(things));
  } else {  // no memory for a list entry: an object that is never destroyed is leaked as well
    alignas(Things) std::byte nowhere[sizeof(Things)];
    new (nowhere) Things(std::move(what)...);
  }
}

}  // namespace mge
