// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/sync_queue.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "core/plugin/ask.h"
#include "core/plugin/queue_wait.h"
#include "core/plugin/unfinished.h"

namespace mge {
namespace {

constexpr std::chrono::minutes kLimit{1};  // the time limit of one wait
constexpr size_t kPiece = 4 << 20;         // the largest piece of a copy in bytes
constexpr size_t kMinPiece = SyncQueue::kMinStaging / 2;

}  // namespace

// The queue and all memory that its work accesses.
struct SyncQueue::State final : Unfinished {
  explicit State(Device& device) : device(device), api(*device.queue_api()) {}
  ~State() override {
    if (queue) api.destroy(queue);
    used.clear();
    if (fence) api.fence_destroy(fence);
    ReleaseStaging();
  }
  bool Over(std::chrono::nanoseconds patience) noexcept override {
    return !queue || end.Wait(device, queue, patience) != MGE_DEADLINE_EXCEEDED;
  }
  void ReleaseStaging() {
    if (piece) pool->Release(staging);
    piece = wanted = 0;
  }

  Device& device;
  const mge_queue_api& api;
  mge_queue* queue = nullptr;
  mge_fence* fence = nullptr;
  uint64_t value = 0;  // the fence's value when all enqueued work is done
  QueueEnd end;
  std::atomic<int32_t> cancel{0};
  std::vector<std::shared_ptr<void>> used;
  Pool* pool = nullptr;
  mge_reservation staging = {};
  size_t piece = 0;           // bytes of one half of `staging`
  size_t wanted = 0;          // the requested size of one half; larger than `piece` if memory was short
  uint64_t half_use[2] = {};  // the fence's value when the use of each half is over
};

SyncQueue::SyncQueue(std::unique_ptr<State> state) : state_(std::move(state)) {}

absl::StatusOr<std::unique_ptr<SyncQueue>> SyncQueue::Create(Device& device, int32_t kind) {
  MGE_RETURN_IF_ERROR(device.Open());
  auto state = std::make_unique<State>(device);
  MGE_RETURN_IF_ERROR(QueryDevice(device, "creating a queue",
                                  [&](mge_error* e) { return state->api.create(device.handle(), kind, &state->queue, e); }));
  MGE_RETURN_IF_ERROR(QueryDevice(device, "creating a fence",
                                  [&](mge_error* e) { return state->api.fence_create(device.handle(), &state->fence, e); }));
  return std::unique_ptr<SyncQueue>(new SyncQueue(std::move(state)));
}

SyncQueue::~SyncQueue() {
  if (state_->device.Orphaned()) {
    (void)state_.release();  // it belongs to the parent process
    return;
  }
  state_->cancel.store(1);
  if (state_->Over(kPatience)) return;
  Device& device = state_->device;
  device.Keep(std::move(state_));
}

mge_queue* SyncQueue::handle() const { return state_->queue; }
const int32_t* SyncQueue::cancel() const { return reinterpret_cast<const int32_t*>(&state_->cancel); }
bool SyncQueue::Over(std::chrono::nanoseconds patience) { return state_->Over(patience); }
void SyncQueue::Uses(std::shared_ptr<void> memory) { state_->used.push_back(std::move(memory)); }

absl::Status SyncQueue::Signal() {
  State& s = *state_;
  return QueryDevice(s.device, "signalling a fence",
                     [&](mge_error* e) { return s.api.signal(s.queue, s.fence, ++s.value, e); });
}

absl::Status SyncQueue::Wait(uint64_t value, const StopControl* stop) {
  if (value == 0) return absl::OkStatus();
  State& s = *state_;
  MGE_ASSIGN_OR_RETURN(mge_code code, WaitForFence(s.api, s.fence, value, stop, kLimit));
  if (code == MGE_OK) return absl::OkStatus();
  // Gets the text of the error.
  return QueryDevice(s.device, "waiting for a queue", [&](mge_error* e) { return s.api.host_wait(s.fence, value, 0, e); });
}

absl::Status SyncQueue::Finish(const StopControl* stop) {
  MGE_RETURN_IF_ERROR(Signal());
  MGE_RETURN_IF_ERROR(Wait(state_->value, stop));
  state_->used.clear();
  return absl::OkStatus();
}

absl::Status SyncQueue::Stage(size_t bytes, const StopControl* stop) {
  State& s = *state_;
  if (std::min(bytes, kPiece) <= s.wanted) return absl::OkStatus();
  size_t piece = std::min(std::bit_ceil(std::max(bytes, kMinPiece)), kPiece);
  MGE_RETURN_IF_ERROR(Wait(std::max(s.half_use[0], s.half_use[1]), stop));
  s.ReleaseStaging();
  MGE_ASSIGN_OR_RETURN(s.pool, s.device.PoolOf(MGE_MEMORY_PINNED));
  const size_t wanted = piece;
  absl::StatusOr<mge_reservation> taken = s.pool->Acquire(2 * piece);
  while (absl::IsResourceExhausted(taken.status()) && piece > kMinPiece) taken = s.pool->Acquire(2 * (piece /= 2));
  MGE_ASSIGN_OR_RETURN(s.staging, std::move(taken));
  s.piece = piece;
  s.wanted = wanted;
  return CheckHostReaches(s.device, s.staging);
}

absl::Status SyncQueue::Upload(void* to, const void* from, size_t bytes, const StopControl* stop) {
  State& s = *state_;
  MGE_RETURN_IF_ERROR(Stage(bytes, stop));
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (size_t done = 0, part; done < bytes; done += part) {
    part = std::min(bytes - done, s.piece);
    uint64_t& free_at = s.half_use[s.half_use[0] > s.half_use[1]];  // the half whose last use is older
    const size_t half = &free_at == s.half_use ? 0 : s.piece;
    MGE_RETURN_IF_ERROR(Wait(free_at, stop));
    std::memcpy(static_cast<char*>(s.staging.host_address) + half, source + done, part);
    MGE_RETURN_IF_ERROR(QueryDevice(s.device, "copying", [&](mge_error* e) {
      return s.api.copy(s.queue, target + done, static_cast<char*>(s.staging.address) + half, part, e);
    }));
    MGE_RETURN_IF_ERROR(Signal());
    free_at = s.value;
  }
  return absl::OkStatus();
}

absl::Status SyncQueue::Download(void* to, const void* from, size_t bytes, const StopControl* stop) {
  State& s = *state_;
  MGE_RETURN_IF_ERROR(Stage(bytes, stop));
  MGE_RETURN_IF_ERROR(Wait(std::max(s.half_use[0], s.half_use[1]), stop));
  for (size_t done = 0, part; done < bytes; done += part) {
    part = std::min(bytes - done, s.piece);
    MGE_RETURN_IF_ERROR(QueryDevice(s.device, "copying", [&](mge_error* e) {
      return s.api.copy(s.queue, s.staging.address, static_cast<const char*>(from) + done, part, e);
    }));
    MGE_RETURN_IF_ERROR(Signal());
    MGE_RETURN_IF_ERROR(Wait(s.value, stop));
    std::memcpy(static_cast<char*>(to) + done, s.staging.host_address, part);
  }
  s.used.clear();
  return absl::OkStatus();
}

}  // namespace mge
