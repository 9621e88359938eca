// SPDX-License-Identifier: Apache-2.0
// The host's side of a stream: enqueues work. stream_thread.cc runs it.
#include "plugins/gpu/software/stream.h"

#include <cstring>
#include <string>
#include <utility>

#include "plugins/gpu/software/address.h"

namespace mge::software {

Stream::Stream(SoftwareDevice& device, Kind kind)
    : device_(device), kind_(kind), kernel_fault_(std::make_shared<gpu::Fault>()), ring_(64) {
  // allocated in advance, so that a run does not allocate
  for (std::unique_ptr<Task>& task : ring_) task = std::make_unique<Task>();
  thread_ = std::thread([this] { Work(); });
}

Stream::~Stream() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

template <typename F>
Result Stream::Push(Task::Kind kind, F&& fill) {
  if (Result r = device_.Health(); !r.ok()) return r;
  bool recordable = kind == Task::Kind::kCopy || kind == Task::Kind::kFill || kind == Task::Kind::kLaunch;
  std::lock_guard lock(mutex_);
  if (!no_memory_) no_memory_ = std::make_shared<Failure>(MGE_RESOURCE_EXHAUSTED, "the host has no memory for its work");
  Task* task = nullptr;
  if (capture_) {
    if (!recordable) return {MGE_FAILED_PRECONDITION, "only copies, fills and kernels can be captured"};
    task = &capture_->tasks.emplace_back();
  } else {
    if (count_ == ring_.size()) {  // the first task is running: it must not move, but its pointer may
      std::vector<std::unique_ptr<Task>> wider(2 * count_);
      for (size_t i = 0; i < count_; ++i) wider[i] = std::move(ring_[(head_ + i) % count_]);
      ring_ = std::move(wider);
      head_ = 0;
    }
    std::unique_ptr<Task>& slot = ring_[(head_ + count_) % ring_.size()];
    if (!slot) slot = std::make_unique<Task>();
    task = slot.get();
  }
  task->kind = kind;
  if (recordable) task->demanded = std::move(fail_next_);
  fill(*task);
  if (capture_) return {};
  if (count_++ == 0) changed_.notify_all();
  return {};
}

// Checks one end of a copy. `owner` is the device that must own the memory; null allows host memory.
Result Stream::CheckEnd(SoftwareDevice* owner, const void* address, uint64_t bytes, const char* what) const {
  if (!IsDeviceAddress(address)) {
    if (!owner && address) return {};
    return {MGE_INVALID_ARGUMENT, std::string(what) + (address ? " is not memory of " + owner->name() : " is null")};
  }
  SoftwareDevice& device = owner ? *owner : device_;
  if (device.memory().Find(address, bytes)) return {};
  return {MGE_INVALID_ARGUMENT,
          std::string(what) + ": " + std::to_string(bytes) + " bytes there are not memory of " + device.name()};
}

Result Stream::Copy(void* destination, const void* source, uint64_t bytes) {
  if (bytes == 0) return device_.Health();
  bool in = IsDeviceAddress(destination), out = IsDeviceAddress(source);
  if (!in && !out) return {MGE_INVALID_ARGUMENT, "neither end of the copy is memory of " + device_.name()};
  if (Result r = CheckEnd(nullptr, destination, bytes, "the destination of the copy"); !r.ok()) return r;
  if (Result r = CheckEnd(nullptr, source, bytes, "the source of the copy"); !r.ok()) return r;
  return Push(Task::Kind::kCopy, [&](Task& task) {
    task.to = in ? &device_ : nullptr;
    task.from = out ? &device_ : nullptr;
    task.destination = destination;
    task.source = source;
    task.bytes = bytes;
  });
}

Result Stream::CopyPeer(SoftwareDevice& to, void* destination, SoftwareDevice& from, const void* source, uint64_t bytes) {
  if (&device_ != &to && &device_ != &from) {
    return {MGE_INVALID_ARGUMENT, "the queue belongs to neither " + to.name() + " nor " + from.name()};
  }
  if (&to != &from && !from.LinkTo(to).peer) {
    return {MGE_FAILED_PRECONDITION, from.name() + " and " + to.name() + " are not linked as peers"};
  }
  if (Result r = to.Health(); !r.ok()) return r;
  if (Result r = from.Health(); !r.ok()) return r;
  if (bytes == 0) return {};
  if (Result r = CheckEnd(&to, destination, bytes, "the destination of the copy"); !r.ok()) return r;
  if (Result r = CheckEnd(&from, source, bytes, "the source of the copy"); !r.ok()) return r;
  return Push(Task::Kind::kCopy, [&](Task& task) {
    task.to = &to;
    task.from = &from;
    task.destination = destination;
    task.source = source;
    task.bytes = bytes;
  });
}

Result Stream::Fill(void* destination, int byte, uint64_t bytes) {
  if (bytes == 0) return device_.Health();
  if (Result r = CheckEnd(&device_, destination, bytes, "the destination of the fill"); !r.ok()) return r;
  return Push(Task::Kind::kFill, [&](Task& task) {
    task.to = &device_;
    task.from = nullptr;
    task.destination = destination;
    task.bytes = bytes;
    task.byte = byte;
  });
}

Result Stream::Launch(const gpu::Launch& launch) {
  if (kind_ != Kind::kCompute) return {MGE_INVALID_ARGUMENT, "a copy queue cannot run kernels"};
  if (launch.kernel >= gpu::KernelCount()) {
    return {MGE_INVALID_ARGUMENT, "there is no kernel number " + std::to_string(launch.kernel)};
  }
  if (launch.args_bytes > gpu::kMaxArgsBytes) {
    return {MGE_INVALID_ARGUMENT, "the kernel " + std::string(gpu::KernelName(launch.kernel)) + " has " +
                                      std::to_string(launch.args_bytes) + " bytes of arguments, more than " +
                                      std::to_string(gpu::kMaxArgsBytes)};
  }
  return Push(Task::Kind::kLaunch, [&](Task& task) {
    task.launch = launch;
    task.launch.args = nullptr;
    task.args.resize((launch.args_bytes + sizeof(Task::ArgsBlock) - 1) / sizeof(Task::ArgsBlock));
    if (!task.args.empty()) task.args.back() = {};  // a reused task must not pass on words of an earlier launch
    std::memcpy(task.args.data(), launch.args, launch.args_bytes);
    task.kernel_fault = kernel_fault_;
  });
}

Result Stream::Call(std::shared_ptr<HostWork> work, const HostWorkCall& call) {
  if (Result r = CheckEnd(&device_, call.destination, call.bytes, "the destination"); !r.ok()) return r;
  if (Result r = CheckEnd(&device_, call.source, call.bytes, "the source"); !r.ok()) return r;
  return Push(Task::Kind::kHostWork, [&](Task& task) {
    task.work = std::move(work);
    task.destination = call.destination;
    task.source = call.source;
    task.bytes = call.bytes;
  });
}

void Stream::FailNext(mge_code code, std::string text) {
  std::lock_guard lock(mutex_);
  fail_next_ = std::make_shared<Failure>(code, std::move(text));
}

Result Stream::Signal(std::shared_ptr<Event> event, uint64_t value) {
  if (Result r = event->CheckSignal(value); !r.ok()) return r;
  return Push(Task::Kind::kSignal, [&](Task& task) {
    event->Announce(value);
    task.event = std::move(event);
    task.value = value;
  });
}

Result Stream::Wait(std::shared_ptr<Event> event, uint64_t value) {
  if (Result r = event->CheckWait(value); !r.ok()) return r;
  return Push(Task::Kind::kWait, [&](Task& task) {
    task.event = std::move(event);
    task.value = value;
  });
}

Result Stream::Mark(std::shared_ptr<Stamp> stamp) {
  return Push(Task::Kind::kMark, [&](Task& task) { task.stamp = std::move(stamp); });
}

Result Stream::BeginCapture() {
  if (Result r = device_.Health(); !r.ok()) return r;
  std::lock_guard lock(mutex_);
  if (capture_) return {MGE_FAILED_PRECONDITION, "the queue is already being captured"};
  capture_ = std::make_unique<Record>();
  capture_->device = &device_;
  return {};
}

Result Stream::EndCapture(std::shared_ptr<const Record>* out) {
  std::lock_guard lock(mutex_);
  if (!capture_) return {MGE_FAILED_PRECONDITION, "the queue is not being captured"};
  std::unique_ptr<Record> record = std::move(capture_);
  *out = std::move(record);
  return device_.Health();
}

Result Stream::Replay(std::shared_ptr<const Record> record) {
  if (record->device != &device_) {
    return {MGE_INVALID_ARGUMENT, "the record is of " + record->device->name() + ", the queue of " + device_.name()};
  }
  return Push(Task::Kind::kReplay, [&](Task& task) { task.record = std::move(record); });
}

}  // namespace mge::software
