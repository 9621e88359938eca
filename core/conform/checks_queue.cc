// SPDX-License-Identifier: Apache-2.0
// Checks of queues: copies in every direction, order, destruction, capture, peers, time stamps.
#include <algorithm>
#include <chrono>

#include "core/conform/allocations.h"
#include "core/conform/device_memory.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kQueueRedZone = 64;

void CheckCreate(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  for (int round = 0; round < 4; ++round) {
    std::vector<Queue> queues;
    for (int32_t kind : {MGE_QUEUE_COMPUTE, MGE_QUEUE_COPY_IN, MGE_QUEUE_COPY_OUT, MGE_QUEUE_COMPUTE})
      queues.emplace_back(s, kind);
    mge_queue* optional = nullptr;
    constexpr std::string_view kWhat = "creating a communication queue";
    const mge_error result = Try(kWhat, api->create, s.device(), MGE_QUEUE_COMMUNICATION, &optional);
    if (result.code == MGE_OK) InBackend("destroying a queue", api->destroy, optional);
    if (result.code != MGE_UNIMPLEMENTED) Answer(result, kWhat);
  }
}

// Memory for copies: its address, and the one for the host (NULL: the host copies over a queue).
struct Place {
  const char* name;
  unsigned char* address;
  unsigned char* host;
};

// Copies `bytes` bytes over a queue, and checks every byte of source and destination, and of red zones around them.
void CheckCopy(BackendUnderTest& s, Transfer& transfer, Queue& queue, const Place& from, const Place& to, size_t bytes) {
  const size_t shift = bytes % 7, at = kQueueRedZone + shift, room = at + bytes + kQueueRedZone;
  const auto what = fmt::format("copy of {} bytes from {} to {} (offset {}), ", bytes, from.name, to.name, shift);
  s.At(what);
  auto put = [&](const Place& place, const Bytes& content) {
    if (!place.host) return transfer.Put(place.address, content);
    std::ranges::copy(content, place.host);
  };
  auto expect = [&](const Place& place, const Bytes& want, const char* which) {
    Same(place.host ? Bytes(place.host, place.host + room) : transfer.Get(place.address, room), want, what + which);
  };
  const Bytes a = Pattern(room, static_cast<unsigned>(10 * bytes));
  Bytes b = Pattern(room, static_cast<unsigned>(77 + bytes));
  put(from, a);
  put(to, b);
  Call(what, s.plugin().queue->copy, queue, to.address + at, from.address + kQueueRedZone, bytes);
  transfer.Drain(queue);
  std::copy_n(a.begin() + kQueueRedZone, bytes, b.begin() + static_cast<ptrdiff_t>(at));
  expect(to, b, "destination");
  expect(from, a, "source");
}

void CheckCopies(BackendUnderTest& s) {
  constexpr size_t kLargest = (1 << 20) + 3, kRoom = kLargest + 3 * kQueueRedZone;
  Rig rig(s, 2 * kRoom);
  Queue in(s, MGE_QUEUE_COPY_IN);
  Bytes host(kRoom);
  Slab pinned;
  std::vector<Place> places = {
      {"device", rig.at(0), nullptr}, {"device, elsewhere", rig.at(kRoom), nullptr}, {"host", host.data(), host.data()}};
  if (HasPinnedMemory(s)) {
    pinned = Slab(s, kRoom, MGE_MEMORY_PINNED);
    places.push_back({"pinned", pinned.address(), static_cast<unsigned char*>(pinned.raw().host_address)});
  }
  for (const Place& from : places) {
    for (const Place& to : places) {
      if (&from == &to || (from.host && to.host)) continue;
      for (size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{64}, size_t{257}, size_t{4097}, kLargest})
        CheckCopy(s, rig.transfer, to.host ? rig.other : from.host ? in : rig.queue, from, to, bytes);
    }
  }
}

// Enqueues a chain of copies, each of which reads the destination of the one before, on a new queue. Only if all copies run
// in order is the end of the chain correct. `end` waits for the work or destroys the queue.
void CheckChain(Rig& rig, Queue& queue, unsigned seed, const std::function<void()>& end, std::string_view fault) {
  constexpr size_t kLinks = 12;
  const size_t bytes = rig.slab.raw().bytes / (kLinks + 1);
  const Bytes want = Pattern(bytes, seed);
  unsigned char* at = rig.at(0);
  rig.Fill(want);
  for (size_t i = 0; i < kLinks; ++i, at += bytes) queue.Copy(at + bytes, at, bytes);
  end();
  rig.transfer.Expect(at, want, fault);
}

constexpr size_t kChainBytes = 4'000'000;

void CheckOrder(BackendUnderTest& s) {
  Rig rig(s, kChainBytes);
  for (unsigned round = 0; round < 4; ++round)
    CheckChain(
        rig, rig.queue, round, [&] { rig.transfer.Drain(rig.queue); }, "12 copies in a row ran out of order");
}

// Destroys queues that have work, also behind a fence that another queue has not reached yet.
void CheckDestroy(BackendUnderTest& s) {
  LongWork work(s);
  Rig rig(s, kChainBytes, MGE_QUEUE_COPY_IN);
  for (unsigned round = 1; round <= 6; ++round) {
    s.At("destroying a queue that has work{}", round > 3 ? " and waits for another" : "");
    Queue queue(s);
    if (round > 3) {
      work.Enqueue(rig.other, std::chrono::milliseconds(round * 10));
      rig.other.Signal(rig.fence, round);
      queue.Wait(rig.fence, round);
    }
    CheckChain(
        rig, queue, round, [&] { queue.Destroy(); }, "a queue was destroyed before its work was done");
  }
}

void CheckCapture(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  if (!api || !api->capture_begin) NotOffered("the backend does not support captures");
  constexpr size_t kBytes = 5000;
  Record record(s);
  Rig rig(s, 3 * kBytes);
  unsigned char *a = rig.at(0), *b = rig.at(kBytes), *c = rig.at(2 * kBytes);
  auto copies = [&](unsigned char* from, unsigned char* to) {
    return [&, from, to] { rig.queue.Copy(b, from, kBytes), rig.queue.Copy(to, b, kBytes); };
  };
  auto replays = [&](unsigned seed, unsigned char* from, unsigned char* to, std::string_view fault) {
    const Bytes want = Pattern(kBytes, seed);
    rig.transfer.Put(from, want);
    record.Replay(rig.queue);
    rig.Expect(to, want, fault);
  };
  rig.Fill(Pattern(kBytes, 1));
  record.Take(rig.queue, copies(a, c));
  rig.Expect(c, Bytes(kBytes, 0), "captured work ran during the capture");
  for (unsigned round = 1; round <= 3; ++round)
    replays(10 + round, a, c, fmt::format("replay {} differs from a direct run", round));
  if (api->capture_update) {
    const mge_code updated = record.Update(rig.queue, copies(c, a));
    const std::string fault = fmt::format("after capture_update returned {}, a replay is wrong", CodeName(updated));
    for (unsigned seed : {20, 21}) replays(seed, updated == MGE_OK ? c : a, updated == MGE_OK ? a : c, fault);
  }
  record.Destroy();
  // After the capture the queue must run work directly again.
  const Bytes last = Pattern(kBytes, 99);
  rig.Fill(last);
  rig.queue.Copy(b, a, kBytes);
  rig.Expect(b, last, "after a capture the queue does not run enqueued work");
}

void CheckPeers(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  if (!api || !api->copy_peer || !s.plugin().device->link) NotOffered("the backend does not support copies between devices");
  Owned<mge_device> other = s.OpenAnother();
  auto link = Sized<mge_link>();
  Call("asking for a link", s.plugin().device->link, s.device(), other.get(), &link);
  if (!(link.flags & MGE_LINK_PEER)) NotOffered("the first two devices are no peers");
  constexpr size_t kBytes = 70'001;
  Slab there(s, kBytes, MGE_MEMORY_DEVICE, other.get());
  Rig rig(s, 2 * kBytes);
  unsigned char *here = rig.at(0), *back = rig.at(kBytes);
  const Bytes want = Pattern(kBytes, 3);
  rig.Fill(want);
  Call("copying to a peer", api->copy_peer, rig.queue, other.get(), there.address(), s.device(), here, kBytes);
  Call("copying from a peer", api->copy_peer, rig.queue, s.device(), back, other.get(), there.address(), kBytes);
  rig.Expect(back, want, "to a peer and back");
}

// Some stamps, taken on one queue; none if the backend has no stamps.
class Stamps {
 public:
  Stamps(BackendUnderTest& s, size_t count) : api_(s.plugin().profile) {
    for (size_t i = 0; i < count && api_; ++i)
      stamps_.push_back(Make("stamp", api_->stamp_destroy, api_->stamp_create, s.device()));
  }
  void Take(size_t i, Queue& queue) const {
    if (api_) Call("stamping", api_->stamp, queue, stamps_[i].get());
  }
  double Between(size_t from, size_t to) const {  // in microseconds
    double us = 0;
    if (api_) Call("asking for a time", api_->elapsed_us, stamps_[from].get(), stamps_[to].get(), &us);
    return us;
  }

 private:
  const mge_profile_api* api_;
  std::vector<Owned<mge_stamp>> stamps_;
};

// Takes two stamps with work between them, and compares their difference with the host's clock.
void CheckStamps(BackendUnderTest& s) {
  if (!s.plugin().profile) NotOffered("the backend has no table 'profile': the host times by its own clock");
  using Clock = std::chrono::steady_clock;
  auto us_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  };
  LongWork work(s);
  std::string wrong;
  for (int round = 0; round < 5; ++round) {  // other programs may delay the host's thread during some rounds
    Stamps stamps(s, 2);
    Rig rig(s, 1);
    const Clock::time_point begin = Clock::now();
    stamps.Take(0, rig.queue);
    rig.transfer.Drain(rig.queue);
    const Clock::time_point started = Clock::now();
    work.Enqueue(rig.queue, std::chrono::milliseconds(40));
    const double enqueuing = us_since(started);
    const Clock::time_point enqueued = Clock::now();
    stamps.Take(1, rig.queue);
    rig.transfer.Drain(rig.queue);
    const double remaining = us_since(enqueued), least = remaining / 2, most = us_since(begin), us = stamps.Between(0, 1);
    const bool right = us >= least && us <= 2 * most;  // half and twice: a tolerance between two clocks
    if (right && remaining > 4 * enqueuing) return;    // most of the work was left when the second stamp was enqueued
    if (!right)
      wrong = fmt::format("the time between two stamps is {} us; by the host's clock it is between {:.0f} and {:.0f} us", us,
                          least, most);
  }
  if (!wrong.empty()) Broken(wrong);
}

// Copies, signals and waits on a queue. On success all its work is done; on failure it may still run until the queue is
// destroyed.
void UseQueue(Queue& queue, const Fence& fence, unsigned char* memory, uint64_t value) {
  queue.Copy(memory + 64, memory, 64);
  queue.Signal(fence, value);
  queue.Wait(fence, value);
  fence.Await(value);
}

void CheckQueueAllocations(BackendUnderTest& s) {
  Slab slab(s, 128);
  unsigned char* memory = slab.address();
  Fence last(s);
  Queue kept(s);
  uint64_t value = 0;
  SurvivesFailures(s, [&] {
    // A queue must keep working after a call for it has failed.
    UseQueue(kept, last, memory, ++value);
    Fence fence(s);
    Record record(s);  // records and stamps must outlive the queue, which may use them
    Stamps stamps(s, 2);
    Queue queue(s);
    for (size_t i : {0, 1}) stamps.Take(i, queue);
    if (s.plugin().queue->capture_begin) {
      record.Take(queue, [&] { queue.Copy(memory + 64, memory, 64); });
      record.Replay(queue);
    }
    UseQueue(queue, fence, memory, 1);
    stamps.Between(0, 1);
  });
}

constexpr Check kQueueChecks[] = {
    {"queue.create", "Queues of every kind can be created and destroyed, several at once.", CheckCreate},
    {"queue.copies", "Copies in every direction write all bytes of the destination, and no others.", CheckCopies},
    {"queue.order", "Work on one queue runs in order.", CheckOrder},
    {"queue.destroy", "Destroying a queue waits for its work, also behind a fence that another queue will signal.",
     CheckDestroy},
    {"queue.capture",
     "Captured copies do not run during the capture, and each replay equals a direct run, also after an update.",
     CheckCapture},
    {"queue.allocations", "Queues, fences, captures and stamps survive every failing allocation.", CheckQueueAllocations},
    {"queue.peers", "Copies between peer devices are correct.", CheckPeers},
    {"profile.stamps", "A stamp is taken after the work before it; times are in microseconds.", CheckStamps},
};

}  // namespace

std::span<const Check> QueueChecks() { return kQueueChecks; }

}  // namespace mge::conform
