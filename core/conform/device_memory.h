// SPDX-License-Identifier: Apache-2.0
// Owning wrappers for memory, queues and fences of the device under test, and copies between host and device.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
// Throws Broken("FAULT: DIFFERENCE") unless all bytes are equal.
void Same(std::span<const unsigned char> got, std::span<const unsigned char> want, std::string_view fault);

bool HasPinnedMemory(BackendUnderTest& tested);

// An owned slab of the device.
class Slab {
 public:
  Slab() = default;
  // `device` is NULL for the device under test.
  Slab(BackendUnderTest& tested, uint64_t bytes, int32_t memory_class = MGE_MEMORY_DEVICE, mge_device* device = nullptr);
  void Reset() { slab_.reset(); }
  void ReleaseAfter(mge_fence* fence, uint64_t value);  // releases it by slab_release_after, which the backend must have
  unsigned char* address() const { return static_cast<unsigned char*>(slab_->address); }
  const mge_slab& raw() const { return *slab_; }
  explicit operator bool() const { return slab_ != nullptr; }

 private:
  struct Releaser {
    BackendUnderTest* tested;
    mge_device* device;
    void operator()(mge_slab* slab) const;
  };
  std::unique_ptr<mge_slab, Releaser> slab_;
};

// An owned fence of the device.
class Fence {
 public:
  explicit Fence(BackendUnderTest& tested);
  operator mge_fence*() const { return fence_.get(); }
  // Waits until `value` is reached. Throws Broken() if that takes longer than kPatienceNs, or if the fence carries a
  // failure.
  void Await(uint64_t value) const;
  // Returns the code and the text of host_wait.
  mge_error Ask(uint64_t value, uint64_t timeout_ns) const;
  mge_error AskPatiently(uint64_t value) const;  // like Await(), but returns a failure

 private:
  const mge_queue_api* api_;
  Owned<mge_fence> fence_;
};

// An owned queue of the device. Its destructor waits for its work. Fences, memory, records and stamps that the work uses
// must be created before the queue, so that they are destroyed after it.
class Queue {
 public:
  explicit Queue(BackendUnderTest& tested, int32_t kind = MGE_QUEUE_COMPUTE);
  operator mge_queue*() const { return queue_.get(); }
  // Each function enqueues one piece of work.
  void Signal(mge_fence* fence, uint64_t value) { Call("signalling a fence", api_->signal, queue_.get(), fence, value); }
  void Wait(mge_fence* fence, uint64_t value) { Call("waiting on a queue", api_->wait, queue_.get(), fence, value); }
  void Copy(void* to, const void* from, uint64_t bytes) { Call("copying", api_->copy, queue_.get(), to, from, bytes); }
  void Destroy() { queue_.reset(); }

 private:
  const mge_queue_api* api_;
  Owned<mge_queue> queue_;
};

// An owned record of captured work. It must be created before the queues that replay it.
class Record {
 public:
  explicit Record(BackendUnderTest& tested) : tested_(tested) {}
  // Captures what `work` enqueues on the queue. Ends the capture also if `work` throws.
  void Take(mge_queue* queue, const std::function<void()>& work);
  // Returns MGE_UNIMPLEMENTED if the backend cannot update this record with the work.
  mge_code Update(mge_queue* queue, const std::function<void()>& work);
  void Replay(mge_queue* queue) { Call("replaying", tested_.plugin().queue->replay, queue, raw_.get()); }
  void Destroy() { raw_.reset(); }

 private:
  BackendUnderTest& tested_;
  std::shared_ptr<void> raw_;
};

// Work that keeps a queue busy: copies of memory of its own, which must outlive the queue. The time of one copy is measured
// first. A queue that works in the calling thread has done the work when Enqueue() returns.
class LongWork {
 public:
  explicit LongWork(BackendUnderTest& tested);
  // Enqueues copies that take about `time` together.
  void Enqueue(Queue& queue, std::chrono::microseconds time) const;

 private:
  void CopyOnce(Queue& queue) const { queue.Copy(slab_.address() + bytes_, slab_.address(), bytes_); }
  Slab slab_;
  size_t bytes_ = 0;    // size of one copy
  double copy_us_ = 0;  // time of one copy
};

// Copies between host and device memory: by the host if it can access the device's memory, else over an own queue.
class Transfer {
 public:
  explicit Transfer(BackendUnderTest& tested);
  void Put(void* address, std::span<const unsigned char> bytes) { Copy(address, bytes.data(), bytes.size(), by_host_); }
  Bytes Get(const void* address, size_t bytes);
  // Throws Broken("FAULT: ...") unless the memory at `address` holds the bytes `want`.
  void Expect(const void* address, std::span<const unsigned char> want, std::string_view fault);
  // Checks that `host_address` is the same memory as `address`, by writing and reading both. Throws Broken() if it is not.
  // If `host_address` is NULL, checks nothing.
  void CheckHostAddress(void* address, void* host_address, size_t bytes, std::string_view what);
  // Waits until all work enqueued on `queue` is done. Throws Broken() if it failed.
  void Drain(Queue& queue) { Answer(Settle(queue), "what was enqueued"); }
  // Waits like Drain(), but returns a failure of the work as a code, with its text. If the own queue has failed, replaces
  // it, because it may keep failing.
  mge_error Settle(Queue& queue);
  Queue& queue() { return *queue_; }  // requires has_queue()
  bool has_queue() const { return queue_.has_value(); }

 private:
  void Copy(void* to, const void* from, size_t bytes, bool by_host);
  BackendUnderTest* tested_;
  bool by_host_;
  std::optional<Fence> fence_;
  std::optional<Queue> queue_;
  uint64_t value_ = 0;
};

// The objects that most checks of queues need.
struct Rig {
  // Acquires memory of `bytes`, and creates a queue of each of two kinds. Throws NotOffered() if the backend has no queues.
  Rig(BackendUnderTest& tested, size_t bytes, int32_t other = MGE_QUEUE_COPY_OUT, int32_t kind = MGE_QUEUE_COMPUTE);
  unsigned char* at(size_t offset) const { return slab.address() + offset; }
  // Writes `front` to the memory, and zeros behind it.
  void Fill(const Bytes& front);
  // Waits for the work of `queue`. Throws Broken("FAULT: ...") unless the memory at `address` then holds the bytes `want`.
  void Expect(const void* address, const Bytes& want, std::string_view fault);
  Fence fence, later;
  Slab slab;
  Transfer transfer;
  Queue queue, other;  // declared after the memory and the fences, so destroyed before them
};

}  // namespace mge::conform
