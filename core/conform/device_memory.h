// SPDX-License-Identifier: Apache-2.0
// Memory, queues and fences of the device under test, owned; and the way of bytes to the device and back.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <vector>

#include "core/conform/subject.h"

namespace mge::conform {

inline constexpr uint64_t kPatienceNs = 5'000'000'000;  // for work that is due at once

using Bytes = std::vector<unsigned char>;
// Bytes that differ from their neighbours, other ones for every seed.
Bytes Pattern(size_t n, unsigned seed);
// "byte 17 is 0x00, expected 0x5a", or "" if all are equal.
std::string Difference(std::span<const unsigned char> got, std::span<const unsigned char> want);

// Whether the device has memory of that class; of class DEVICE it has some.
bool HasMemory(Subject& subject, int32_t memory_class);

class Slab {
 public:
  Slab() = default;
  Slab(Slab&& other) noexcept { *this = std::move(other); }
  Slab& operator=(Slab&& other) noexcept {
    std::swap(subject_, other.subject_);
    std::swap(slab_, other.slab_);
    return *this;
  }
  ~Slab() { Reset(); }
  static absl::StatusOr<Slab> Acquire(Subject& subject, uint64_t bytes, int32_t memory_class = MGE_MEMORY_DEVICE);
  void Reset();
  void Forget() { subject_ = nullptr; }  // somebody else releases it
  unsigned char* address() const { return static_cast<unsigned char*>(slab_.address); }
  const mge_slab& raw() const { return slab_; }

 private:
  Subject* subject_ = nullptr;
  mge_slab slab_ = {};
};

// Destroys a handle of the backend.
template <typename Handle>
struct Destroyer {
  void (*destroy)(Handle*) = nullptr;
  const char* what = "";
  void operator()(Handle* handle) const {
    InBackend(what, [&] { destroy(handle); });
  }
};

class Fence {
 public:
  static absl::StatusOr<Fence> Create(Subject& subject);
  operator mge_fence*() const { return fence_.get(); }
  // Until `value` is reached. Broken() if it is not within kPatienceNs, or carries a failure.
  absl::Status Await(uint64_t value) const;
  // The answer of host_wait, with its text.
  mge_code Ask(uint64_t value, uint64_t timeout_ns, std::string* text = nullptr) const;

 private:
  friend class Queue;
  const mge_queue_api* api_ = nullptr;
  std::shared_ptr<mge_fence> fence_;
};

// Destroying it waits for its work. The fences of that work it keeps by itself; memory, records and stamps are made before
// the queue, so that they go after it.
class Queue {
 public:
  static absl::StatusOr<Queue> Create(Subject& subject, int32_t kind = MGE_QUEUE_COMPUTE);
  Queue() = default;
  Queue(Queue&& other) noexcept { *this = std::move(other); }
  Queue& operator=(Queue&& other) noexcept {
    std::swap(api_, other.api_);
    std::swap(fences_, other.fences_);
    std::swap(queue_, other.queue_);
    return *this;
  }
  operator mge_queue*() const { return queue_.get(); }
  mge_code Signal(const Fence& fence, uint64_t value, mge_error* error);
  mge_code Wait(const Fence& fence, uint64_t value, mge_error* error);
  void HasEnded() { fences_.clear(); }  // all that was enqueued

 private:
  void Keep(const Fence& fence);
  const mge_queue_api* api_ = nullptr;
  std::vector<std::shared_ptr<mge_fence>> fences_;
  std::unique_ptr<mge_queue, Destroyer<mge_queue>> queue_;
};

// Work behind a gate that nobody has opened yet. It is enqueued in a thread of its own: a queue may wait in the calling
// thread.
class Gated {
 public:
  // `then` enqueues on `queue` what comes behind the gate.
  static absl::StatusOr<std::unique_ptr<Gated>> Enqueue(Subject& subject, Queue& queue,
                                                        std::function<mge_code(mge_error*)> then);
  ~Gated() { (void)Open(); }
  Gated(const Gated&) = delete;
  Gated& operator=(const Gated&) = delete;
  absl::Status Open();  // what enqueuing answered, the first time

 private:
  Gated(Fence gate, Queue opener) : gate_(std::move(gate)), opener_(std::move(opener)) {}
  Fence gate_;
  Queue opener_;
  std::future<absl::Status> enqueued_;
};

// Copies between host and device memory, by the host where it can reach the slab, else over a queue of its own.
class Transfer {
 public:
  static absl::StatusOr<Transfer> Create(Subject& subject);
  absl::Status ToDevice(void* to, const void* from, size_t bytes);
  absl::Status ToHost(void* to, const void* from, size_t bytes);
  // Broken() unless the host reaches memory of the device at `host_address`, both ways; nothing is asked of NULL.
  absl::Status JudgeHostAddress(void* address, void* host_address, size_t bytes, std::string_view what);
  // Waits until everything that was enqueued on `queue` before is done. Broken() if it failed.
  absl::Status Drain(Queue& queue);
  // The same, but a failure is an answer, with its text. A queue of its own that has failed is replaced: it may go on
  // failing.
  absl::StatusOr<mge_code> Settle(Queue& queue, std::string* text);
  Queue& queue() const { return *queue_; }  // only if has_queue()
  bool has_queue() const { return queue_ != nullptr; }

 private:
  absl::Status Copy(void* to, const void* from, size_t bytes, bool by_host);
  Subject* subject_ = nullptr;
  bool by_host_ = true;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Fence> fence_;
  uint64_t value_ = 0;
};

}  // namespace mge::conform
