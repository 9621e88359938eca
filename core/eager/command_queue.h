// SPDX-License-Identifier: Apache-2.0
// A bounded queue between the threads that give commands and the one that executes them.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <utility>

namespace mge {

// Any number of threads push, one pops.
template <typename T>
class CommandQueue {
 public:
  explicit CommandQueue(size_t limit) : limit_(limit) {}

  // Appends a command. Waits while the queue is full, unless `beyond_limit` is true. Ignored after Close().
  void Push(T command, bool beyond_limit = false) {
    std::unique_lock lock(mutex_);
    if (!beyond_limit && queue_.size() >= limit_) {
      ++waiting_producers_;
      room_.wait(lock, [&] { return queue_.size() < limit_ || closed_; });
      --waiting_producers_;
    }
    if (closed_) return;
    queue_.push_back(std::move(command));
    most_ = std::max(most_, queue_.size());
    size_.store(queue_.size(), std::memory_order_release);
    if (waiting_consumer_) work_.notify_one();
  }

  // Takes the first command. Waits while there is none. Returns false after Close().
  bool Pop(T& out) {
    // Waking a thread costs more than a small operator, so the consumer looks a while for the next command.
    for (int i = 0; i < kLooks && size_.load(std::memory_order_acquire) == 0; ++i) Pause();
    std::unique_lock lock(mutex_);
    waiting_consumer_ = true;
    work_.wait(lock, [&] { return !queue_.empty() || closed_; });
    waiting_consumer_ = false;
    if (closed_) return false;
    out = std::move(queue_.front());
    queue_.pop_front();
    size_.store(queue_.size(), std::memory_order_release);
    if (waiting_producers_ > 0) room_.notify_one();
    return true;
  }

  // Makes Push() and Pop() return. The commands in the queue are not executed.
  void Close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    work_.notify_all();
    room_.notify_all();
  }

  // Returns the largest number of commands that were in the queue.
  size_t most() const {
    std::lock_guard lock(mutex_);
    return most_;
  }
  size_t size() const { return size_.load(std::memory_order_acquire); }

 private:
  static constexpr int kLooks = 50;
  static void Pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  const size_t limit_;
  mutable std::mutex mutex_;
  std::condition_variable work_, room_;
  std::deque<T> queue_;
  std::atomic<size_t> size_{0};
  size_t most_ = 0;
  int waiting_producers_ = 0;
  bool waiting_consumer_ = false, closed_ = false;
};

}  // namespace mge
