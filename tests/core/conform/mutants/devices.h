// SPDX-License-Identifier: Apache-2.0
// Devices, queues (one thread each), fences and memory of the mutants. Device memory is host memory.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mge/plugin.hpp"

extern "C" __attribute__((visibility("hidden"))) const char mge_mutant_name[];
extern "C" __attribute__((visibility("hidden"))) int mge_mutant_open_driver(void);  // 0: opened, or there is no driver

extern "C" __attribute__((visibility("hidden"))) void mge_mutant_driver_works(void);

namespace mutant {

using mge::Result;

// Checks whether this library is the mutant `name` of mutants.txt.
inline bool Is(std::string_view name) { return name == mge_mutant_name; }

constexpr uint64_t kMemoryTotal = uint64_t{8} << 30;

class Device {
 public:
  static Result List(mge::DeviceList& list) {
    for (int i = 0; i < 2; ++i) {
      const bool apart = Is("device_leak") || Is("host_address_lies");  // the kit measures their memory
      const uint32_t memory = apart ? 0u : uint32_t{MGE_DEVICE_HOST_ACCESSIBLE};
      list.Add({.name = Is("nameless_device") ? "" : "Mutant " + std::to_string(i),
                .flags = MGE_DEVICE_ONLY_BY_NAME | memory,
                .memory_total = kMemoryTotal / (Is("total_in_kib") || Is("totals_in_kib") ? 1024 : 1)});
    }
    return {};
  }
  explicit Device(uint32_t index) : index_(index) {}
  ~Device() {
    if (!Is("leak_at_stop")) mge::Host()->release(mge::Host()->self, notes_);
  }
  Result Init() {
    if (index_ > 1) return {MGE_NOT_FOUND, "there are two devices, 0 and 1"};
    if (Is("opens_nothing")) return {MGE_INTERNAL, "the device does not answer"};
    if (mge_mutant_open_driver() != 0) return {MGE_INTERNAL, "the driver is out of order"};
    if (Is("noisy_driver")) mge_mutant_driver_works();
    if (Is("crashes_without_memory")) {
      auto* checked = static_cast<volatile char*>(std::malloc(100));
      checked[0] = 1;
      std::free(const_cast<char*>(checked));
    }
    notes_ = static_cast<char*>(mge::Host()->allocate(mge::Host()->self, 100, 64));
    if (!notes_ && !Is("no_null_check")) return {MGE_RESOURCE_EXHAUSTED, "the host has no memory"};
    notes_[0] = 1;
    return {};
  }
  Result Health() {
    if (!lost) return {};
    if (Is("lost_for_a_while")) lost = false;
    return {MGE_DEVICE_LOST, "the device was lost on demand"};
  }
  Result Link(Device&, mge::LinkInfo* out) {
    out->peer = true;
    return {};
  }
  std::atomic<bool> lost = false;
  std::atomic<int> compute_queues = 0;

 private:
  uint32_t index_;
  char* notes_ = nullptr;
};

// The state that a fence shares with its waiters.
struct Counter {
  std::mutex mutex;
  std::condition_variable changed;
  uint64_t value = 0;
  uint64_t latest = 0;  // the latest value whose signal was enqueued
  mge_code code = MGE_OK;
  std::string text;
  bool gone = false;  // the fence was destroyed
  bool over(uint64_t wanted) const { return value >= wanted || code != MGE_OK; }
};

// Memory that enqueued work uses, for the mutant "works_later", whose queues work late.
// Ends the process if such memory is released, or a fence destroyed, before the work is done.
class Use {
 public:
  Use(const void* begin, uint64_t bytes) : begin_(static_cast<const char*>(begin)), bytes_(bytes) {
    std::lock_guard lock(mutex);
    all.push_back(this);
  }
  ~Use() {
    std::lock_guard lock(mutex);
    all.remove(this);
  }
  static std::shared_ptr<Use> Of(const void* begin, uint64_t bytes) {
    return Is("works_later") ? std::make_shared<Use>(begin, bytes) : nullptr;
  }
  static void Released(const void* memory, uint64_t bytes) {
    auto* begin = static_cast<const char*>(memory);
    std::lock_guard lock(mutex);
    for (const Use* use : all) {
      if (use->begin_ < begin + bytes && begin < use->begin_ + use->bytes_) std::abort();
    }
  }
  // Sleeps for `most` milliseconds if the fence has been reached or has failed, else for one.
  static void ComesLate(Counter& counter, uint64_t value, int most) {
    if (!Is("works_later")) return;
    std::unique_lock lock(counter.mutex);
    const auto late = std::chrono::milliseconds(counter.over(value) ? most : 1);
    lock.unlock();
    std::this_thread::sleep_for(late);
    lock.lock();
    if (counter.gone) std::abort();
  }

 private:
  static inline std::mutex mutex;
  static inline std::list<const Use*> all;
  const char* begin_;
  uint64_t bytes_;
};

class Fence {
 public:
  explicit Fence(Device&) {}
  ~Fence() {
    std::lock_guard lock(counter->mutex);
    counter->gone = true;
  }
  Result HostWait(uint64_t value, uint64_t timeout_ns) {
    std::unique_lock lock(counter->mutex);
    if (Is("one_event")) value = std::max(value, counter->latest);
    auto over = [&] { return counter->over(Is("fence_off_by_one") ? value - 1 : value); };
    if (Is("ignores_timeout")) counter->changed.wait(lock, over);
    auto limit = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, UINT64_C(3600'000'000'000)));
    if (!counter->changed.wait_for(lock, limit, over)) return {MGE_DEADLINE_EXCEEDED, "the fence was not reached in time"};
    if (Is("fence_off_by_one") && counter->value + 1 == value) return {};
    return counter->value >= value ? Result() : Result(counter->code, counter->text);
  }
  std::shared_ptr<Counter> counter = std::make_shared<Counter>();
};

using Work = std::function<Result()>;
struct Record {
  std::vector<Work> works;
};

class Queue {
 public:
  Queue(Device& device, int32_t kind) : device_(device), kind_(kind) {}
  Result Init() {
    if (Result r = device_.Health(); !r.ok()) return r;
    if (kind_ < MGE_QUEUE_COMPUTE || kind_ > MGE_QUEUE_COMMUNICATION) return {MGE_UNIMPLEMENTED, "an unknown kind of queue"};
    if (kind_ == MGE_QUEUE_COMPUTE) number_ = ++device_.compute_queues;
    thread_ = std::thread([this] { Loop(); });
    return {};
  }
  ~Queue() {
    if (number_) --device_.compute_queues;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  Result Enqueue(Work work) {
    std::lock_guard lock(mutex_);
    if (fail_next_.code() != MGE_OK) {
      work = [failure = fail_next_] { return failure; };
      fail_next_ = {};
    }
    if (capture_) {
      capture_->works.push_back(work);
      if (!Is("capture_runs")) return {};
    }
    Push([this, work = std::move(work)] {
      if (failure_.ok()) failure_ = work();
    });
    return {};
  }
  Result Copy(void* to, const void* from, uint64_t bytes) {
    if (Is("copy_too_short") && bytes > 64) --bytes;
    if (Is("copies_words")) bytes = bytes / 4 * 4;
    if (Is("copies_megabytes") && bytes > (1 << 20)) bytes = 1 << 20;
    if (Is("copies_at_once")) return std::memmove(to, from, bytes), Result();
    if (Is("capture_stale") && Capturing()) {
      std::vector<char> data(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
      return Enqueue([=] {
        std::memcpy(to, data.data(), bytes);
        return Result();
      });
    }
    if (Is("copy_unordered") && bytes > 100'000 && bytes < 1'000'000) {
      return Enqueue([=, this] {
        late_.emplace_back([=] {
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          std::memmove(to, from, bytes);
        });
        return Result();
      });
    }
    bool slow = Is("fence_ahead");
    return Enqueue([=, read = Use::Of(from, bytes), written = Use::Of(to, bytes)] {
      if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      std::memmove(to, from, bytes);
      return Result();
    });
  }
  Result CopyPeer(Device&, void* to, Device&, const void* from, uint64_t bytes) { return Copy(to, from, bytes); }
  Result Signal(Fence& fence, uint64_t value) {
    auto signal = [this, value, counter = fence.counter] {
      Use::ComesLate(*counter, value, 20);
      for (std::thread& t : late_) t.join();
      late_.clear();
      std::lock_guard lock(counter->mutex);
      if (failure_.ok() || Is("failure_lost")) {
        counter->value = Is("fence_counts_signals") ? counter->value + 1 : value;
      } else {
        counter->code = failure_.code();
        counter->text = Is("failure_text_lost") ? "it failed" : failure_.text();
        if (Is("failure_forgotten")) failure_ = {};
      }
      counter->changed.notify_all();
    };
    if (Is("fence_ahead")) return signal(), Result();
    if (Is("works_later")) {
      void* note = mge::Host()->allocate(mge::Host()->self, 64, 64);
      if (!note) return {MGE_RESOURCE_EXHAUSTED, "the host has no memory"};
      mge::Host()->release(mge::Host()->self, note);
    }
    std::lock_guard lock(mutex_);
    Push(signal);
    std::lock_guard fence_lock(fence.counter->mutex);
    fence.counter->latest = value;
    return {};
  }
  Result Wait(Fence& fence, uint64_t value) {
    if (Is("ignores_wait")) return {};
    if (Is("copy_out_ignores_wait") && kind_ == MGE_QUEUE_COPY_OUT) return {};
    if (Is("copy_in_ignores_wait") && kind_ == MGE_QUEUE_COPY_IN) return {};
    if (Is("communication_ignores_wait") && kind_ == MGE_QUEUE_COMMUNICATION) return {};
    if (Is("second_ignores_wait") && kind_ == MGE_QUEUE_COMPUTE && number_ > 1) return {};
    std::lock_guard lock(mutex_);
    Push([this, value, counter = fence.counter] {
      Use::ComesLate(*counter, value, waits_ = std::min(waits_ + 1, 20));
      std::unique_lock lock(counter->mutex);
      auto cancelled = [&] { return stopping_ && Is("cancels_waits"); };
      auto over = [&] { return counter->over(value) && !(Is("waits_for_ever") && counter->code != MGE_OK); };
      while (!over() && !cancelled()) counter->changed.wait_for(lock, std::chrono::milliseconds(2));
      if (!over()) failure_ = {MGE_CANCELLED, "the queue ends"};
    });
    return {};
  }
  Result CaptureBegin() {
    std::lock_guard lock(mutex_);
    if (capture_) return {MGE_FAILED_PRECONDITION, "the queue captures already"};
    capture_ = std::make_unique<Record>();
    return {};
  }
  Result CaptureEnd(Record** out) {
    std::lock_guard lock(mutex_);
    if (!capture_) return {MGE_FAILED_PRECONDITION, "no capture was begun"};
    *out = capture_.release();
    return {};
  }
  Result Replay(Record& record) {
    for (const Work& work : record.works) (void)Enqueue(work);
    if (Is("replays_once")) record.works.clear();
    if (Is("replays_backwards")) std::reverse(record.works.begin(), record.works.end());
    return {};
  }
  Result CaptureUpdate(Record& record) {
    Record* updated = nullptr;
    if (Result r = CaptureEnd(&updated); !r.ok()) return r;
    if (!Is("update_forgotten")) record = std::move(*updated);
    delete updated;
    return {};
  }
  void FailNext(mge_code code, std::string text) {
    std::lock_guard lock(mutex_);
    fail_next_ = {code, std::move(text)};
  }
  void Mark(std::shared_ptr<std::atomic<int64_t>> time) {
    auto mark = [time] { *time = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); };
    if (Is("stamps_at_once")) return mark();
    std::lock_guard lock(mutex_);
    Push(mark);
  }
  bool Capturing() {
    std::lock_guard lock(mutex_);
    return capture_ != nullptr;
  }

 private:
  void Push(std::function<void()> item) {
    items_.push_back(std::move(item));
    changed_.notify_all();
  }
  void Loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || !items_.empty(); });
      if (items_.empty() || (stopping_ && Is("drops_work"))) break;
      std::function<void()> item = std::move(items_.front());
      items_.pop_front();
      lock.unlock();
      item();
      lock.lock();
    }
    for (std::thread& t : late_) t.join();
  }
  Device& device_;
  int32_t kind_;
  int number_ = 0;  // the number of this compute queue among those of the device; 0: another kind
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> items_;
  std::unique_ptr<Record> capture_;
  Result fail_next_, failure_;  // failure_ is used by the queue's thread only
  int waits_ = 0;               // used by the queue's thread only
  std::vector<std::thread> late_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

class Stamp {
 public:
  explicit Stamp(Device&) {}
  Result Take(Queue& queue) { return queue.Mark(time_), Result(); }
  static Result ElapsedUs(Stamp& from, Stamp& to, double* out) {
    if (Is("stamps_backwards")) return *out = static_cast<double>(*from.time_ - *to.time_) / 1e3, Result();
    *out = static_cast<double>(*to.time_ - *from.time_) / (Is("stamps_in_ns") ? 1 : Is("stamps_in_ms") ? 1e6 : 1e3);
    return {};
  }

 private:
  std::shared_ptr<std::atomic<int64_t>> time_ = std::make_shared<std::atomic<int64_t>>(0);
};

inline void* const kNowhere = reinterpret_cast<void*>(uintptr_t{64});

struct Memory {
  static Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
    if (Result r = device.Health(); !r.ok()) return r;
    if (bytes > uint64_t{1} << 40)
      return {Is("too_much_is_internal") ? MGE_INTERNAL : MGE_RESOURCE_EXHAUSTED, "no machine has as much memory"};
    if (Is("pinned_leak") && memory_class == MGE_MEMORY_PINNED) {
      void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      *out = mge::MakeSlab(memory_class, bytes, pages, pages, new std::list<Held>(1));
      return {};
    }
    auto held = std::make_unique<std::list<Held>>(1);
    char* base = held->front().Take(bytes);
    if (!base) return {MGE_RESOURCE_EXHAUSTED, "the system gives no more memory"};
    char* address = base + (Is("slab_misaligned") ? 16 : 0);
    const bool lies = Is("host_address_lies") && memory_class == MGE_MEMORY_DEVICE;
    *out = mge::MakeSlab(memory_class, Is("slabs_say_less") ? bytes - 1 : bytes, address, lies ? kNowhere : address,
                         held.release());
    Sweep();
    return {};
  }
  static void Release(Device&, const mge_slab& slab) {
    Use::Released(slab.address, slab.bytes);
    delete static_cast<std::list<Held>*>(slab.handle);
  }
  static mge::MemoryAmount Info(Device&) {
    const uint64_t total = kMemoryTotal / (Is("totals_in_kib") ? 1024 : 1);
    if (Is("more_free_than_total")) return {total + 1, total};
    return {total - std::min<uint64_t>(in_use, total), total};
  }
  static inline std::atomic<uint64_t> in_use = 0;
  // The extension mge/memory_handles.h: a handle is that of a slab.
  static Result Wrap(Device&, void* handle, uint64_t bytes, mge_slab* out) {
    char* address = static_cast<std::list<Held>*>(handle)->front().base + (Is("wraps_elsewhere") ? 128 : 0);
    *out = mge::MakeSlab(MGE_MEMORY_DEVICE, bytes, address, nullptr, handle);
    return {};
  }
  static void Unwrap(Device&, const mge_slab&) {}
  static void ReleaseAfter(Device& device, const mge_slab& slab, const mge_fence_point& last_use) {
    if (Is("released_at_once")) {
      std::memset(slab.address, 0xdd, slab.bytes);
      return Release(device, slab);
    }
    if (Is("release_needs_memory")) ::operator delete(::operator new(100));
    std::unique_ptr<std::list<Held>> held(static_cast<std::list<Held>*>(slab.handle));
    held->front().counter = mge::internal::As<Fence>(last_use.fence).counter;
    held->front().value = last_use.value;
    {
      std::lock_guard lock(waiting_mutex);
      waiting.splice(waiting.end(), *held);
    }
    Sweep();
  }
  // Frees the slabs of ReleaseAfter() whose fence has been reached.
  static void Sweep() {
    std::lock_guard lock(waiting_mutex);
    waiting.remove_if([](const Held& held) {
      std::lock_guard lock(held.counter->mutex);
      const bool over = held.counter->over(held.value);
      if (!over && held.counter->gone && Is("works_later")) std::abort();
      return over;
    });
  }

 private:
  // A slab. It is allocated as a list of one element, so that moving it to `waiting` needs no memory.
  struct Held {
    char* Take(uint64_t wanted) {
      base = static_cast<char*>(std::aligned_alloc(128, (wanted + 255) / 128 * 128));
      if (base) in_use += bytes = wanted;
      return base;
    }
    ~Held() {
      std::free(base);
      in_use -= bytes;
    }
    char* base = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<Counter> counter;
    uint64_t value = 0;
  };
  static inline std::mutex waiting_mutex;
  static inline std::list<Held> waiting;
};

}  // namespace mutant
