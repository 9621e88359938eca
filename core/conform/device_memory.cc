// SPDX-License-Identifier: Apache-2.0
#include "core/conform/device_memory.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "core/conform/allocations.h"
#include "core/conform/cases.h"
#include "fmt/format.h"

namespace mge::conform {

Bytes Pattern(size_t n, unsigned seed) { return BytesOf(RandomTensor(DType::kU8, {static_cast<int64_t>(n)}, 0, 255, seed)); }

std::string Difference(std::span<const unsigned char> got, std::span<const unsigned char> want) {
  size_t first = 0, count = 0;
  for (size_t i = want.size(); i-- > 0;) {
    if (got[i] != want[i]) first = i, ++count;
  }
  if (count == 0) return {};
  return fmt::format("byte {} of {} is {:#04x}, expected {:#04x} ({} differ)", first, want.size(), got[first], want[first],
                     count);
}

void Same(std::span<const unsigned char> got, std::span<const unsigned char> want, std::string_view fault) {
  if (std::string d = Difference(got, want); !d.empty()) Broken("{}: {}", fault, d);
}

bool HasPinnedMemory(BackendUnderTest& tested) {
  return StatusOf([&] { Slab(tested, 64, MGE_MEMORY_PINNED); }).ok();
}

Slab::Slab(BackendUnderTest& tested, uint64_t bytes, int32_t memory_class, mge_device* device) {
  if (!device) device = tested.device();
  auto slab = std::make_unique<mge_slab>(Sized<mge_slab>());
  const std::string what = fmt::format("acquiring a slab of {} bytes", bytes);
  const mge_error result = Try(what, tested.plugin().memory->slab_acquire, device, memory_class, bytes, slab.get());
  if (result.code == MGE_UNIMPLEMENTED && memory_class == MGE_MEMORY_PINNED) NotOffered("no pinned memory: " + result.text);
  Answer(result, what);
  slab_ = {slab.release(), {&tested, device}};
  if (!slab_->address) Broken("a slab was acquired, but its address is NULL");
}

void Slab::Releaser::operator()(mge_slab* slab) const {
  InBackend("releasing a slab", tested->plugin().memory->slab_release, device, slab);
  delete slab;
}

void Slab::ReleaseAfter(mge_fence* fence, uint64_t value) {
  const mge_fence_point last = {sizeof(last), 0, fence, value};
  const auto [tested, device] = slab_.get_deleter();
  const std::unique_ptr<mge_slab> slab(slab_.release());
  InBackend("releasing a slab in stream order", tested->plugin().memory->slab_release_after, device, slab.get(), &last);
}

// Returns the table of queues. Throws NotOffered() if the backend has none.
static const mge_queue_api* QueuesOf(BackendUnderTest& tested) {
  if (!tested.plugin().queue) NotOffered(kNoQueues);
  return tested.plugin().queue;
}

Queue::Queue(BackendUnderTest& tested, int32_t kind)
    : api_(QueuesOf(tested)), queue_(Make("queue", api_->destroy, api_->create, tested.device(), kind)) {}

void Record::Take(mge_queue* queue, const std::function<void()>& work) {
  const mge_queue_api& api = *tested_.plugin().queue;
  Call("beginning a capture", api.capture_begin, queue);
  const absl::Status enqueued = StatusOf(work);
  void* raw = nullptr;
  Call("ending a capture", api.capture_end, queue, &raw);
  if (raw)
    raw_ = {raw, [&tested = tested_, &api](void* record) {
              InBackend("destroying a record", api.record_destroy, tested.device(), record);
            }};
  ThrowIfError(enqueued);
  if (!raw) Broken("ending a capture returned MGE_OK, but no record");
}

mge_code Record::Update(mge_queue* queue, const std::function<void()>& work) {
  Call("beginning a capture", tested_.plugin().queue->capture_begin, queue);
  work();
  const mge_error result = Try("updating a record", tested_.plugin().queue->capture_update, queue, raw_.get());
  if (result.code != MGE_UNIMPLEMENTED) Answer(result, "updating a record");
  return result.code;
}

Fence::Fence(BackendUnderTest& tested)
    : api_(QueuesOf(tested)), fence_(Make("fence", api_->fence_destroy, api_->fence_create, tested.device())) {}

mge_error Fence::Ask(uint64_t value, uint64_t timeout_ns) const {
  return Try("waiting for a fence", api_->host_wait, fence_.get(), value, timeout_ns);
}

mge_error Fence::AskPatiently(uint64_t value) const {
  constexpr int kRounds = 12;
  constexpr uint64_t kSeconds = kPatienceNs / 1'000'000'000;
  for (int round = 1;; ++round) {
    const std::clock_t before = std::clock();
    mge_error result = Ask(value, kPatienceNs);
    if (result.code != MGE_DEADLINE_EXCEEDED) return result;
    // On a busy machine, a device in software may still be computing: then the process uses the processor.
    const bool computes = static_cast<uint64_t>(std::clock() - before) * 10 > kSeconds * CLOCKS_PER_SEC;
    if (!computes || round == kRounds) Broken("a fence did not reach {} within {} s", value, kSeconds * round);
  }
}

void Fence::Await(uint64_t value) const { Answer(AskPatiently(value), fmt::format("a fence that should reach {}", value)); }

LongWork::LongWork(BackendUnderTest& tested) {
  constexpr size_t kMin = 64 << 10, kMax = 64 << 20;
  constexpr int kCopies = 4;
  // A copy takes much longer than its call, so that the queue cannot keep pace with the calling thread.
  constexpr double kLongEnoughUs = 100;
  using Clock = std::chrono::steady_clock;
  for (size_t bytes = kMin; bytes <= kMax && copy_us_ < kLongEnoughUs; bytes *= 4) {
    const absl::Status acquired = StatusOf([&] { slab_ = Slab(tested, 2 * bytes); });
    if (!acquired.ok() && bytes_) break;  // the device has no more memory
    ThrowIfError(acquired);
    bytes_ = bytes;
    Fence fence(tested);
    Queue queue(tested);
    copy_us_ = 1e9;  // the least of all rounds: another program may use the processor during some of them
    for (uint64_t round = 1; round <= 5; ++round) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < kCopies; ++i) CopyOnce(queue);
      queue.Signal(fence, round);
      fence.Await(round);
      copy_us_ = std::min(copy_us_, std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / kCopies);
    }
  }
}

void LongWork::Enqueue(Queue& queue, std::chrono::microseconds time) const {
  // On a busy machine, a queue that works in the calling thread is slower than when it was measured.
  const auto end = std::chrono::steady_clock::now() + 3 * time;
  for (double left = static_cast<double>(time.count()); left > 0 && std::chrono::steady_clock::now() < end; left -= copy_us_)
    CopyOnce(queue);
}

Transfer::Transfer(BackendUnderTest& tested) : tested_(&tested), by_host_(tested.host_accessible()) {
  if (tested.plugin().queue) {
    fence_.emplace(tested);
    queue_.emplace(tested);
  } else if (!by_host_) {
    Broken("neither the host nor a queue reaches the memory of the device");
  }
}

Bytes Transfer::Get(const void* address, size_t bytes) {
  Bytes out(bytes);
  Copy(out.data(), address, bytes, by_host_);
  return out;
}

void Transfer::Expect(const void* address, std::span<const unsigned char> want, std::string_view fault) {
  Same(Get(address, want.size()), want, fault);
}

void Transfer::CheckHostAddress(void* address, void* host_address, size_t bytes, std::string_view what) {
  if (!host_address) return;
  tested_->At("{}, whose host_address is not NULL: the host writes and reads there", what);
  const Bytes written = Pattern(bytes, 1), copied = Pattern(bytes, 2);
  Bytes there(bytes);
  std::memcpy(host_address, written.data(), bytes);
  Copy(there.data(), address, bytes, !has_queue());
  Copy(address, copied.data(), bytes, !has_queue());
  if (there != written || std::memcmp(host_address, copied.data(), bytes) != 0)
    Broken("{}: its host_address is that of other memory", what);
}

void Transfer::Copy(void* to, const void* from, size_t bytes, bool by_host) {
  if (by_host && bytes > 0) std::memcpy(to, from, bytes);
  if (by_host || bytes == 0) return;
  queue_->Copy(to, from, bytes);
  Drain(*queue_);
}

mge_error Transfer::Settle(Queue& queue) {
  AllocationFailure none;  // the wait must succeed, because the enqueued work uses memory of the caller
  queue.Signal(*fence_, ++value_);
  mge_error result = fence_->AskPatiently(value_);
  if (result.code != MGE_OK && &queue == &*queue_) {
    queue_.reset();
    fence_.emplace(*tested_);
    queue_.emplace(*tested_);
  }
  return result;
}

Rig::Rig(BackendUnderTest& tested, size_t bytes, int32_t other_kind, int32_t kind)
    : fence(tested), later(tested), slab(tested, bytes), transfer(tested), queue(tested, kind), other(tested, other_kind) {}

void Rig::Fill(const Bytes& front) {
  Bytes all = front;
  all.resize(slab.raw().bytes, 0);
  transfer.Put(slab.address(), all);
}

void Rig::Expect(const void* address, const Bytes& want, std::string_view fault) {
  transfer.Drain(queue);
  transfer.Expect(address, want, fault);
}

}  // namespace mge::conform
