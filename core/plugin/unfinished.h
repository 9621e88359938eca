// SPDX-License-Identifier: Apache-2.0
// Work of a device that the host has stopped waiting for: kept aside, with all memory that it may still touch, until it ends.
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

// What has been told to stop gets so long before it counts as stuck.
inline constexpr std::chrono::seconds kPatience{1};

class Unfinished {
 public:
  virtual ~Unfinished() = default;  // only when it is over
  // Whether it is; waits for it, at most so long.
  virtual bool Over(std::chrono::nanoseconds patience) noexcept = 0;

 private:
  friend class UnfinishedList;
  std::unique_ptr<Unfinished> next_;
};

// Safe on any thread. Takes no memory.
class UnfinishedList {
 public:
  UnfinishedList() = default;
  UnfinishedList(const UnfinishedList&) = delete;
  UnfinishedList& operator=(const UnfinishedList&) = delete;
  ~UnfinishedList();  // what is in it then is lost
  void Add(std::unique_ptr<Unfinished> work);
  // Frees what is over; whether that was all. `patience` is for all together. Takes no lock where there is nothing.
  bool Reclaim(std::chrono::nanoseconds patience);

  // Of what is lost, which is on purpose: memory that a hung device may write to is better lost than given to somebody else.
  static UnfinishedList& Lost();

 private:
  std::mutex mutex_;
  std::unique_ptr<Unfinished> first_;
  std::atomic<int> count_{0};
};

// Whatever else such work touches is lost with it.
template <typename... T>
void Lose(T&&... what) noexcept {
  static_assert((!std::is_reference_v<T> && ...));
  struct Things final : Unfinished {
    explicit Things(T&&... what) : what(std::move(what)...) {}
    bool Over(std::chrono::nanoseconds) noexcept override { return false; }
    std::tuple<T...> what;
  };
  if (std::unique_ptr<Things> things(new (std::nothrow) Things(std::move(what)...)); things) {
    UnfinishedList::Lost().Add(std::move(things));
  } else {  // without memory: what is never destroyed is lost as well
    alignas(Things) std::byte nowhere[sizeof(Things)];
    new (nowhere) Things(std::move(what)...);
  }
}

}  // namespace mge
