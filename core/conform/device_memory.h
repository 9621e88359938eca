// SPDX-License-Identifier: Apache-2.0
// Owning wrappers for memory, queues and fences of the device under test, and copies between host and device.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/conform/backend_under_test.h"

namespace mge::conform {

inline constexpr uint64_t kPatienceNs = 5'000'000'000;  // time limit for work that should end at once, in nanoseconds

using Bytes = std::vector<unsigned char>;
// Returns `n` pseudo-random bytes that depend on the seed.
Bytes Pattern(size_t n, unsigned seed);
// Returns "" if all bytes are equal, else a text such as "byte 17 of 64 is 0x00, expected 0x5a (3 differ)".
std::string Difference(std::span<const unsigned char> got, std::span<const unsigned char> want);
// Returns Broken("FAULT: DIFFERENCE") unless all bytes are equal.
absl::Status Same(std::span<const unsigned char> got, std::span<const unsigned char> want, std::string_view fault);

// Returns whether the device has memory of a class. Memory of class DEVICE always exists.
bool HasMemory(BackendUnderTest& tested, int32_t memory_class);

// An owned slab of the device.
class Slab {
 public:
  Slab() = default;
  Slab(Slab&& other) noexcept { *this = std::move(other); }
  Slab& operator=(Slab&& other) noexcept {
    std::swap(tested_, other.tested_);
    std::swap(slab_, other.slab_);
    return *this;
  }
  ~Slab() { Reset(); }
  static absl::StatusOr<Slab> Acquire(BackendUnderTest& tested, uint64_t bytes, int32_t memory_class = MGE_MEMORY_DEVICE);
  void Reset();
  void ReleaseAfter(mge_fence* fence, uint64_t value);  // releases it by slab_release_after, which the backend must have
  unsigned char* address() const { return static_cast<unsigned char*>(slab_.address); }
  const mge_slab& raw() const { return slab_; }

 private:
  BackendUnderTest* tested_ = nullptr;
  mge_slab slab_ = {};
};

// An owned fence of the device.
class Fence {
 public:
  static absl::StatusOr<Fence> Create(BackendUnderTest& tested);
  operator mge_fence*() const { return fence_.get(); }
  // Waits until `value` is reached. Returns Broken() if that takes longer than kPatienceNs, or if the fence carries a
  // failure.
  absl::Status Await(uint64_t value) const;
  // Returns the code and the text of host_wait.
  mge_error Ask(uint64_t value, uint64_t timeout_ns) const;

 private:
  friend class Queue;
  const mge_queue_api* api_ = nullptr;
  std::shared_ptr<mge_fence> fence_;
};

// An owned queue of the device. Its destructor waits for its work. It keeps the fences of its work alive. Memory, records
// and stamps that the work uses must be created before the queue, so that they are destroyed after it.
class Queue {
 public:
  static absl::StatusOr<Queue> Create(BackendUnderTest& tested, int32_t kind = MGE_QUEUE_COMPUTE);
  Queue() = default;
  Queue(Queue&& other) noexcept { *this = std::move(other); }
  Queue& operator=(Queue&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(fences_, other.fences_);
    std::swap(queue_, other.queue_);
    return *this;
  }
  operator mge_queue*() const { return queue_.get(); }
  // Each function enqueues one piece of work.
  absl::Status Signal(const Fence& fence, uint64_t value);
  absl::Status Wait(const Fence& fence, uint64_t value);
  absl::Status Copy(void* to, const void* from, uint64_t bytes);
  void HasEnded() { fences_.clear(); }  // releases the fences; call it when all enqueued work is done

 private:
  void Keep(const Fence& fence);
  const mge_queue_api* api_ = nullptr;
  std::vector<std::shared_ptr<mge_fence>> fences_;
  Owned<mge_queue> queue_;
};

// Work that keeps a queue busy: copies of memory of its own, which must outlive the queue. The time of one copy is measured
// first. A queue that works in the calling thread has done the work when Enqueue() returns.
class LongWork {
 public:
  static absl::StatusOr<LongWork> Create(BackendUnderTest& tested);
  // Enqueues copies that take about `time` together.
  absl::Status Enqueue(Queue& queue, std::chrono::microseconds time) const;

 private:
  absl::Status CopyOnce(Queue& queue) const;
  Slab slab_;
  size_t bytes_ = 0;    // size of one copy
  double copy_us_ = 0;  // time of one copy
};

// Copies between host and device memory: by the host if it can access the device's memory, else over an own queue.
class Transfer {
 public:
  static absl::StatusOr<Transfer> Create(BackendUnderTest& tested);
  absl::Status Put(void* address, std::span<const unsigned char> bytes) {
    return Copy(address, bytes.data(), bytes.size(), by_host_);
  }
  absl::StatusOr<Bytes> Get(const void* address, size_t bytes);
  // Returns Broken("FAULT: ...") unless the memory at `address` holds the bytes `want`.
  absl::Status Expect(const void* address, std::span<const unsigned char> want, std::string_view fault);
  // Checks that `host_address` is the same memory as `address`, by writing and reading both. Returns Broken() if it is not.
  // If `host_address` is NULL, checks nothing.
  absl::Status CheckHostAddress(void* address, void* host_address, size_t bytes, std::string_view what);
  // Waits until all work enqueued on `queue` is done. Returns Broken() if it failed.
  absl::Status Drain(Queue& queue);
  // Waits like Drain(), but returns a failure of the work as a code, with its text. If the own queue has failed, replaces
  // it, because it may keep failing.
  absl::StatusOr<mge_error> Settle(Queue& queue);
  Queue& queue() const { return *queue_; }  // requires has_queue()
  bool has_queue() const { return queue_ != nullptr; }

 private:
  absl::Status Copy(void* to, const void* from, size_t bytes, bool by_host);
  BackendUnderTest* tested_ = nullptr;
  bool by_host_ = true;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Fence> fence_;
  uint64_t value_ = 0;
};

// The objects that most checks of queues need.
struct Rig {
  // Acquires memory of `bytes`, and creates a compute queue and a queue of the kind `other`. Returns NotOffered() if the
  // backend has no queues.
  static absl::StatusOr<Rig> Create(BackendUnderTest& tested, size_t bytes, int32_t other = MGE_QUEUE_COPY_OUT);
  unsigned char* at(size_t offset) const { return slab.address() + offset; }
  // Writes `front` to the memory, and zeros behind it.
  absl::Status Fill(const Bytes& front);
  // Waits for the work of `queue`. Returns Broken("FAULT: ...") unless the memory at `address` then holds the bytes `want`.
  absl::Status Expect(const void* address, const Bytes& want, std::string_view fault);
  Slab slab = {};
  Transfer transfer = {};
  Fence fence = {}, later = {};
  Queue queue = {}, other = {};  // declared after the memory and the fences, so destroyed before them
};

}  // namespace mge::conform
