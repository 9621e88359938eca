// SPDX-License-Identifier: Apache-2.0
// The device's side of a stream: its thread.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "plugins/gpu/software/address.h"
#include "plugins/gpu/software/stream.h"

namespace mge::software {
namespace {

// A sleeping thread wakes up to this much too late, so it waits actively for the last part.
constexpr std::chrono::microseconds kAwake{60};

// Launches with fewer threads are not split over helper threads.
constexpr uint64_t kWorthSharing = 1 << 14;

}  // namespace

void Stream::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return count_ || stop_; });
    if (!count_) return;
    Task& task = *ring_[head_];
    lock.unlock();
    Run(task);
    std::shared_ptr<Event> event = task.event;  // may be the last reference: must not be destroyed under the lock
    lock.lock();
    task.Clear();
    head_ = (head_ + 1) % ring_.size();
    --count_;
    if (!event) continue;
    lock.unlock();
    event = nullptr;
    lock.lock();
  }
}

void Stream::Run(const Task& task) {
  try {
    RunOrThrow(task);
  } catch (const std::bad_alloc&) {
    std::lock_guard lock(mutex_);
    failure_ = std::move(no_memory_);
  }
}

void Stream::RunOrThrow(const Task& task) {
  if (FailurePtr lost = device_.lost()) failure_ = std::move(lost);
  switch (task.kind) {
    case Task::Kind::kSignal: task.event->Signal(task.value, failure_, *kernel_fault_); return;
    case Task::Kind::kMark: *task.stamp = Clock::now().time_since_epoch().count(); return;
    case Task::Kind::kReplay:
      for (const Task& recorded : task.record->tasks) Run(recorded);
      return;
    case Task::Kind::kHostWork:
      if (failure_) return;
      if (Result r = RunHostWork(task); !r.ok()) {
        failure_ = std::make_shared<Failure>(r.code(), device_.name() + ": " + r.text());
      }
      return;
    case Task::Kind::kWait: task.event->Wait(task.value); return;
    default:
      if (!failure_) failure_ = Attempt(task);
  }
}

FailurePtr Stream::Hang() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stop_; });
  return std::make_shared<Failure>(MGE_CANCELLED,
                                   "a queue of " + device_.name() + " was destroyed before its work could be done");
}

void Stream::SleepUntil(Clock::time_point end) {
  if (end - Clock::now() > kAwake) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, end - kAwake, [&] { return stop_; })) return;
  }
  while (Clock::now() < end) std::this_thread::yield();
}

FailurePtr Stream::Attempt(const Task& task) {
  if (task.demanded) return task.demanded;
  bool kernel = task.kind == Task::Kind::kLaunch;
  const FaultRule* fault = device_.faults().Next(kernel ? Operation::kKernel : Operation::kCopy);
  auto what = [&] { return kernel ? "the kernel " + std::string(gpu::KernelName(task.launch.kernel)) : "a copy"; };
  if (fault) {
    switch (fault->effect) {
      case Effect::kSlow: SleepUntil(Clock::now() + fault->delay); break;
      case Effect::kHang: return Hang();
      case Effect::kLost: return device_.MarkLost("the fault " + fault->text + " occurred at " + what());
      default:
        return std::make_shared<Failure>(MGE_INTERNAL,
                                         device_.name() + ": " + what() + " fails, as the fault " + fault->text + " asks");
    }
  }
  Result r = kernel ? Compute(task) : Move(task);
  return r.ok() ? nullptr : std::make_shared<Failure>(r.code(), device_.name() + ": " + what() + ": " + r.text());
}

Result Stream::Move(const Task& task) {
  Clock::time_point begin = Clock::now();
  Pin to_pin, from_pin;  // the memory may be freed meanwhile
  void* destination = task.destination;
  const void* source = task.source;
  if (task.to) {
    to_pin = task.to->memory().Find(destination, task.bytes);
    if (!to_pin) return {MGE_INVALID_ARGUMENT, "the destination was freed"};
    destination = ToMapped(destination);
  }
  if (task.from) {
    from_pin = task.from->memory().Find(source, task.bytes);
    if (!from_pin) return {MGE_INVALID_ARGUMENT, "the source was freed"};
    source = ToMapped(source);
  }
  if (task.kind == Task::Kind::kFill) {
    std::memset(destination, task.byte, task.bytes);
    return {};
  }
  std::memmove(destination, source, task.bytes);

  Clock::duration duration{};
  Channel* channel = nullptr;
  if (task.to == task.from) return {};  // as fast as the device's memory
  if (task.to && task.from) {
    const Link& link = task.from->LinkTo(*task.to);
    duration = SoftwareDevice::Duration(task.bytes, link.bandwidth_gb_s, link.latency_us);
    channel = &task.to->from_peer(task.from->options().number);
  } else {
    const DeviceOptions& options = device_.options();
    duration = SoftwareDevice::Duration(task.bytes, options.bandwidth_gb_s, options.latency_us);
    channel = task.to ? &device_.from_host() : &device_.to_host();
  }
  if (duration <= Clock::now() - begin) return {};
  SleepUntil(channel->Occupy(begin, duration));
  return {};
}

Result Stream::RunHostWork(const Task& task) {
  const Pin to = device_.memory().Find(task.destination, task.bytes), from = device_.memory().Find(task.source, task.bytes);
  if (!to || !from) return {MGE_INVALID_ARGUMENT, "the memory of an operation was freed"};
  return task.work->Run({ToMapped(task.destination), ToMapped(task.source), task.bytes});
}

Result Stream::Compute(const Task& task) {
  if (double us = device_.options().launch_latency_us; us > 0) SleepUntil(Clock::now() + SoftwareDevice::Duration(0, 0, us));
  // Replaces every aligned word that is a device address by the address of its mapping.
  args_.assign(task.args.begin(), task.args.end());
  pins_.clear();
  for (Task::ArgsBlock& block : args_) {
    for (uint64_t& word : block.words) {
      if (!IsDeviceAddress(word)) continue;
      auto* address = reinterpret_cast<void*>(word);
      Pin pin = device_.memory().Find(address, 0);
      if (!pin) return {MGE_INVALID_ARGUMENT, "one of its arguments is an address that is not memory of this device"};
      word = reinterpret_cast<uint64_t>(ToMapped(address));
      pins_.push_back(std::move(pin));
    }
  }
  gpu::Launch launch = task.launch;
  launch.args = args_.data();
  Result r = RunBlocks(launch);
  pins_.clear();
  return r;
}

void Stream::RunPart(const gpu::Launch& launch, uint64_t first, uint64_t count) {
  Multiprocessor* taken = nullptr;
  {
    std::lock_guard lock(multiprocessors_mutex_);
    for (auto& m : multiprocessors_) {
      if (m->busy) continue;
      if (!taken || m->last == std::this_thread::get_id()) taken = m.get();
    }
    bool mine = taken && taken->last == std::this_thread::get_id();
    if (!taken || (!mine && multiprocessors_.size() < device_.options().helpers.width)) {
      auto fresh = std::make_unique<Multiprocessor>();
      fresh->emulator = std::make_unique<gpu::Emulator>(device_.options().emulator);
      multiprocessors_.push_back(std::move(fresh));
      taken = multiprocessors_.back().get();
    }
    taken->busy = true;
    taken->last = std::this_thread::get_id();
  }
  struct GiveBack {
    Stream& stream;
    Multiprocessor& taken;
    ~GiveBack() {
      std::lock_guard lock(stream.multiprocessors_mutex_);
      taken.busy = false;
    }
  } give_back{*this, *taken};
  if (taken->emulator->Run(launch, first, count)) return;
  std::lock_guard lock(multiprocessors_mutex_);
  if (launch_error_.empty()) launch_error_ = taken->emulator->error();
}

Result Stream::RunBlocks(const gpu::Launch& launch) {
  const Helpers& helpers = device_.options().helpers;
  uint64_t blocks = gpu::Emulator::BlockCount(launch);
  uint64_t threads = blocks * launch.block[0] * launch.block[1] * launch.block[2];
  launch_error_.clear();
  if (!helpers.parallel_for || helpers.width <= 1 || threads < kWorthSharing) {
    RunPart(launch, 0, blocks);
  } else {
    struct Job {
      Stream* stream;
      const gpu::Launch& launch;
      uint64_t blocks, parts;
    } job = {this, launch, blocks, std::min<uint64_t>(blocks, 2 * helpers.width)};
    helpers.parallel_for(
        helpers.self, job.parts,
        [](void* context, uint64_t part) {
          auto& j = *static_cast<Job*>(context);
          uint64_t first = j.blocks * part / j.parts;
          Stream& stream = *j.stream;
          try {
            stream.RunPart(j.launch, first, j.blocks * (part + 1) / j.parts - first);
          } catch (const std::bad_alloc&) {
            std::lock_guard lock(stream.multiprocessors_mutex_);
            stream.launch_lacked_memory_ = true;
          }
        },
        &job);
    if (std::exchange(launch_lacked_memory_, false)) throw std::bad_alloc();
  }
  return launch_error_.empty() ? Result() : Result{MGE_INTERNAL, launch_error_};
}

}  // namespace mge::software
