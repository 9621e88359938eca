// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/shared_group.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "plugins/gpu/software/reduce.h"

namespace mge::software {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kPieceBytes = 256 << 10;
constexpr uint64_t kPieces = 2;
constexpr uint32_t kMaxRanks = 1024;
constexpr char kMark[] = "mge-virtual-1:";  // begins an id; the rest is random
constexpr size_t kRandomBytes = 16;
constexpr int kSpins = 200;  // checks before the thread sleeps between checks
constexpr std::chrono::microseconds kNap{50};

enum State : uint32_t { kAbsent = 0, kJoining, kJoined, kLeft, kFailed };

static_assert(std::atomic<uint64_t>::is_always_lock_free, "the ranks share atomics between processes");

}  // namespace

// The public state of a rank. Only that rank writes it.
struct alignas(64) SharedGroup::Rank {
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> ranks;     // the size of the group, as this rank knows it
  std::atomic<uint64_t> posted;    // steps whose piece this rank has written
  std::atomic<uint64_t> consumed;  // steps that this rank has read from all ranks
  Exchange exchange[kPieces];      // the operation of a posted step
};

SharedGroup::Rank& SharedGroup::At(uint32_t rank) const { return static_cast<Rank*>(memory_)[rank]; }

char* SharedGroup::PieceOf(uint32_t rank, uint64_t step) const {
  return static_cast<char*>(memory_) + ranks_ * sizeof(Rank) + (rank * kPieces + step % kPieces) * kPieceBytes;
}

Result SharedGroup::NewId(UniqueId out) {
  std::memset(out.data(), 0, out.size());
  std::memcpy(out.data(), kMark, sizeof(kMark) - 1);
  if (getrandom(out.data() + sizeof(kMark) - 1, kRandomBytes, 0) == static_cast<ssize_t>(kRandomBytes)) return {};
  return {MGE_UNAVAILABLE, "the system gives no random bytes for an id: " + std::string(std::strerror(errno))};
}

Result SharedGroup::Join(ConstUniqueId id, uint32_t rank, uint32_t ranks, uint64_t timeout_ns) {
  if (std::memcmp(id.data(), kMark, sizeof(kMark) - 1) != 0) {
    return {MGE_INVALID_ARGUMENT, "the id of the group is not one of this backend; create it with this backend"};
  }
  if (ranks == 0 || ranks > kMaxRanks || rank >= ranks) {
    return {MGE_INVALID_ARGUMENT, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                                      " ranks: expected 1 to " + std::to_string(kMaxRanks) +
                                      " ranks, and a rank below their number"};
  }
  rank_ = rank;
  ranks_ = ranks;
  timeout_ = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, INT64_MAX / 2));
  name_ = "/mge-virtual-";
  for (size_t i = 0; i < kRandomBytes; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    const uint8_t byte = id[sizeof(kMark) - 1 + i];
    name_ += kDigits[byte >> 4];
    name_ += kDigits[byte & 15];
  }
  bytes_ = ranks * (sizeof(Rank) + kPieces * kPieceBytes);
  const int file = shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) {
    return {MGE_UNAVAILABLE, "cannot open shared memory '" + name_ + "': " + std::string(std::strerror(errno))};
  }
  // Takes the memory at once, because a write to shared memory that the system cannot provide ends the process.
  int error = posix_fallocate(file, 0, static_cast<off_t>(bytes_));
  memory_ = error ? MAP_FAILED : mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (!error) error = errno;
  close(file);
  if (memory_ == MAP_FAILED) {
    memory_ = nullptr;
    shm_unlink(name_.c_str());
    return {MGE_UNAVAILABLE,
            "cannot map " + std::to_string(bytes_) + " bytes of shared memory: " + std::string(std::strerror(error))};
  }
  uint32_t absent = kAbsent;
  if (!At(rank).state.compare_exchange_strong(absent, kJoining)) {
    munmap(memory_, bytes_);
    memory_ = nullptr;  // the rank belongs to another communicator, whose state must not change
    return {MGE_INVALID_ARGUMENT, "rank " + std::to_string(rank) + " of the group exists already"};
  }
  At(rank).ranks = ranks;
  At(rank).state.store(kJoined);
  Result all = WaitForAll("join", [&](const Rank& other) { return other.state.load() >= kJoined; });
  shm_unlink(name_.c_str());  // all have mapped it, or nobody can join any more
  if (!all.ok()) return all;
  for (uint32_t i = 0; i < ranks; ++i) {
    if (At(i).ranks == ranks) continue;
    return Fail(MGE_INVALID_ARGUMENT, "rank " + std::to_string(i) + " belongs to a group of " + std::to_string(At(i).ranks) +
                                          " ranks, and this one to " + std::to_string(ranks));
  }
  return {};
}

SharedGroup::~SharedGroup() {
  if (!memory_) return;
  uint32_t joined = kJoined;
  At(rank_).state.compare_exchange_strong(joined, kLeft);
  munmap(memory_, bytes_);
}

Result SharedGroup::Fail(mge_code code, std::string text) {
  uint32_t joined = kJoined;
  At(rank_).state.compare_exchange_strong(joined, kFailed);
  return {code, std::move(text)};
}

void SharedGroup::Abort() {
  aborted_ = true;
  (void)Fail(MGE_CANCELLED, {});
}

// Waits until reached(rank) is true for all ranks.
template <typename F>
Result SharedGroup::WaitForAll(const char* what, F&& reached) {
  const Clock::time_point begin = Clock::now();
  int spins = 0;
  for (uint32_t i = 0; i < ranks_;) {
    const uint32_t state = At(i).state;
    if (reached(At(i))) {
      ++i;
      continue;
    }
    const std::string peer = "rank " + std::to_string(i) + " of " + std::to_string(ranks_);
    if (aborted_) return {MGE_CANCELLED, "the communicator was aborted"};
    if (state == kFailed) return Fail(MGE_UNAVAILABLE, peer + " has failed");
    if (state == kLeft) return Fail(MGE_UNAVAILABLE, peer + " has ended");
    if (Clock::now() - begin > timeout_) {
      return Fail(MGE_UNAVAILABLE,
                  peer + " did not " + what + " within " +
                      std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(timeout_).count()) +
                      " ms; it may have died");
    }
    if (++spins > kSpins) std::this_thread::sleep_for(kNap);
  }
  return {};
}

Result SharedGroup::Run(const Exchange& exchange, void* destination, const void* source) {
  if (aborted_) return {MGE_CANCELLED, "the communicator was aborted"};
  if (At(rank_).state != kJoined) return {MGE_UNAVAILABLE, "an earlier operation of the communicator has failed"};
  const uint64_t element = ElementBytes(exchange.dtype), all = exchange.count * element;
  for (uint64_t at = 0; at < all; at += kPieceBytes) {
    const uint64_t bytes = std::min(kPieceBytes, all - at), step = ++step_;
    Result r = WaitForAll("read the data of this rank", [&](const Rank& other) {
      return other.consumed.load(std::memory_order_acquire) + kPieces >= step;
    });
    if (!r.ok()) return r;
    At(rank_).exchange[step % kPieces] = exchange;
    const bool sends = exchange.kind == Exchange::Kind::kReduce || exchange.root == rank_;
    if (sends) std::memcpy(PieceOf(rank_, step), static_cast<const char*>(source) + at, bytes);
    At(rank_).posted.store(step, std::memory_order_release);
    r = WaitForAll("take part", [&](const Rank& other) { return other.posted.load(std::memory_order_acquire) >= step; });
    if (!r.ok()) return r;
    for (uint32_t i = 0; i < ranks_; ++i) {
      if (At(i).exchange[step % kPieces] == exchange) continue;
      return Fail(MGE_INVALID_ARGUMENT, "rank " + std::to_string(i) +
                                            " takes part in another operation, or with another type or number of elements");
    }
    char* to = static_cast<char*>(destination) + at;
    if (exchange.kind == Exchange::Kind::kBroadcast) {
      std::memcpy(to, PieceOf(exchange.root, step), bytes);
    } else {
      Reduce(exchange.dtype, exchange.reduction, ranks_, bytes / element, to,
             [&](uint32_t rank) { return static_cast<const void*>(PieceOf(rank, step)); });
    }
    At(rank_).consumed.store(step, std::memory_order_release);
  }
  return {};
}

}  // namespace mge::software
