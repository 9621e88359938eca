// SPDX-License-Identifier: Apache-2.0
#include "core/conform/device_memory.h"

#include <algorithm>
#include <cstring>

#include "fmt/format.h"

namespace mge::conform {

Bytes Pattern(size_t n, unsigned seed) {
  Bytes out(n);
  uint32_t state = seed * 2654435761u + 12345;
  for (unsigned char& byte : out) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return out;
}

std::string Difference(std::span<const unsigned char> got, std::span<const unsigned char> want) {
  size_t first = want.size(), count = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    if (got[i] != want[i] && count++ == 0) first = i;
  }
  if (count == 0) return {};
  return fmt::format("byte {} of {} is {:#04x}, expected {:#04x} ({} differ)", first, want.size(), got[first], want[first],
                     count);
}

absl::Status Same(std::span<const unsigned char> got, std::span<const unsigned char> want, std::string_view fault) {
  std::string d = Difference(got, want);
  return d.empty() ? absl::OkStatus() : Broken("{}: {}", fault, d);
}

bool HasMemory(BackendUnderTest& tested, int32_t memory_class) {
  if (memory_class == MGE_MEMORY_DEVICE) return true;
  auto probe = Sized<mge_slab>();
  const mge_memory_api& memory = *tested.plugin().memory;
  const mge_code code =
      Try("acquiring a slab", memory.slab_acquire, tested.device(), memory_class, uint64_t{64}, &probe).code;
  if (code == MGE_OK) InBackend("releasing a slab", memory.slab_release, tested.device(), &probe);
  return code == MGE_OK;
}

absl::StatusOr<Slab> Slab::Acquire(BackendUnderTest& tested, uint64_t bytes, int32_t memory_class) {
  Slab slab;
  slab.slab_.struct_size = sizeof(slab.slab_);
  MGE_RETURN_IF_ERROR(Call(fmt::format("acquiring a slab of {} bytes", bytes), tested.plugin().memory->slab_acquire,
                           tested.device(), memory_class, bytes, &slab.slab_));
  slab.tested_ = &tested;
  if (!slab.slab_.address) return Broken("a slab was acquired, but its address is NULL");
  return slab;
}

void Slab::Reset() {
  if (tested_) InBackend("releasing a slab", tested_->plugin().memory->slab_release, tested_->device(), &slab_);
  tested_ = nullptr;
}

void Slab::ReleaseAfter(mge_fence* fence, uint64_t value) {
  const mge_fence_point last = {sizeof(last), 0, fence, value};
  const mge_memory_api& memory = *tested_->plugin().memory;
  InBackend("releasing a slab in stream order", memory.slab_release_after, tested_->device(), &slab_, &last);
  tested_ = nullptr;
}

absl::StatusOr<Queue> Queue::Create(BackendUnderTest& tested, int32_t kind) {
  Queue queue;
  queue.api_ = tested.plugin().queue;
  if (!queue.api_) return NotOffered(kNoQueues);
  MGE_ASSIGN_OR_RETURN(queue.queue_, Make("queue", queue.api_->destroy, queue.api_->create, tested.device(), kind));
  return queue;
}

void Queue::Keep(const Fence& fence) {
  if (std::find(fences_.begin(), fences_.end(), fence.fence_) == fences_.end()) fences_.push_back(fence.fence_);
}

absl::Status Queue::Signal(const Fence& fence, uint64_t value) {
  Keep(fence);
  return Call("signalling a fence", api_->signal, queue_.get(), fence.fence_.get(), value);
}

absl::Status Queue::Wait(const Fence& fence, uint64_t value) {
  Keep(fence);
  return Call("waiting on a queue", api_->wait, queue_.get(), fence.fence_.get(), value);
}

absl::Status Queue::Copy(void* to, const void* from, uint64_t bytes) {
  return Call("copying", api_->copy, queue_.get(), to, from, bytes);
}

absl::StatusOr<Fence> Fence::Create(BackendUnderTest& tested) {
  Fence fence;
  fence.api_ = tested.plugin().queue;
  if (!fence.api_) return NotOffered(kNoQueues);
  MGE_ASSIGN_OR_RETURN(fence.fence_, Make("fence", fence.api_->fence_destroy, fence.api_->fence_create, tested.device()));
  return fence;
}

mge_error Fence::Ask(uint64_t value, uint64_t timeout_ns) const {
  return Try("waiting for a fence", api_->host_wait, fence_.get(), value, timeout_ns);
}

static absl::Status NotReached(uint64_t value) {
  return Broken("a fence did not reach {} within {} s", value, kPatienceNs / 1'000'000'000);
}

absl::Status Fence::Await(uint64_t value) const {
  const mge_error result = Ask(value, kPatienceNs);
  if (result.code == MGE_DEADLINE_EXCEEDED) return NotReached(value);
  return Answer(result, fmt::format("a fence that should reach {}", value));
}

absl::StatusOr<LongWork> LongWork::Create(BackendUnderTest& tested) {
  constexpr size_t kLeast = 64 << 10, kMost = 64 << 20;
  constexpr int kRounds = 5, kCopies = 4;
  // A copy takes much longer than its call, so that the queue cannot keep pace with the calling thread.
  constexpr double kLongEnoughUs = 100;
  constexpr double kImpossibleUs = 1;  // for the largest copy
  using Clock = std::chrono::steady_clock;
  LongWork work;
  for (size_t bytes = kLeast; bytes <= kMost && work.copy_us_ < kLongEnoughUs; bytes *= 4) {
    absl::StatusOr<Slab> slab = Slab::Acquire(tested, 2 * bytes);
    if (!slab.ok() && work.bytes_) break;  // the device has no more memory
    MGE_RETURN_IF_ERROR(slab.status());
    work.slab_ = *std::move(slab);
    work.bytes_ = bytes;
    MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(tested));
    MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(tested));
    double least = 1e9;  // another program may use the processor during some rounds
    for (uint64_t round = 1; round <= kRounds; ++round) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < kCopies; ++i) MGE_RETURN_IF_ERROR(work.CopyOnce(queue));
      MGE_RETURN_IF_ERROR(queue.Signal(fence, round));
      MGE_RETURN_IF_ERROR(fence.Await(round));
      least = std::min(least, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCopies);
    }
    work.copy_us_ = least;
  }
  if (work.bytes_ < kMost || work.copy_us_ > kImpossibleUs) return work;
  return Broken(
      "a copy of {} bytes takes {} us up to the fence behind it: the fence is reached before the copy "
      "is done",
      work.bytes_, work.copy_us_);
}

absl::Status LongWork::CopyOnce(Queue& queue) const { return queue.Copy(slab_.address() + bytes_, slab_.address(), bytes_); }

absl::Status LongWork::Enqueue(Queue& queue, std::chrono::microseconds time) const {
  for (double left = static_cast<double>(time.count()); left > 0; left -= copy_us_) {
    MGE_RETURN_IF_ERROR(CopyOnce(queue));
  }
  return absl::OkStatus();
}

absl::StatusOr<Transfer> Transfer::Create(BackendUnderTest& tested) {
  Transfer t;
  t.tested_ = &tested;
  t.by_host_ = tested.host_accessible();
  if (tested.plugin().queue) {
    MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(tested));
    MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(tested));
    t.queue_ = std::make_unique<Queue>(std::move(queue));
    t.fence_ = std::make_unique<Fence>(std::move(fence));
  } else if (!t.by_host_) {
    return Broken("neither the host nor a queue reaches the memory of the device");
  }
  return t;
}

absl::StatusOr<Bytes> Transfer::Get(const void* address, size_t bytes) {
  Bytes out(bytes);
  MGE_RETURN_IF_ERROR(Copy(out.data(), address, bytes, by_host_));
  return out;
}

absl::Status Transfer::Expect(const void* address, std::span<const unsigned char> want, std::string_view fault) {
  MGE_ASSIGN_OR_RETURN(Bytes got, Get(address, want.size()));
  return Same(got, want, fault);
}

absl::Status Transfer::CheckHostAddress(void* address, void* host_address, size_t bytes, std::string_view what) {
  if (!host_address) return absl::OkStatus();
  tested_->At("{}, whose host_address is not NULL: the host writes and reads there", what);
  Bytes written = Pattern(bytes, 1), copied = Pattern(bytes, 2), got(bytes);
  std::memcpy(host_address, written.data(), bytes);
  const std::string fault = fmt::format("{}: its host_address is that of other memory", what);
  MGE_RETURN_IF_ERROR(Copy(got.data(), address, bytes, !has_queue()));
  MGE_RETURN_IF_ERROR(Same(got, written, fault));
  MGE_RETURN_IF_ERROR(Copy(address, copied.data(), bytes, !has_queue()));
  std::memcpy(got.data(), host_address, bytes);
  tested_->At(what);
  return Same(got, copied, fault);
}

absl::Status Transfer::Copy(void* to, const void* from, size_t bytes, bool by_host) {
  if (bytes == 0) return absl::OkStatus();
  if (by_host) {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  MGE_RETURN_IF_ERROR(queue_->Copy(to, from, bytes));
  return Drain(*queue_);
}

absl::Status Transfer::Drain(Queue& queue) {
  MGE_ASSIGN_OR_RETURN(mge_error result, Settle(queue));
  return Answer(result, "what was enqueued");
}

absl::StatusOr<mge_error> Transfer::Settle(Queue& queue) {
  AllocationsSucceed at_work;  // the wait must succeed, because the enqueued work uses memory of the caller
  ++value_;
  MGE_RETURN_IF_ERROR(queue.Signal(*fence_, value_));
  mge_error result = fence_->Ask(value_, kPatienceNs);
  if (result.code == MGE_DEADLINE_EXCEEDED) return NotReached(value_);
  if (result.code == MGE_OK) {
    queue.HasEnded();
  } else if (&queue == queue_.get()) {
    MGE_ASSIGN_OR_RETURN(*this, Create(*tested_));
  }
  return result;
}

absl::StatusOr<Rig> Rig::Create(BackendUnderTest& tested, size_t bytes, int32_t other) {
  Rig rig;
  MGE_ASSIGN_OR_RETURN(rig.fence, Fence::Create(tested));  // first: returns NotOffered() if the backend has no queues
  MGE_ASSIGN_OR_RETURN(rig.slab, Slab::Acquire(tested, bytes));
  MGE_ASSIGN_OR_RETURN(rig.transfer, Transfer::Create(tested));
  MGE_ASSIGN_OR_RETURN(rig.later, Fence::Create(tested));
  MGE_ASSIGN_OR_RETURN(rig.queue, Queue::Create(tested));
  MGE_ASSIGN_OR_RETURN(rig.other, Queue::Create(tested, other));
  return rig;
}

absl::Status Rig::Fill(const Bytes& front) {
  Bytes all = front;
  all.resize(slab.raw().bytes, 0);
  return transfer.Put(slab.address(), all);
}

absl::Status Rig::Expect(const void* address, const Bytes& want, std::string_view fault) {
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  return transfer.Expect(address, want, fault);
}

}  // namespace mge::conform
