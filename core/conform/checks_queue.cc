// SPDX-License-Identifier: Apache-2.0
// Checks of queues: copies in every direction, order, destruction, capture, peers, time stamps.
#include <algorithm>
#include <chrono>

#include "core/conform/device_memory.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kRedZone = 64;

absl::Status CheckCreate(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  for (int round = 0; round < 4; ++round) {
    std::vector<Queue> queues;
    for (int32_t kind : {MGE_QUEUE_COMPUTE, MGE_QUEUE_COPY_IN, MGE_QUEUE_COPY_OUT, MGE_QUEUE_COMPUTE}) {
      MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s, kind));
      queues.push_back(std::move(queue));
    }
    mge_queue* optional = nullptr;
    constexpr std::string_view kWhat = "creating a communication queue";
    const mge_error result = Try(kWhat, api->create, s.device(), MGE_QUEUE_COMMUNICATION, &optional);
    if (result.code == MGE_OK) InBackend("destroying a queue", api->destroy, optional);
    if (result.code != MGE_UNIMPLEMENTED) MGE_RETURN_IF_ERROR(Answer(result, kWhat));
  }
  return absl::OkStatus();
}

// Memory for copies: its address, and the one for the host (NULL: the host copies over a queue).
struct Place {
  const char* name;
  unsigned char* address;
  unsigned char* host;
};

// Copies `bytes` bytes over a queue, and checks every byte of source and destination, and of red zones around them.
absl::Status CheckCopy(BackendUnderTest& s, Transfer& transfer, Queue& queue, const Place& from, const Place& to,
                       size_t bytes) {
  const size_t shift = bytes % 7, at = kRedZone + shift, room = at + bytes + kRedZone;
  const std::string what = fmt::format("copy of {} bytes from {} to {} (offset {})", bytes, from.name, to.name, shift);
  s.At(what);
  auto put = [&](const Place& place, const Bytes& content) {
    if (!place.host) return transfer.Put(place.address, content);
    return std::copy(content.begin(), content.end(), place.host), absl::OkStatus();
  };
  auto expect = [&](const Place& place, const Bytes& want, std::string_view which) {
    if (!place.host) return transfer.Expect(place.address, want, what + std::string(which));
    return Same({place.host, want.size()}, want, what + std::string(which));
  };
  const Bytes a = Pattern(room, static_cast<unsigned>(10 * bytes));
  Bytes b = Pattern(room, static_cast<unsigned>(77 + bytes));
  MGE_RETURN_IF_ERROR(put(from, a));
  MGE_RETURN_IF_ERROR(put(to, b));
  MGE_RETURN_IF_ERROR(Call(what, s.plugin().queue->copy, queue, to.address + at, from.address + kRedZone, bytes));
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  std::copy_n(a.begin() + kRedZone, bytes, b.begin() + static_cast<ptrdiff_t>(at));
  MGE_RETURN_IF_ERROR(expect(to, b, ", destination"));
  return expect(from, a, ", source");
}

absl::Status CheckCopies(BackendUnderTest& s) {
  constexpr size_t kLargest = (1 << 20) + 3, kRoom = kLargest + 3 * kRedZone;
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 2 * kRoom));
  MGE_ASSIGN_OR_RETURN(Queue in, Queue::Create(s, MGE_QUEUE_COPY_IN));
  Bytes host(kRoom);
  Slab pinned;
  std::vector<Place> places = {
      {"device", rig.at(0), nullptr}, {"device, elsewhere", rig.at(kRoom), nullptr}, {"host", host.data(), host.data()}};
  if (HasMemory(s, MGE_MEMORY_PINNED)) {
    MGE_ASSIGN_OR_RETURN(pinned, Slab::Acquire(s, kRoom, MGE_MEMORY_PINNED));
    places.push_back({"pinned", pinned.address(), static_cast<unsigned char*>(pinned.raw().host_address)});
  }
  for (const Place& from : places) {
    for (const Place& to : places) {
      if (&from == &to || (from.host && to.host)) continue;
      for (size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{64}, size_t{257}, size_t{4097}, kLargest})
        MGE_RETURN_IF_ERROR(CheckCopy(s, rig.transfer, to.host ? rig.other : from.host ? in : rig.queue, from, to, bytes));
    }
  }
  return absl::OkStatus();
}

// Enqueues a chain of copies, each of which reads the destination of the one before, on a new queue. Then drains the queue,
// or destroys it while it has work. Only if all copies run in order is the end of the chain correct.
absl::Status CheckChain(BackendUnderTest& s, bool drains, std::string_view fault) {
  constexpr size_t kBytes = 300'000, kLinks = 12;
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, kBytes * (kLinks + 1)));
  for (unsigned round = 0; round < 4; ++round) {
    s.At(drains ? "copies in a row" : "destroying a queue that has work");
    MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
    const Bytes want = Pattern(kBytes, round);
    unsigned char* at = rig.at(0);
    MGE_RETURN_IF_ERROR(rig.Fill(want));
    for (size_t i = 0; i < kLinks; ++i, at += kBytes) MGE_RETURN_IF_ERROR(queue.Copy(at + kBytes, at, kBytes));
    if (drains) MGE_RETURN_IF_ERROR(rig.transfer.Drain(queue));
    if (!drains) queue = Queue();
    MGE_RETURN_IF_ERROR(rig.transfer.Expect(at, want, fault));
  }
  return absl::OkStatus();
}

absl::Status CheckOrder(BackendUnderTest& s) { return CheckChain(s, true, "12 copies in a row ran out of order"); }
absl::Status CheckDestroy(BackendUnderTest& s) {
  return CheckChain(s, false, "a queue was destroyed before its work was done");
}

// Destroys a queue that waits for another queue's work. The amount of work is increased until it is surely not done by then.
absl::Status CheckDestroyWaits(BackendUnderTest& s) {
  constexpr size_t kBytes = 4 << 20;
  for (unsigned copies = 1; copies <= 64; copies *= 8) {
    MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 3 * kBytes, MGE_QUEUE_COPY_IN));
    auto& [slab, transfer, worked, waited, waits, works] = rig;
    unsigned char *a = slab.address(), *b = a + kBytes, *c = b + kBytes;
    const Bytes want = Pattern(kBytes, copies);
    MGE_RETURN_IF_ERROR(rig.Fill(want));
    for (unsigned i = 0; i < copies; ++i) MGE_RETURN_IF_ERROR(works.Copy(b, a, kBytes));
    MGE_RETURN_IF_ERROR(works.Signal(worked, 1));
    MGE_RETURN_IF_ERROR(waits.Wait(worked, 1));
    MGE_RETURN_IF_ERROR(waits.Copy(c, b, kBytes));
    MGE_RETURN_IF_ERROR(waits.Signal(waited, 1));
    s.At("destroying a queue that waits for {} copies of another", copies);
    waits = Queue();
    if (const mge_error result = waited.Ask(1, 0); result.code != MGE_OK) {
      return Broken("a queue was destroyed, but the fence that it signals behind a wait returns {}: {}",
                    CodeName(result.code), result.text);
    }
    MGE_RETURN_IF_ERROR(transfer.Expect(c, want, "a queue was destroyed and did not wait for the work of another"));
  }
  return absl::OkStatus();
}

// An owned record of captured work.
struct Capture {
  explicit Capture(BackendUnderTest& s) : tested(s) {}
  ~Capture() { Destroy(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Captures the copies FROM -> TO of `bytes` bytes.
  absl::Status Take(Queue& queue, std::initializer_list<std::pair<unsigned char*, unsigned char*>> copies, size_t bytes) {
    const mge_queue_api& api = *tested.plugin().queue;
    MGE_RETURN_IF_ERROR(Call("beginning a capture", api.capture_begin, queue));
    absl::Status copied;
    for (auto [from, to] : copies) copied.Update(queue.Copy(to, from, bytes));
    MGE_RETURN_IF_ERROR(Call("ending a capture", api.capture_end, queue, &raw));
    MGE_RETURN_IF_ERROR(copied);
    return raw ? absl::OkStatus() : Broken("ending a capture returned MGE_OK, but no record");
  }
  absl::Status Replay(Queue& queue) { return Call("replaying", tested.plugin().queue->replay, queue, raw); }
  // Replays with `bytes` at `from`. Returns Broken("FAULT: ...") unless they are at `to` afterwards.
  absl::Status ExpectReplay(Rig& rig, unsigned char* from, unsigned char* to, const Bytes& bytes, std::string_view fault) {
    MGE_RETURN_IF_ERROR(rig.transfer.Put(from, bytes));
    MGE_RETURN_IF_ERROR(Replay(rig.queue));
    return rig.Expect(to, bytes, fault);
  }
  void Destroy() {
    if (raw) InBackend("destroying a record", tested.plugin().queue->record_destroy, tested.device(), raw);
    raw = nullptr;
  }
  BackendUnderTest& tested;
  void* raw = nullptr;
};

// Updates a record of the copies a -> b -> c, which are neighbours, to c -> b -> a.
absl::Status CheckUpdate(BackendUnderTest& s, Rig& rig, size_t bytes, Capture& record) {
  const mge_queue_api* api = s.plugin().queue;
  unsigned char *a = rig.at(0), *b = rig.at(bytes), *c = rig.at(2 * bytes);
  MGE_RETURN_IF_ERROR(Call("beginning a capture", api->capture_begin, rig.queue));
  MGE_RETURN_IF_ERROR(rig.queue.Copy(b, c, bytes));
  MGE_RETURN_IF_ERROR(rig.queue.Copy(a, b, bytes));
  const mge_error result = Try("updating a record", api->capture_update, rig.queue, record.raw);
  const bool updated = result.code == MGE_OK;
  if (result.code != MGE_UNIMPLEMENTED) MGE_RETURN_IF_ERROR(Answer(result, "updating a record"));
  const std::string fault = fmt::format("after capture_update returned {}, a replay is wrong", CodeName(result.code));
  for (unsigned seed : {20, 21})
    MGE_RETURN_IF_ERROR(record.ExpectReplay(rig, updated ? c : a, updated ? a : c, Pattern(bytes, seed), fault));
  return absl::OkStatus();
}

absl::Status CheckCapture(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  if (!api || !api->capture_begin) return NotOffered("the backend does not support captures");
  constexpr size_t kBytes = 5000;
  Capture record{s};
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 3 * kBytes));
  unsigned char *a = rig.at(0), *b = rig.at(kBytes), *c = rig.at(2 * kBytes);
  const Bytes last = Pattern(kBytes, 99);
  MGE_RETURN_IF_ERROR(rig.Fill(Pattern(kBytes, 1)));
  MGE_RETURN_IF_ERROR(record.Take(rig.queue, {{a, b}, {b, c}}, kBytes));
  MGE_RETURN_IF_ERROR(rig.Expect(c, Bytes(kBytes, 0), "captured work ran during the capture"));
  for (unsigned round = 0; round < 3; ++round) {
    MGE_RETURN_IF_ERROR(record.ExpectReplay(rig, a, c, Pattern(kBytes, 10 + round),
                                            fmt::format("replay {} differs from a direct run", round + 1)));
  }
  if (api->capture_update) MGE_RETURN_IF_ERROR(CheckUpdate(s, rig, kBytes, record));
  record.Destroy();
  // After the capture the queue must run work directly again.
  MGE_RETURN_IF_ERROR(rig.Fill(last));
  MGE_RETURN_IF_ERROR(rig.queue.Copy(b, a, kBytes));
  return rig.Expect(b, last, "after a capture the queue does not run enqueued work");
}

absl::Status CheckPeers(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  const mge_memory_api& memory = *s.plugin().memory;
  if (!api || !api->copy_peer || !s.plugin().device->link)
    return NotOffered("the backend does not support copies between devices");
  MGE_ASSIGN_OR_RETURN(Owned<mge_device> other, s.OpenAnother());
  auto link = Sized<mge_link>();
  MGE_RETURN_IF_ERROR(Call("asking for a link", s.plugin().device->link, s.device(), other.get(), &link));
  if (!(link.flags & MGE_LINK_PEER)) return NotOffered("the first two devices are no peers");
  constexpr size_t kBytes = 70'001;
  auto there = Sized<mge_slab>();
  MGE_RETURN_IF_ERROR(
      Call("acquiring a slab of the second device", memory.slab_acquire, other.get(), MGE_MEMORY_DEVICE, kBytes, &there));
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 2 * kBytes));
  unsigned char *here = rig.at(0), *back = rig.at(kBytes);
  const Bytes want = Pattern(kBytes, 3);
  MGE_RETURN_IF_ERROR(rig.Fill(want));
  MGE_RETURN_IF_ERROR(
      Call("copying to a peer", api->copy_peer, rig.queue, other.get(), there.address, s.device(), here, kBytes));
  MGE_RETURN_IF_ERROR(
      Call("copying from a peer", api->copy_peer, rig.queue, s.device(), back, other.get(), there.address, kBytes));
  absl::Status same = rig.Expect(back, want, "to a peer and back");
  memory.slab_release(other.get(), &there);
  return same;
}

// Some stamps, taken on one queue.
class Stamps {
 public:
  static absl::StatusOr<Stamps> Create(BackendUnderTest& s, size_t count) {
    Stamps out;
    out.api_ = s.plugin().profile;
    for (size_t i = 0; i < count && out.api_; ++i) {
      MGE_ASSIGN_OR_RETURN(auto stamp, Make("stamp", out.api_->stamp_destroy, out.api_->stamp_create, s.device()));
      out.stamps_.push_back(std::move(stamp));
    }
    return out;
  }
  absl::Status Take(size_t i, Queue& queue) const {
    return i < stamps_.size() ? Call("stamping", api_->stamp, queue, stamps_[i].get()) : absl::OkStatus();
  }
  absl::StatusOr<double> Between(size_t from, size_t to) const {  // in microseconds
    double us = 0;
    MGE_RETURN_IF_ERROR(Call("asking for a time", api_->elapsed_us, stamps_[from].get(), stamps_[to].get(), &us));
    return us;
  }

 private:
  const mge_profile_api* api_ = nullptr;  // NULL: the backend has no stamps
  std::vector<Owned<mge_stamp>> stamps_;
};

// Takes two stamps with work of about `time` between them. Compares their difference, in microseconds, with the host's
// clock. Sets `*conclusive` if most of the work remained when the second stamp was enqueued.
absl::Status TrySpan(BackendUnderTest& s, const LongWork& work, std::chrono::milliseconds time, bool* conclusive) {
  using Clock = std::chrono::steady_clock;
  MGE_ASSIGN_OR_RETURN(Stamps stamps, Stamps::Create(s, 2));
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 1));
  auto us_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  };
  const Clock::time_point begin = Clock::now();
  MGE_RETURN_IF_ERROR(stamps.Take(0, rig.queue));
  MGE_RETURN_IF_ERROR(rig.transfer.Drain(rig.queue));
  const Clock::time_point started = Clock::now();
  MGE_RETURN_IF_ERROR(work.Enqueue(rig.queue, time));
  const double enqueuing = us_since(started);
  const Clock::time_point enqueued = Clock::now();
  MGE_RETURN_IF_ERROR(stamps.Take(1, rig.queue));
  MGE_RETURN_IF_ERROR(rig.transfer.Drain(rig.queue));
  const double remaining = us_since(enqueued), least = remaining / 2, most = us_since(begin);
  *conclusive = remaining > 4 * enqueuing;
  MGE_ASSIGN_OR_RETURN(const double us, stamps.Between(0, 1));
  if (us >= least && us <= 2 * most) return absl::OkStatus();  // half and twice: a tolerance between two clocks
  return Broken(
      "the time between two stamps with work between them is {} us; by the host's clock it is "
      "between {:.0f} and {:.0f} us. Take a stamp when the work enqueued before it is done, and "
      "return microseconds",
      us, least, most);
}

absl::Status CheckStamps(BackendUnderTest& s) {
  if (!s.plugin().profile) return NotOffered("the backend has no table 'profile': the host times by its own clock");
  MGE_ASSIGN_OR_RETURN(Stamps stamps, Stamps::Create(s, 3));
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 2 << 20));
  for (size_t i = 0; i < 3; ++i) {
    MGE_RETURN_IF_ERROR(stamps.Take(i, rig.queue));
    MGE_RETURN_IF_ERROR(rig.queue.Copy(rig.slab.address() + (1 << 20), rig.slab.address(), 1 << 20));
  }
  MGE_RETURN_IF_ERROR(rig.transfer.Drain(rig.queue));
  MGE_ASSIGN_OR_RETURN(const double first, stamps.Between(0, 1));
  MGE_ASSIGN_OR_RETURN(const double second, stamps.Between(1, 2));
  MGE_ASSIGN_OR_RETURN(const double both, stamps.Between(0, 2));
  if (!(first >= 0 && second >= 0)) return Broken("times between stamps are {} and {} us", first, second);
  const double sum = first + second;
  if (both < sum * 0.99 - 1 || both > sum * 1.01 + 1)
    return Broken("two spans of {} and {} us are {} us together", first, second, both);
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  bool conclusive = false;
  for (int round = 0; round < 5 && !conclusive; ++round) {
    MGE_RETURN_IF_ERROR(TrySpan(s, work, std::chrono::milliseconds(40), &conclusive));
  }
  return absl::OkStatus();
}

// Copies, signals and waits on a queue. On success all its work is done; on failure it may still run until the queue is
// destroyed.
absl::Status UseQueue(Queue& queue, const Fence& fence, unsigned char* memory, uint64_t value) {
  MGE_RETURN_IF_ERROR(queue.Copy(memory + 64, memory, 64));
  MGE_RETURN_IF_ERROR(queue.Signal(fence, value));
  MGE_RETURN_IF_ERROR(queue.Wait(fence, value));
  return fence.Await(value);
}

// Uses a new queue with the optional functions: captures and stamps. Records and stamps must outlive the queue, which may
// use them.
absl::Status UseExtras(BackendUnderTest& s, const Fence& fence, unsigned char* memory) {
  Capture record{s};
  MGE_ASSIGN_OR_RETURN(Stamps stamps, Stamps::Create(s, 2));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  for (size_t i : {0, 1}) MGE_RETURN_IF_ERROR(stamps.Take(i, queue));
  if (s.plugin().queue->capture_begin) {
    MGE_RETURN_IF_ERROR(record.Take(queue, {{memory, memory + 64}}, 64));
    MGE_RETURN_IF_ERROR(record.Replay(queue));
  }
  MGE_RETURN_IF_ERROR(UseQueue(queue, fence, memory, 1));
  return s.plugin().profile ? stamps.Between(0, 1).status() : absl::OkStatus();
}

absl::Status CheckAllocations(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 128));
  MGE_ASSIGN_OR_RETURN(Queue kept, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence last, Fence::Create(s));
  uint64_t value = 0;
  return SurvivesFailures(s, [&]() -> absl::Status {
    // A queue must keep working after a call for it has failed.
    MGE_RETURN_IF_ERROR(UseQueue(kept, last, slab.address(), ++value));
    MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
    return UseExtras(s, fence, slab.address());
  });
}

constexpr Check kRows[] = {
    {"queue.create", "Queues of every kind can be created and destroyed, several at once.", CheckCreate},
    {"queue.copies", "Copies in every direction write all bytes of the destination, and no others.", CheckCopies},
    {"queue.order", "Work on one queue runs in order.", CheckOrder},
    {"queue.destroy", "Destroying a queue waits for its work.", CheckDestroy},
    {"queue.destroy_waits", "Destroying a queue waits for a fence that another queue will signal.", CheckDestroyWaits},
    {"queue.capture",
     "Captured copies do not run during the capture, and each replay equals a direct run, also after an update.",
     CheckCapture},
    {"queue.allocations", "Queues, fences, captures and stamps survive every failing allocation.", CheckAllocations},
    {"queue.peers", "Copies between peer devices are correct.", CheckPeers},
    {"profile.stamps", "A stamp is taken after the work before it; times are additive and in microseconds.", CheckStamps},
};

}  // namespace

std::span<const Check> QueueChecks() { return kRows; }

}  // namespace mge::conform
