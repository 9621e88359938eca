// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/software/device.h"

#include <algorithm>
#include <thread>

namespace mge::software {
namespace {

// Returns the options with the link to the host from the matrix, if the matrix contains it.
DeviceOptions WithWayToHost(DeviceOptions options) {
  if (const Link* link = options.links.to_host(options.number)) {
    options.bandwidth_gb_s = link->bandwidth_gb_s;
    options.latency_us = link->latency_us;
  }
  return options;
}

}  // namespace

Clock::time_point Channel::Occupy(Clock::time_point begin, Clock::duration duration) {
  std::lock_guard lock(mutex_);
  free_at_ = std::max(free_at_, begin) + duration;
  return free_at_;
}

SoftwareDevice::SoftwareDevice(DeviceOptions options)
    : options_(WithWayToHost(std::move(options))),
      memory_(options_.memory_bytes, options_.poison),
      faults_(options_.faults, options_.number) {}

Result SoftwareDevice::CountAllocation() {
  if (Result r = Health(); !r.ok()) return r;
  const FaultRule* fault = faults_.Next(Operation::kAllocation);
  if (!fault) return {};
  switch (fault->effect) {
    case Effect::kSlow: std::this_thread::sleep_for(fault->delay); return {};
    case Effect::kLost: MarkLost("the fault " + fault->text); return Health();
    default: return {MGE_RESOURCE_EXHAUSTED, name() + " fails the allocation, as the fault " + fault->text + " asks"};
  }
}

Result SoftwareDevice::Allocate(uint64_t bytes, void** out) {
  if (Result r = CountAllocation(); !r.ok()) return r;
  Result r = memory_.Allocate(bytes, out);
  return r.ok() ? r : Result{r.code(), name() + ": " + r.text()};
}

Result SoftwareDevice::Commit(const void* range, uint64_t offset, uint64_t bytes) {
  if (Result r = CountAllocation(); !r.ok()) return r;
  Result r = memory_.Commit(range, offset, bytes);
  return r.ok() ? r : Result{r.code(), name() + ": " + r.text()};
}

std::shared_ptr<Event> SoftwareDevice::MakeEvent() {
  auto event = std::make_shared<Event>();
  std::lock_guard lock(mutex_);
  if (lost_) event->MarkLost(lost_);
  if (events_.size() == events_.capacity()) {
    std::erase_if(events_, [](const std::weak_ptr<Event>& e) { return e.expired(); });
    events_.reserve(std::max<size_t>(16, 2 * events_.size()));
  }
  events_.push_back(event);
  return event;
}

FailurePtr SoftwareDevice::lost() const {
  std::lock_guard lock(mutex_);
  return lost_;
}

Result SoftwareDevice::Health() const {
  FailurePtr failure = lost();
  return failure ? Result{failure->code, failure->text} : Result{};
}

FailurePtr SoftwareDevice::MarkLost(std::string_view why) {
  std::lock_guard lock(mutex_);
  if (!lost_) {
    lost_ = std::make_shared<Failure>(MGE_DEVICE_LOST, name() + " is lost: " + std::string(why));
    for (const std::weak_ptr<Event>& weak : events_) {
      if (std::shared_ptr<Event> event = weak.lock()) event->MarkLost(lost_);
    }
  }
  return lost_;
}

const Link& SoftwareDevice::LinkTo(const SoftwareDevice& to) const {
  static const Link memory;
  if (options_.links.size() == 0) return memory;
  return options_.links.at(options_.number, to.options_.number);
}

Clock::duration SoftwareDevice::Duration(uint64_t bytes, double bandwidth_gb_s, double latency_us) {
  double ns = latency_us * 1e3;
  if (bandwidth_gb_s > 0) ns += static_cast<double>(bytes) / bandwidth_gb_s;
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::nano>(ns));
}

Channel& SoftwareDevice::from_peer(int number) {
  std::lock_guard lock(mutex_);
  auto index = static_cast<size_t>(number);
  if (from_peers_.size() <= index) from_peers_.resize(index + 1);
  if (!from_peers_[index]) from_peers_[index] = std::make_unique<Channel>();
  return *from_peers_[index];
}

}  // namespace mge::software
