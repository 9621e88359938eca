// SPDX-License-Identifier: Apache-2.0
// Checks of queues: copies in every direction, order, destruction, capture, peers, time stamps. Checks of fences: values, order
// between queues, threads, propagation of failures, timeouts. Checks of collectives.
#include <algorithm>
#include <chrono>
#include <tuple>

#include "core/conform/allocations.h"
#include "core/conform/cases.h"
#include "core/conform/device_memory.h"
#include "fmt/format.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

using std::chrono::milliseconds;

constexpr size_t kQueueRedZone = 64;
constexpr const char* kKindNames[] = {"compute", "copy-in", "copy-out", "communication"};  // by MGE_QUEUE_...

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
void CheckCopyChain(Rig& rig, Queue& queue, unsigned seed, const std::function<void()>& end, std::string_view fault) {
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
    CheckCopyChain(
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
      work.Enqueue(rig.other, milliseconds(round * 10));
      rig.other.Signal(rig.fence, round);
      queue.Wait(rig.fence, round);
    }
    CheckCopyChain(
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
  if (!s.plugin().device->link) NotOffered("the slot link is empty: no two devices are linked");
  Owned<mge_device> other = s.OpenAnother();
  auto link = Sized<mge_link>();
  for (auto [from, to] : {std::pair{other.get(), s.device()}, std::pair{s.device(), other.get()}}) {
    Call("asking for a link", s.plugin().device->link, from, to, &link);
    if (link.flags & ~MGE_LINK_KNOWN_BITS) Broken("a link has unknown flags");
    if (!(link.bandwidth_gb_s >= 0) || !(link.latency_us >= 0)) Broken("a link's bandwidth or latency is negative");
  }
  if (!(link.flags & MGE_LINK_PEER) || !api || !api->copy_peer) NotOffered("the first two devices are no peers");
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

// Creates stamps; none if the backend has no stamps.
std::vector<Owned<mge_stamp>> MakeStamps(BackendUnderTest& s, size_t count) {
  const mge_profile_api* api = s.plugin().profile;
  std::vector<Owned<mge_stamp>> stamps;
  while (api && stamps.size() < count) stamps.push_back(Make("stamp", api->stamp_destroy, api->stamp_create, s.device()));
  return stamps;
}

// Takes two stamps with work between them, and compares their difference with the host's clock.
void CheckStamps(BackendUnderTest& s) {
  const mge_profile_api* api = s.plugin().profile;
  if (!api) NotOffered("the backend has no table 'profile': the host times by its own clock");
  using Clock = std::chrono::steady_clock;
  auto us_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  };
  LongWork work(s);
  std::string wrong;
  for (int round = 0; round < 5; ++round) {  // other programs may delay the host's thread during some rounds
    const std::vector<Owned<mge_stamp>> stamps = MakeStamps(s, 2);
    Rig rig(s, 1);
    const Clock::time_point begin = Clock::now();
    Call("stamping", api->stamp, rig.queue, stamps[0].get());
    rig.transfer.Drain(rig.queue);
    const Clock::time_point started = Clock::now();
    work.Enqueue(rig.queue, milliseconds(40));
    const double enqueuing = us_since(started);
    const Clock::time_point enqueued = Clock::now();
    Call("stamping", api->stamp, rig.queue, stamps[1].get());
    rig.transfer.Drain(rig.queue);
    const double remaining = us_since(enqueued), least = remaining / 2, most = us_since(begin);
    double us = 0;
    Call("asking for a time", api->elapsed_us, stamps[0].get(), stamps[1].get(), &us);
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
    const std::vector<Owned<mge_stamp>> stamps = MakeStamps(s, 2);
    Queue queue(s);
    for (const Owned<mge_stamp>& stamp : stamps) Call("stamping", s.plugin().profile->stamp, queue, stamp.get());
    if (s.plugin().queue->capture_begin) {
      record.Take(queue, [&] { queue.Copy(memory + 64, memory, 64); });
      record.Replay(queue);
    }
    UseQueue(queue, fence, memory, 1);
    double us = 0;
    if (!stamps.empty()) Call("asking for a time", s.plugin().profile->elapsed_us, stamps[0].get(), stamps[1].get(), &us);
  });
}

// ---- fences

// Signals two values with long work between them, and waits for the first: each value keeps an event of its own.
void CheckSeveralValues(BackendUnderTest& s) {
  LongWork work(s);
  for (int round = 0; round < 3; ++round) {  // another program may use the processor during one round
    Rig rig(s, 1);
    auto pending = [&] { return rig.fence.Ask(2, 0).code == MGE_DEADLINE_EXCEEDED; };
    work.Enqueue(rig.queue, milliseconds(5));
    rig.queue.Signal(rig.fence, 1);
    work.Enqueue(rig.queue, milliseconds(300));
    rig.queue.Signal(rig.fence, 2);
    const bool busy = pending();
    rig.fence.Await(1);
    const bool early = pending();
    rig.queue.Signal(rig.fence, UINT64_MAX - 1);
    rig.fence.Await(UINT64_MAX - 1);
    if (rig.fence.Ask(1, 0).code != MGE_OK) Broken("a fence forgot a smaller value that it had reached");
    if (early || !busy) return;
  }
  Broken("a wait for a value of a fence lasts until a later value is reached; keep one event for each value");
}

// Waits for work that takes longer than the timeout. A queue that works in the calling thread has done it before.
void CheckTimeout(BackendUnderTest& s) {
  LongWork work(s);
  Rig rig(s, 1);
  uint64_t value = 0;
  for (uint64_t timeout : {uint64_t{0}, uint64_t{1}, uint64_t{20'000'000}}) {
    s.At("host_wait with a limit of {} ns", timeout);
    work.Enqueue(rig.queue, milliseconds(400));
    rig.queue.Signal(rig.fence, ++value);
    const auto begin = std::chrono::steady_clock::now();
    const mge_error result = rig.fence.Ask(value, timeout);
    const auto waited = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin);
    if (result.code != MGE_OK && (result.code != MGE_DEADLINE_EXCEEDED || result.text.empty()))
      Broken("a wait that times out returns {} '{}'; MGE_DEADLINE_EXCEEDED and a text are required", CodeName(result.code),
             result.text);
    if (result.code == MGE_OK && waited > milliseconds(300))
      Broken("a wait of {} ns did not end before the work, after {} ms", timeout, waited.count());
    rig.fence.Await(value);
  }
}

void CheckFenceThreads(BackendUnderTest& s) {
  LongWork work(s);
  Rig rig(s, 1);
  constexpr int kValues = 200;
  for (int value = 1; value <= kValues; ++value) {
    if (value % 20 == 1) work.Enqueue(rig.queue, milliseconds(1));
    rig.queue.Signal(rig.fence, static_cast<uint64_t>(value));
  }
  InThreads(4, [&](int i) {
    for (int value = 1 + i % 2; value <= kValues; value += 1 + i % 3) rig.fence.Await(static_cast<uint64_t>(value));
  });
}

// Two queues alternate in a chain of copies, the first of which is behind long work. Only if each copy waits for the one
// before it is the end of the chain correct.
void Alternate(BackendUnderTest& s, const LongWork& work, int ms, int32_t first, int32_t second) {
  constexpr uint64_t kLinks = 50;
  constexpr size_t kBytes = 4096;
  s.At("a {} queue and a {} queue wait for each other", kKindNames[first], kKindNames[second]);
  Rig rig(s, (kLinks + 1) * kBytes, second, first);
  auto& [ping, pong, slab, transfer, a, b] = rig;
  const Bytes want = Pattern(kBytes, static_cast<unsigned>(ms));
  rig.Fill(want);
  work.Enqueue(a, milliseconds(ms));
  for (uint64_t i = 0; i < kLinks; ++i) {
    Queue& queue = i % 2 ? b : a;
    if (i > 0) queue.Wait(i % 2 ? ping : pong, i);
    queue.Copy(rig.at((i + 1) * kBytes), rig.at(i * kBytes), kBytes);
    queue.Signal(i % 2 ? pong : ping, i + 1);
  }
  pong.Await(kLinks);
  if (ping.Ask(1, 0).code != MGE_OK) Broken("a fence behind an unfinished wait is reached");
  transfer.Expect(
      rig.at(kLinks * kBytes), want,
      fmt::format("in a chain over a {} queue and a {} queue, a copy behind a wait read its source before the copy "
                  "in front of the fence was done",
                  kKindNames[first], kKindNames[second]));
}

void CheckWait(BackendUnderTest& s) {
  LongWork work(s);
  for (int ms : {0, 5, 50}) Alternate(s, work, ms, MGE_QUEUE_COMPUTE, MGE_QUEUE_COPY_IN);
  for (int32_t first : {0, 1, 2, 3}) {
    for (int32_t second : {0, 1, 2, 3}) {
      // A queue for communication is optional.
      const absl::Status has = StatusOf([&] { Queue(s, first), Queue(s, second); });
      if (has.ok()) Alternate(s, work, 10, first, second);
    }
  }
}

// Copies from and to the host, on their own queues, beside a compute queue that still reads and writes that memory.
void CheckHostCopies(BackendUnderTest& s) {
  constexpr size_t kBytes = 65536;
  LongWork work(s);
  Bytes host[] = {Bytes(kBytes), Bytes(kBytes)};
  Slab pinned;
  if (HasPinnedMemory(s)) pinned = Slab(s, 2 * kBytes, MGE_MEMORY_PINNED);
  for (bool is_pinned : {false, true}) {
    if (is_pinned && !pinned) continue;
    unsigned char* const sent = is_pinned ? static_cast<unsigned char*>(pinned.raw().host_address) : host[0].data();
    unsigned char* const read = is_pinned ? sent + kBytes : host[1].data();
    const Bytes old = Pattern(kBytes, 1), fresh = Pattern(kBytes, 2);
    std::ranges::copy(fresh, sent);
    Fence loaded(s);
    Rig rig(s, 3 * kBytes);
    Queue in(s, MGE_QUEUE_COPY_IN);
    unsigned char *a = rig.at(0), *b = rig.at(kBytes), *c = rig.at(2 * kBytes);
    rig.Fill(old);
    work.Enqueue(rig.queue, milliseconds(20));
    rig.queue.Copy(b, a, kBytes);
    rig.queue.Signal(rig.fence, 1);
    in.Wait(rig.fence, 1), in.Copy(a, sent, kBytes), in.Signal(loaded, 1);
    rig.other.Wait(rig.fence, 1), rig.other.Copy(read, b, kBytes), rig.other.Signal(rig.later, 1);
    rig.queue.Wait(loaded, 1), rig.queue.Copy(c, a, kBytes);
    rig.later.Await(1);
    Same({read, kBytes}, old, "a copy to the host did not wait for the work that writes its source");
    rig.Expect(b, old, "a copy from the host did not wait for the work that reads its destination");
    rig.transfer.Expect(c, fresh, "work did not wait for a copy from the host that writes its source");
  }
}

void CheckFailure(BackendUnderTest& s) {
  const mge_faults_api& faults = FaultsOf(s);
  Fence second(s);
  Rig rig(s, 4096);
  auto& [first, later, slab, transfer, a, b] = rig;
  constexpr std::string_view kText = "the kit made this copy fail";
  const mge_text text = {kText.data(), kText.size()};
  Call("asking for a failure", faults.fail_next, a, MGE_DATA_LOSS, text);
  mge_error ignored;  // a queue that runs in the calling thread may report the failure here; the fence must carry it too
  s.plugin().queue->copy(a, slab.address() + 2048, slab.address(), 1024, &ignored);
  a.Signal(first, 1);
  a.Signal(later, 1);  // before the host reads the failure, after which a queue may work again
  a.Signal(later, 2);
  // Whether work behind a failed fence runs is up to the backend, but the queue must not wait forever.
  (void)StatusOf([&] { b.Wait(first, 1); });
  b.Signal(second, 1);
  const std::tuple<const Fence&, uint64_t, std::string_view> after_failure[] = {
      {first, 1, "a fence behind work that failed"},
      {later, 1, "the second fence that is signalled behind work that failed"},
      {later, 2, "a fence that is signalled once more behind work that failed"}};
  for (const auto& [fence, value, which] : after_failure) {
    const mge_error result = fence.Ask(value, kPatienceNs);
    if (result.code != MGE_DATA_LOSS)
      Broken("{} returns {}; the work before it failed with MGE_DATA_LOSS", which, CodeName(result.code));
    if (result.text.find(kText) == std::string::npos)
      Broken("{} carries the text '{}'; the failure's was '{}'", which, result.text, kText);
  }
  if (second.Ask(1, kPatienceNs).code == MGE_DEADLINE_EXCEEDED)
    Broken("a queue that waits for a fence which has failed waits for ever");
}

// ---- collectives with the ranks that one process can have: one rank alone, and a group whose other rank is absent

using Communicator = Owned<mge_communicator>;
using Id = uint8_t[MGE_UNIQUE_ID_BYTES];

const mge_collective_api* ApiOf(BackendUnderTest& s) { return s.plugin().collective; }

void NewId(BackendUnderTest& s, Id& id) {
  if (!ApiOf(s)) NotOffered("the backend has no table 'collective'");
  const mge_error result = Try("unique_id", ApiOf(s)->unique_id, id);
  // A library that the backend needs for collectives may be missing.
  if (result.code == MGE_UNAVAILABLE) NotOffered(result.text);
  Answer(result, "unique_id");
}

Communicator JoinAlone(BackendUnderTest& s) {
  Id id = {};
  NewId(s, id);
  return Make("communicator", ApiOf(s)->destroy, ApiOf(s)->create, s.device(), id, 0u, 1u, kPatienceNs);
}

void CheckOneRank(BackendUnderTest& s) {
  constexpr uint64_t kCount = 70'001;  // float32 elements
  constexpr size_t kBytes = kCount * sizeof(float);
  Communicator alone = JoinAlone(s);
  Rig rig(s, 3 * kBytes);
  const Bytes want = BytesOf(RandomTensor(DType::kF32, {kCount}, -500, 500, 1));
  unsigned char *from = rig.at(0), *reduced = rig.at(kBytes), *sent = rig.at(2 * kBytes);
  mge_queue* queue = rig.queue;
  rig.Fill(want);
  Call("group_begin", ApiOf(s)->group_begin);
  Call("all_reduce", ApiOf(s)->all_reduce, alone.get(), queue, from, reduced, kCount, MGE_DTYPE_F32, MGE_REDUCE_SUM);
  Call("broadcast", ApiOf(s)->broadcast, alone.get(), queue, from, sent, kCount, MGE_DTYPE_F32, 0u);
  Call("group_end", ApiOf(s)->group_end);
  rig.Expect(reduced, want, "all_reduce of one rank changes its data");
  rig.transfer.Expect(sent, want, "broadcast of one rank changes its data");
}

void CheckAbsentRank(BackendUnderTest& s) {
  Id id = {};
  NewId(s, id);
  constexpr uint64_t kShortNs = 200'000'000;  // the timeout
  mge_communicator* made = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  MustFail(MGE_UNAVAILABLE, "create of a communicator whose other rank never comes", ApiOf(s)->create, s.device(), id, 0u,
           2u, kShortNs, &made);
  if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5))
    Broken("create without the other rank returns long after its timeout of 200 ms");
}

void CheckAbort(BackendUnderTest& s) {
  Communicator alone = JoinAlone(s);
  Rig rig(s, 64);
  InBackend("abort", ApiOf(s)->abort, alone.get());
  unsigned char* data = rig.at(0);
  mge_code code = Try("all_reduce after abort", ApiOf(s)->all_reduce, alone.get(), rig.queue, data, data, uint64_t{4},
                      MGE_DTYPE_F32, MGE_REDUCE_SUM)
                      .code;
  if (code == MGE_OK) {
    rig.queue.Signal(rig.fence, 1);
    code = rig.fence.Ask(1, kPatienceNs).code;
  }
  if (code != MGE_CANCELLED) Broken("an operation after abort ends with {}; MGE_CANCELLED is required", CodeName(code));
}

constexpr Check kQueueChecks[] = {
    {"queue.copies", "Copies in every direction write all bytes of the destination, and no others.", CheckCopies},
    {"queue.order", "Work on one queue runs in order.", CheckOrder},
    {"queue.destroy", "Destroying a queue waits for its work, also behind a fence that another queue will signal.",
     CheckDestroy},
    {"queue.capture",
     "Captured copies do not run during the capture, and each replay equals a direct run, also after an update.",
     CheckCapture},
    {"queue.allocations", "Queues, fences, captures and stamps survive every failing allocation.", CheckQueueAllocations},
    {"queue.peers", "Links between devices have valid members, and copies between peers are correct.", CheckPeers},
    {"profile.stamps", "A stamp is taken after the work before it; times are in microseconds.", CheckStamps},
    {"fence.several_values", "A fence keeps the values that it has reached, and an event for each other one.",
     CheckSeveralValues},
    {"fence.timeout", "A wait that times out returns MGE_DEADLINE_EXCEEDED with a text.", CheckTimeout},
    {"fence.wait",
     "Work behind a wait runs after the fence is reached, and a fence after the work before it, for every pair of kinds.",
     CheckWait},
    {"fence.host_copies", "Copies from and to the host wait for the compute queue, and it waits for them.", CheckHostCopies},
    {"fence.threads", "Many threads can wait for one fence.", CheckFenceThreads},
    {"fence.failure",
     "A failure reaches every later signal of its queue, with its code and text, and blocks no other queue.", CheckFailure},
    {"collective.one_rank", "The operations of one rank alone copy its data.", CheckOneRank},
    {"collective.absent_rank", "A rank that never comes is an error within the timeout.", CheckAbsentRank},
    {"collective.abort", "An aborted communicator ends operations with MGE_CANCELLED.", CheckAbort},
};

}  // namespace

std::span<const Check> QueueChecks() { return kQueueChecks; }

}  // namespace mge::conform
