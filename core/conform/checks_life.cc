// SPDX-License-Identifier: Apache-2.0
// Checks of start and stop: leaks, restart, process exit, lost devices.
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "core/conform/device_memory.h"
#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "core/process/child.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

absl::Status NoChildIsLeft() { return HasChildProcess() ? Broken("stop() leaves a child process") : absl::OkStatus(); }

absl::Status CheckStop(BackendUnderTest& s) {
  // The first start may create permanent objects, such as threads of a driver. It must not leave a process.
  const auto begin = std::chrono::steady_clock::now();
  absl::Status first;
  InFreshThread([&] { first = LiveOnce(s); });
  MGE_RETURN_IF_ERROR(first);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  MGE_RETURN_IF_ERROR(NoChildIsLeft());
  constexpr int kSpans = 27;  // largest number of spans in MeasureLeaks(), including the time that some of them wait
  int64_t used = 0;
  int lives = 0;
  ProcessCounts before;
  LeakCheck plan = {.first = 1,
                    .rounds = std::max(1, s.reporter().Fit(4 * kSpans, seconds) / kSpans),
                    .round = {},
                    .began = [&] { lives = 0, before = ProcessCounts::Now(); },
                    .device_used = [&] { return used; }};
  auto live = [&](Until until) { return [&, until] { return ++lives, LiveOnce(s, &used, until); }; };
  MGE_ASSIGN_OR_RETURN(std::string lost, FindLeak(plan, "start and stop",
                                                  {{"start or stop", live(Until::kStart)},
                                                   {"the device's open or close", live(Until::kOpen)},
                                                   {"slab_acquire or slab_release", live(Until::kMemory)},
                                                   {"the slots of queues and fences", live(Until::kQueue)},
                                                   {"the slots of kernels", live(Until::kKernel)}}));
  MGE_RETURN_IF_ERROR(NoChildIsLeft());
  if (std::string more = ProcessCounts::Now().MoreThan(before); !more.empty())
    return Broken("after {} lives there are {}", lives, more);
  if (int64_t left = s.host().outstanding(); left > 0)
    return Broken("{} blocks of the host's memory are not released by stop()", left);
  return lost.empty() ? absl::OkStatus() : Broken(lost);
}

absl::Status CheckLost(BackendUnderTest& s) {
  const mge_device_api& device = *s.plugin().device;
  const mge_faults_api* faults = FaultsOf(s);
  if (!faults)
    return NotOffered("the backend does not offer the extension " MGE_FAULTS_EXTENSION ", which makes it lose a device");
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 4096));
  MGE_RETURN_IF_ERROR(Call("losing the device", faults->lose, s.device()));
  auto lost = [&](std::string_view what, auto slot, auto... args) {
    const mge_code code = Try(what, slot, s.device(), args...).code;
    if (code == MGE_DEVICE_LOST) return absl::OkStatus();
    return Broken("{} on a lost device returns {}", what, CodeName(code));
  };
  for (int i = 0; i < 3; ++i) {
    auto more = Sized<mge_slab>();
    mge_queue* queue = nullptr;
    MGE_RETURN_IF_ERROR(lost("acquiring a slab", s.plugin().memory->slab_acquire, MGE_MEMORY_DEVICE, uint64_t{64}, &more));
    if (device.status) MGE_RETURN_IF_ERROR(lost("the status", device.status));
    if (!s.plugin().queue) continue;
    MGE_RETURN_IF_ERROR(lost("creating a queue", s.plugin().queue->create, MGE_QUEUE_COMPUTE, &queue));
  }
  if (s.devices().size() < 2 || !device.status) return absl::OkStatus();
  MGE_ASSIGN_OR_RETURN(Owned<mge_device> other, s.OpenAnother());
  return Call("the status of another device", device.status, other.get());
}

absl::Status CheckHostKept(BackendUnderTest& s) {
  auto kept = [&](std::string_view what) {
    std::string changed = Changes(s.before(), HostStateNow());
    if (changed.empty()) return absl::OkStatus();
    return Broken("{} changes state that belongs to the host: {}; do not change it", what, changed);
  };
  MGE_RETURN_IF_ERROR(kept("loading"));
  MGE_RETURN_IF_ERROR(s.Start());
  MGE_RETURN_IF_ERROR(kept("starting"));
  MGE_RETURN_IF_ERROR(LiveOnce(s));
  return kept("working, closing and stopping");
}

// Checks that exit() works after a stop: static destructors and exit handlers of the library run.
absl::Status CheckExit(BackendUnderTest& s) {
  MGE_RETURN_IF_ERROR(LiveOnce(s));
  s.At("exit() after the stop");
  s.reporter().Applied("life.exit");
  s.reporter().EndWithExit();
  std::exit(0);
}

constexpr Check kRows[] = {
    {"life.start", "The backend starts, lists its devices, and stops.", [](BackendUnderTest&) { return absl::OkStatus(); },
     Needs::kStarted},  // kStarted has done the check
    {"life.host_kept", "Signals, locale, working folder, environment, limits and umask are not changed.", CheckHostKept,
     Needs::kLives},
    {"life.leaks", "A stop leaves no memory, thread, process or open file, and the backend starts and works again after it.",
     CheckStop, Needs::kLives},
    {"life.exit", "A process that has loaded, used and stopped the backend can exit.", CheckExit, Needs::kLives},
    {"life.device_lost", "A lost device stays lost, and other devices keep working.", CheckLost},
};

}  // namespace

std::span<const Check> LifeChecks() { return kRows; }

}  // namespace mge::conform
