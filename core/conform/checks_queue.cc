// SPDX-License-Identifier: Apache-2.0
// Checks of queues: copies in every direction, order, destruction, capture, peers, time stamps.
#include <algorithm>
#include <chrono>
#include <thread>

#include "core/conform/device_memory.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr size_t kRedZone = 64;

absl::Status CheckCreate(BackendUnderTest& s) {
  for (int round = 0; round < 4; ++round) {
    std::vector<Queue> queues;
    for (int32_t kind : {MGE_QUEUE_COMPUTE, MGE_QUEUE_COPY_IN, MGE_QUEUE_COPY_OUT, MGE_QUEUE_COMPUTE}) {
      MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s, kind));
      queues.push_back(std::move(queue));
    }
    mge_queue* optional = nullptr;
    mge_error error;
    const mge_queue_api& api = *s.plugin().queue;
    const mge_code code = InBackend("creating a communication queue",
                                    [&] { return api.create(s.device(), MGE_QUEUE_COMMUNICATION, &optional, &error); });
    if (code == MGE_OK) InBackend("destroying a queue", [&] { api.destroy(optional); });
    if (code != MGE_UNIMPLEMENTED) MGE_RETURN_IF_ERROR(Answer(code, error, "creating a communication queue"));
  }
  return absl::OkStatus();
}

// A buffer with red zones on both sides: on the device, in pinned memory, or in ordinary host memory.
struct Place {
  std::string name;
  Slab slab;
  Bytes own;
  unsigned char* address = nullptr;
};

// A set of buffers for copies. Check() copies over a queue and checks every byte of source and destination and their guard
// bytes.
class Copies {
 public:
  static absl::StatusOr<std::unique_ptr<Copies>> Create(BackendUnderTest& s, size_t largest) {
    std::unique_ptr<Copies> c(new Copies(s));
    MGE_ASSIGN_OR_RETURN(c->transfer_, Transfer::Create(s));
    size_t room = largest + 2 * kRedZone + 64;
    for (const char* name : {"device", "device, elsewhere", "host", "host, elsewhere", "pinned"}) {
      Place place;
      place.name = name;
      const int32_t memory_class = place.name == "pinned" ? MGE_MEMORY_PINNED : MGE_MEMORY_DEVICE;
      if (!HasMemory(s, memory_class)) continue;
      if (place.name.starts_with("host")) {
        place.own.resize(room);
        place.address = place.own.data();
      } else {
        MGE_ASSIGN_OR_RETURN(place.slab, Slab::Acquire(s, room, memory_class));
        place.address = place.slab.address();
      }
      c->places_.push_back(std::move(place));
    }
    return c;
  }

  size_t places() const { return places_.size(); }

  absl::Status Check(Queue& queue, size_t from, size_t to, size_t bytes, size_t shift) {
    Place &source = places_[from], &target = places_[to];
    std::string what = fmt::format("copy of {} bytes from {} to {} (offset {})", bytes, source.name, target.name, shift);
    tested_.At(what);
    size_t room = bytes + 2 * kRedZone + shift;
    Bytes a = Pattern(room, static_cast<unsigned>(from + 10 * bytes)),
          b = Pattern(room, static_cast<unsigned>(to + 77 + bytes));
    MGE_RETURN_IF_ERROR(Put(source, a));
    MGE_RETURN_IF_ERROR(Put(target, b));
    size_t at = kRedZone + shift;
    MGE_RETURN_IF_ERROR(Call(what, [&](mge_error* e) {
      return tested_.plugin().queue->copy(queue, target.address + at, source.address + kRedZone, bytes, e);
    }));
    MGE_RETURN_IF_ERROR(transfer_.Drain(queue));
    std::copy_n(a.begin() + kRedZone, bytes, b.begin() + static_cast<ptrdiff_t>(at));
    MGE_RETURN_IF_ERROR(Same(target, b, what + ", destination"));
    return Same(source, a, what + ", source");
  }

 private:
  explicit Copies(BackendUnderTest& s) : tested_(s) {}
  bool OnDevice(const Place& p) const { return p.name.starts_with("device"); }
  unsigned char* HostAddress(Place& p) {
    return p.own.empty() ? static_cast<unsigned char*>(p.slab.raw().host_address) : p.own.data();
  }
  absl::Status Put(Place& p, const Bytes& bytes) {
    if (OnDevice(p)) return transfer_.ToDevice(p.address, bytes.data(), bytes.size());
    std::copy(bytes.begin(), bytes.end(), HostAddress(p));
    return absl::OkStatus();
  }
  absl::Status Same(Place& p, const Bytes& want, const std::string& what) {
    Bytes got(want.size());
    if (OnDevice(p))
      MGE_RETURN_IF_ERROR(transfer_.ToHost(got.data(), p.address, got.size()));
    else
      std::copy_n(HostAddress(p), got.size(), got.begin());
    std::string d = Difference(got, want);
    return d.empty() ? absl::OkStatus() : Broken(fmt::format("{}: {}", what, d));
  }

  BackendUnderTest& tested_;
  std::vector<Place> places_;
  Transfer transfer_;
};

absl::Status CheckCopies(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Copies> copies, Copies::Create(s, (1 << 20) + 3));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue in, Queue::Create(s, MGE_QUEUE_COPY_IN));
  MGE_ASSIGN_OR_RETURN(Queue out, Queue::Create(s, MGE_QUEUE_COPY_OUT));
  for (size_t from = 0; from < copies->places(); ++from) {
    for (size_t to = 0; to < copies->places(); ++to) {
      bool to_host = to >= 2, from_host = from >= 2;  // pinned memory counts as host memory
      if (from == to || (from_host && to_host)) continue;
      for (size_t bytes : {0, 1, 3, 64, 257, 4097, (1 << 20) + 3}) {
        MGE_RETURN_IF_ERROR(copies->Check(to_host ? out : from_host ? in : queue, from, to, bytes, bytes % 7));
      }
    }
  }
  return absl::OkStatus();
}

// A chain of copies, each of which reads the destination of the one before. Only if all run in order is the end correct.
class Chain {
 public:
  static absl::StatusOr<Chain> Create(BackendUnderTest& s) {
    Chain c(s);
    MGE_ASSIGN_OR_RETURN(c.transfer_, Transfer::Create(s));
    MGE_ASSIGN_OR_RETURN(c.slab_, Slab::Acquire(s, kBytes * (kLinks + 1)));
    return c;
  }
  absl::Status Enqueue(Queue& queue, unsigned seed) {
    want_ = Pattern(kBytes, seed);
    Bytes zeros(kBytes * (kLinks + 1), 0);
    MGE_RETURN_IF_ERROR(transfer_.ToDevice(slab_.address(), zeros.data(), zeros.size()));
    MGE_RETURN_IF_ERROR(transfer_.ToDevice(slab_.address(), want_.data(), kBytes));
    for (int i = 0; i < kLinks; ++i) {
      unsigned char* from = slab_.address() + static_cast<size_t>(i) * kBytes;
      MGE_RETURN_IF_ERROR(queue.Copy(from + kBytes, from, kBytes));
    }
    return absl::OkStatus();
  }
  absl::Status Drain(Queue& queue) { return transfer_.Drain(queue); }
  // Returns how the end of the chain differs from the expected bytes, or "".
  absl::StatusOr<std::string> Fault() {
    Bytes got(kBytes);
    MGE_RETURN_IF_ERROR(transfer_.ToHost(got.data(), slab_.address() + kLinks * kBytes, kBytes));
    return Difference(got, want_);
  }
  static constexpr int kLinks = 12;

 private:
  static constexpr size_t kBytes = 300'000;
  explicit Chain(BackendUnderTest& s) : tested_(s) {}
  BackendUnderTest& tested_;
  Slab slab_;
  Bytes want_;
  Transfer transfer_;
};

absl::Status CheckOrder(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Chain chain, Chain::Create(s));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  for (unsigned round = 0; round < 4; ++round) {
    MGE_RETURN_IF_ERROR(chain.Enqueue(queue, round));
    MGE_RETURN_IF_ERROR(chain.Drain(queue));
    MGE_ASSIGN_OR_RETURN(std::string fault, chain.Fault());
    if (!fault.empty()) return Broken(fmt::format("{} copies in a row ran out of order: {}", Chain::kLinks, fault));
  }
  return absl::OkStatus();
}

absl::Status CheckDestroy(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Chain chain, Chain::Create(s));
  for (unsigned round = 0; round < 4; ++round) {
    s.At("destroying a queue that has work");
    {
      MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
      MGE_RETURN_IF_ERROR(chain.Enqueue(queue, round));
    }
    MGE_ASSIGN_OR_RETURN(std::string fault, chain.Fault());
    if (!fault.empty()) return Broken("a queue was destroyed before its work was done: " + fault);
  }
  return absl::OkStatus();
}

// Destroys a queue that waits for another queue's work. The amount of work is increased until it is surely not done by then.
absl::Status CheckDestroyWaits(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  if (!api) return NotOffered("the backend has no queues: its steps run in the calling thread");
  constexpr size_t kBytes = 4 << 20;
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 3 * kBytes));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  unsigned char *a = slab.address(), *b = a + kBytes, *c = b + kBytes;
  Bytes got(kBytes);
  for (unsigned copies = 1; copies <= 64; copies *= 8) {
    Bytes want = Pattern(kBytes, copies), zeros(2 * kBytes, 0);
    MGE_RETURN_IF_ERROR(transfer.ToDevice(a, want.data(), kBytes));
    MGE_RETURN_IF_ERROR(transfer.ToDevice(b, zeros.data(), zeros.size()));
    MGE_ASSIGN_OR_RETURN(Fence worked, Fence::Create(s));
    MGE_ASSIGN_OR_RETURN(Fence waited, Fence::Create(s));
    MGE_ASSIGN_OR_RETURN(Queue works, Queue::Create(s, MGE_QUEUE_COPY_IN));
    MGE_ASSIGN_OR_RETURN(Queue waits, Queue::Create(s));
    MGE_RETURN_IF_ERROR(Call("passing work between queues", [&](mge_error* e) -> mge_code {
      mge_code code = MGE_OK;
      for (unsigned i = 0; i < copies && code == MGE_OK; ++i) code = api->copy(works, b, a, kBytes, e);
      if (code == MGE_OK) code = works.Signal(worked, 1, e);
      if (code == MGE_OK) code = waits.Wait(worked, 1, e);
      if (code == MGE_OK) code = api->copy(waits, c, b, kBytes, e);
      return code == MGE_OK ? waits.Signal(waited, 1, e) : code;
    }));
    s.At(fmt::format("destroying a queue that waits for {} copies of another", copies));
    waits = Queue();
    std::string text;
    if (mge_code code = waited.Ask(1, 0, &text); code != MGE_OK) {
      return Broken(fmt::format("a queue was destroyed, but the fence that it signals behind a wait returns {}: {}",
                                CodeName(code), text));
    }
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), c, kBytes));
    if (std::string d = Difference(got, want); !d.empty()) {
      return Broken("a queue was destroyed and did not wait for the work of another: " + d);
    }
  }
  return absl::OkStatus();
}

// An owned record of captured work.
struct Capture {
  explicit Capture(BackendUnderTest& s) : tested(s) {}
  ~Capture() { Destroy(); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  void Destroy() {
    if (raw) InBackend("destroying a record", [&] { tested.plugin().queue->record_destroy(tested.device(), raw); });
    raw = nullptr;
  }
  BackendUnderTest& tested;
  void* raw = nullptr;
};

// Updates a record of the copies a -> b -> c, which are neighbours, to c -> b -> a.
absl::Status CheckUpdate(BackendUnderTest& s, Queue& queue, Transfer& transfer, unsigned char* a, size_t bytes,
                         void* record) {
  const mge_queue_api* api = s.plugin().queue;
  unsigned char *b = a + bytes, *c = b + bytes;
  Bytes got(bytes);
  MGE_RETURN_IF_ERROR(Call("beginning a capture", [&](mge_error* e) { return api->capture_begin(queue, e); }));
  MGE_RETURN_IF_ERROR(queue.Copy(b, c, bytes));
  MGE_RETURN_IF_ERROR(queue.Copy(a, b, bytes));
  mge_error error;
  const mge_code code = InBackend("updating a record", [&] { return api->capture_update(queue, record, &error); });
  if (code != MGE_OK && code != MGE_UNIMPLEMENTED) return Answer(code, error, "updating a record");
  for (unsigned round = 0; round < 2; ++round) {
    const Bytes now = Pattern(bytes, 20 + round);
    MGE_RETURN_IF_ERROR(transfer.ToDevice(code == MGE_OK ? c : a, now.data(), bytes));
    MGE_RETURN_IF_ERROR(Call("replaying", [&](mge_error* e) { return api->replay(queue, record, e); }));
    MGE_RETURN_IF_ERROR(transfer.Drain(queue));
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), code == MGE_OK ? a : c, bytes));
    if (std::string d = Difference(got, now); !d.empty()) {
      return Broken(fmt::format("after capture_update returned {}, a replay is wrong: {}", CodeName(code), d));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckCapture(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  if (!api) return NotOffered("the backend has no queues: its steps run in the calling thread");
  if (!api->capture_begin) return NotOffered("the backend does not support captures");
  constexpr size_t kBytes = 5000;
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 3 * kBytes));
  Capture record{s};
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  unsigned char *a = slab.address(), *b = a + kBytes, *c = b + kBytes;
  Bytes zeros(3 * kBytes, 0), got(kBytes);
  MGE_RETURN_IF_ERROR(transfer.ToDevice(a, zeros.data(), zeros.size()));
  Bytes first = Pattern(kBytes, 1);
  MGE_RETURN_IF_ERROR(transfer.ToDevice(a, first.data(), kBytes));
  MGE_RETURN_IF_ERROR(Call("beginning a capture", [&](mge_error* e) { return api->capture_begin(queue, e); }));
  MGE_RETURN_IF_ERROR(queue.Copy(b, a, kBytes));
  MGE_RETURN_IF_ERROR(queue.Copy(c, b, kBytes));
  MGE_RETURN_IF_ERROR(Call("ending a capture", [&](mge_error* e) { return api->capture_end(queue, &record.raw, e); }));
  if (!record.raw) return Broken("ending a capture returned MGE_OK, but no record");
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), c, kBytes));
  if (got != Bytes(kBytes, 0)) return Broken("captured work ran during the capture");
  for (unsigned round = 0; round < 3; ++round) {
    Bytes now = Pattern(kBytes, 10 + round);
    MGE_RETURN_IF_ERROR(transfer.ToDevice(a, now.data(), kBytes));
    MGE_RETURN_IF_ERROR(Call("replaying", [&](mge_error* e) { return api->replay(queue, record.raw, e); }));
    MGE_RETURN_IF_ERROR(transfer.Drain(queue));
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), c, kBytes));
    if (std::string d = Difference(got, now); !d.empty())
      return Broken(fmt::format("replay {} differs from a direct run: {}", round + 1, d));
  }
  if (api->capture_update) {
    MGE_RETURN_IF_ERROR(CheckUpdate(s, queue, transfer, slab.address(), kBytes, record.raw));
  }
  record.Destroy();
  // After the capture the queue must run work directly again.
  Bytes last = Pattern(kBytes, 99);
  MGE_RETURN_IF_ERROR(transfer.ToDevice(a, last.data(), kBytes));
  MGE_RETURN_IF_ERROR(queue.Copy(b, a, kBytes));
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), b, kBytes));
  return got == last ? absl::OkStatus() : Broken("after a capture the queue does not run enqueued work");
}

absl::Status CheckPeers(BackendUnderTest& s) {
  const mge_queue_api* api = s.plugin().queue;
  if (!api || !api->copy_peer || !s.plugin().device->link)
    return NotOffered("the backend does not support copies between devices");
  if (s.devices().size() < 2) return NotOffered("the backend shows one device");
  mge_device* other = nullptr;
  MGE_RETURN_IF_ERROR(Call("opening the second device",
                           [&](mge_error* e) { return s.plugin().device->open(s.devices()[1].index, &other, e); }));
  auto link = Sized<mge_link>();
  MGE_RETURN_IF_ERROR(
      Call("asking for a link", [&](mge_error* e) { return s.plugin().device->link(s.device(), other, &link, e); }));
  absl::Status result = NotOffered("the first two devices are no peers");
  if (link.flags & MGE_LINK_PEER) {
    constexpr size_t kBytes = 70'001;
    MGE_ASSIGN_OR_RETURN(Slab here, Slab::Acquire(s, kBytes));
    MGE_ASSIGN_OR_RETURN(Slab back, Slab::Acquire(s, kBytes));
    MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
    auto there = Sized<mge_slab>();
    MGE_RETURN_IF_ERROR(Call("acquiring a slab of the second device", [&](mge_error* e) {
      return s.plugin().memory->slab_acquire(other, MGE_MEMORY_DEVICE, kBytes, &there, e);
    }));
    Bytes want = Pattern(kBytes, 3), zeros(kBytes, 0), got(kBytes);
    MGE_RETURN_IF_ERROR(transfer.ToDevice(here.address(), want.data(), kBytes));
    MGE_RETURN_IF_ERROR(transfer.ToDevice(back.address(), zeros.data(), kBytes));
    MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
    MGE_RETURN_IF_ERROR(Call("copying to a peer", [&](mge_error* e) {
      return api->copy_peer(queue, other, there.address, s.device(), here.address(), kBytes, e);
    }));
    MGE_RETURN_IF_ERROR(Call("copying from a peer", [&](mge_error* e) {
      return api->copy_peer(queue, s.device(), back.address(), other, there.address, kBytes, e);
    }));
    MGE_RETURN_IF_ERROR(transfer.Drain(queue));
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), back.address(), kBytes));
    std::string d = Difference(got, want);
    result = d.empty() ? absl::OkStatus() : Broken("to a peer and back: " + d);
    s.plugin().memory->slab_release(other, &there);
  }
  s.plugin().device->close(other);
  return result;
}

using Stamp = std::unique_ptr<mge_stamp, Destroyer<mge_stamp>>;
absl::StatusOr<Stamp> CreateStamp(BackendUnderTest& s) {
  const mge_profile_api& api = *s.plugin().profile;
  mge_stamp* made = nullptr;
  MGE_RETURN_IF_ERROR(Call("creating a stamp", [&](mge_error* e) { return api.stamp_create(s.device(), &made, e); }));
  if (!made) return Broken("creating a stamp returned MGE_OK, but no stamp");
  return Stamp(made, {api.stamp_destroy, "destroying a stamp"});
}

// Takes two stamps with work of about `time` between them. Compares their difference, in microseconds, with the host's
// clock. Sets `*conclusive` if most of the work remained when the second stamp was enqueued.
absl::Status TrySpan(BackendUnderTest& s, const LongWork& work, std::chrono::milliseconds time, bool* conclusive) {
  using Clock = std::chrono::steady_clock;
  const mge_profile_api* api = s.plugin().profile;
  Stamp stamps[2];
  for (Stamp& stamp : stamps) {
    MGE_ASSIGN_OR_RETURN(stamp, CreateStamp(s));
  }
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  auto stamp = [&](int i) { return Call("stamping", [&](mge_error* e) { return api->stamp(queue, stamps[i].get(), e); }); };
  auto us_since = [](Clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  };
  const Clock::time_point begin = Clock::now();
  MGE_RETURN_IF_ERROR(stamp(0));
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  const Clock::time_point started = Clock::now();
  MGE_RETURN_IF_ERROR(work.Enqueue(queue, time));
  const double enqueuing = us_since(started);
  const Clock::time_point enqueued = Clock::now();
  MGE_RETURN_IF_ERROR(stamp(1));
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  const double remaining = us_since(enqueued), least = remaining / 2, most = us_since(begin);
  *conclusive = remaining > 4 * enqueuing;
  double us = 0;
  MGE_RETURN_IF_ERROR(
      Call("asking for a time", [&](mge_error* e) { return api->elapsed_us(stamps[0].get(), stamps[1].get(), &us, e); }));
  if (us >= least && us <= 2 * most) return absl::OkStatus();  // half and twice: a tolerance between two clocks
  return Broken(
      fmt::format("the time between two stamps with work between them is {} us; by the host's clock it is "
                  "between {:.0f} and {:.0f} us. Take a stamp when the work enqueued before it is done, and "
                  "return microseconds",
                  us, least, most));
}

absl::Status CheckSpan(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(LongWork work, LongWork::Create(s));
  bool conclusive = false;
  for (int round = 0; round < 5 && !conclusive; ++round) {
    MGE_RETURN_IF_ERROR(TrySpan(s, work, std::chrono::milliseconds(40), &conclusive));
  }
  return absl::OkStatus();
}

absl::Status CheckStamps(BackendUnderTest& s) {
  const mge_profile_api* api = s.plugin().profile;
  if (!api) return NotOffered("the backend has no table 'profile': the host times by its own clock");
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 2 << 20));
  Stamp stamps[3];
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  for (Stamp& stamp : stamps) {
    MGE_ASSIGN_OR_RETURN(stamp, CreateStamp(s));
  }
  for (const Stamp& stamp : stamps) {
    MGE_RETURN_IF_ERROR(Call("stamping", [&](mge_error* e) { return api->stamp(queue, stamp.get(), e); }));
    MGE_RETURN_IF_ERROR(queue.Copy(slab.address() + (1 << 20), slab.address(), 1 << 20));
  }
  MGE_RETURN_IF_ERROR(transfer.Drain(queue));
  double first = -1, second = -1, both = -1;
  auto elapsed = [&](int from, int to, double* out) {
    return Call("asking for a time",
                [&](mge_error* e) { return api->elapsed_us(stamps[from].get(), stamps[to].get(), out, e); });
  };
  MGE_RETURN_IF_ERROR(elapsed(0, 1, &first));
  MGE_RETURN_IF_ERROR(elapsed(1, 2, &second));
  MGE_RETURN_IF_ERROR(elapsed(0, 2, &both));
  if (!(first >= 0 && second >= 0)) return Broken(fmt::format("times between stamps are {} and {} us", first, second));
  double sum = first + second;
  if (both < sum * 0.99 - 1 || both > sum * 1.01 + 1)
    return Broken(fmt::format("two spans of {} and {} us are {} us together", first, second, both));
  return CheckSpan(s);
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
absl::Status UseExtras(BackendUnderTest& s, const Fence& fence, unsigned char* memory, uint64_t value) {
  const mge_queue_api& api = *s.plugin().queue;
  const mge_profile_api* profile = s.plugin().profile;
  Capture record{s};
  Stamp stamps[2];
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  for (Stamp& stamp : stamps) {
    if (!profile) break;
    MGE_ASSIGN_OR_RETURN(stamp, CreateStamp(s));
    MGE_RETURN_IF_ERROR(Call("stamping", [&](mge_error* e) { return profile->stamp(queue, stamp.get(), e); }));
  }
  if (api.capture_begin) {
    MGE_RETURN_IF_ERROR(Call("beginning a capture", [&](mge_error* e) { return api.capture_begin(queue, e); }));
    absl::Status copied = queue.Copy(memory + 64, memory, 64);
    MGE_RETURN_IF_ERROR(Call("ending a capture", [&](mge_error* e) { return api.capture_end(queue, &record.raw, e); }));
    MGE_RETURN_IF_ERROR(copied);
    if (!record.raw) return Broken("ending a capture returned MGE_OK, but no record");
    MGE_RETURN_IF_ERROR(Call("replaying", [&](mge_error* e) { return api.replay(queue, record.raw, e); }));
  }
  MGE_RETURN_IF_ERROR(UseQueue(queue, fence, memory, value));
  double us = 0;
  if (!profile) return absl::OkStatus();
  return Call("asking for a time",
              [&](mge_error* e) { return profile->elapsed_us(stamps[0].get(), stamps[1].get(), &us, e); });
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
    return UseExtras(s, fence, slab.address(), 1);
  });
}

constexpr Check kRows[] = {
    {"queue.create", "Queues of every kind can be created and destroyed, several at once.", Needs::kDevice, CheckCreate},
    {"queue.copies", "Copies in every direction write all bytes of the destination, and no others.", Needs::kDevice,
     CheckCopies},
    {"queue.order", "Work on one queue runs in order.", Needs::kDevice, CheckOrder},
    {"queue.destroy", "Destroying a queue waits for its work.", Needs::kDevice, CheckDestroy},
    {"queue.destroy_waits", "Destroying a queue waits for a fence that another queue will signal.", Needs::kDevice,
     CheckDestroyWaits},
    {"queue.capture",
     "Captured copies do not run during the capture, and each replay equals a direct run, also after an update.",
     Needs::kDevice, CheckCapture},
    {"queue.allocations", "Queues, fences, captures and stamps survive every failing allocation.", Needs::kDevice,
     CheckAllocations},
    {"queue.peers", "Copies between peer devices are correct.", Needs::kDevice, CheckPeers},
    {"profile.stamps", "A stamp is taken after the work before it; times are additive and in microseconds.", Needs::kDevice,
     CheckStamps},
};

}  // namespace

std::span<const Check> QueueChecks() { return kRows; }

}  // namespace mge::conform
