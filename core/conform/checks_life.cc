// SPDX-License-Identifier: Apache-2.0
// Checks of start and stop: leaks, restart, state of the host process, process exit, lost devices.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "core/conform/device_memory.h"
#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "fmt/ranges.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

void NoChildIsLeft() {
  siginfo_t child = {};
  if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) Broken("stop() leaves a child process");
}

// Starts, works and stops twice: a start after a stop may fail where the first one does not.
void CheckRestart(BackendUnderTest& s) {
  LiveOnce(s);
  s.At("after a stop, in the same process");
  LiveOnce(s);
}

void CheckStop(BackendUnderTest& s) {
  // The first lives may create permanent objects, such as threads of a driver. They must not leave a process.
  LiveOnce(s);
  if (const absl::Status again = StatusOf([&] { LiveOnce(s); }); !again.ok()) NotOffered("it does not start twice");
  InThreads(1, [&](int) { LiveOnce(s); });
  NoChildIsLeft();
  const ProcessCounts before = ProcessCounts::Now();
  int64_t used = 0;
  auto live = [&](Until until) { return [&, until] { LiveOnce(s, &used, until); }; };
  const std::string lost = FindLeak("start and stop",
                                    {{"start or stop", live(Until::kStart)},
                                     {"the device's open or close", live(Until::kOpen)},
                                     {"slab_acquire or slab_release", live(Until::kMemory)},
                                     {"the slots of queues and fences", live(Until::kQueue)},
                                     {"the slots of kernels", live(Until::kKernel)}},
                                    [&] { return used; });
  NoChildIsLeft();
  if (std::string more = ProcessCounts::Now().MoreThan(before); !more.empty())
    Broken("after several starts and stops there are {}", more);
  if (int64_t left = s.host().outstanding(); left > 0)
    Broken("{} blocks of the host's memory are not released by stop()", left);
  if (!lost.empty()) Broken(lost);
}

void CheckLost(BackendUnderTest& s) {
  const mge_device_api& device = *s.plugin().device;
  const mge_faults_api& faults = FaultsOf(s);
  Slab slab(s, 4096);
  Call("losing the device", faults.lose, s.device());
  auto lost = [&](std::string_view what, auto slot, auto... args) {
    const mge_code code = Try(what, slot, s.device(), args...).code;
    if (code != MGE_DEVICE_LOST) Broken("{} on a lost device returns {}", what, CodeName(code));
  };
  for (int i = 0; i < 3; ++i) {
    auto more = Sized<mge_slab>();
    mge_queue* queue = nullptr;
    lost("acquiring a slab", s.plugin().memory->slab_acquire, MGE_MEMORY_DEVICE, uint64_t{64}, &more);
    if (device.status) lost("the status", device.status);
    if (s.plugin().queue) lost("creating a queue", s.plugin().queue->create, MGE_QUEUE_COMPUTE, &queue);
  }
  if (s.devices().size() < 2 || !device.status) return;
  Owned<mge_device> other = s.OpenAnother();
  Call("the status of another device", device.status, other.get());
}

// The process-wide state that belongs to the host: one line for each part, such as "the locale: C".
using HostState = std::set<std::string>;

HostState HostStateNow() {
  HostState lines = {fmt::format("the locale: {}", std::setlocale(LC_ALL, nullptr)),
                     fmt::format("the working folder: {}", std::filesystem::current_path().string())};
  for (int i = 1; i < NSIG; ++i) {
    struct sigaction action = {};
    if (sigaction(i, nullptr, &action) != 0) continue;  // reserved by the C library
    lines.insert(fmt::format("the handler of signal {}: {}", i, reinterpret_cast<void*>(action.sa_handler)));
  }
  for (char** variable = environ; *variable; ++variable) lines.insert(fmt::format("the variable {}", *variable));
  std::ifstream status("/proc/thread-self/status"), limits("/proc/self/limits");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:") || line.starts_with("SigBlk:")) lines.insert(line);
  }
  for (std::string line; std::getline(limits, line);) lines.insert(line);
  return lines;
}

void CheckHostKept(BackendUnderTest& s) {
  const HostState before = HostStateNow();
  auto kept = [&](std::string_view what) {
    const HostState now = HostStateNow();
    std::vector<std::string> lost, added;
    std::ranges::set_difference(before, now, std::back_inserter(lost));
    std::ranges::set_difference(now, before, std::back_inserter(added));
    if (lost.empty() && added.empty()) return;
    Broken("{} changes state that belongs to the host from [{}] to [{}]; do not change it", what, fmt::join(lost, "; "),
           fmt::join(added, "; "));
  };
  s.Load();
  kept("loading");
  s.Start();
  kept("starting");
  LiveOnce(s);
  kept("working, closing and stopping");
}

// Checks that exit() works after a stop: static destructors and exit handlers of the library run.
void CheckExit(BackendUnderTest& s) {
  LiveOnce(s);
  s.At("exit() after the stop");
  s.reporter().Applied("life.exit");
  s.reporter().EndWithExit();
  std::exit(0);
}

constexpr Check kLifeChecks[] = {
    {"life.start", "The backend starts, lists its devices, and stops.", [](BackendUnderTest&) {},
     Needs::kStarted},  // kStarted has done the check
    {"life.host_kept", "Signals, locale, working folder, environment, limits and umask are not changed.", CheckHostKept,
     Needs::kLives},
    {"life.restart", "After a stop the backend starts and works again.", CheckRestart, Needs::kLives},
    {"life.leaks", "A stop leaves no memory, thread, process or open file.", CheckStop, Needs::kLives},
    {"life.exit", "A process that has loaded, used and stopped the backend can exit.", CheckExit, Needs::kLives},
    {"life.device_lost", "A lost device stays lost, and other devices keep working.", CheckLost},
};

}  // namespace

std::span<const Check> LifeChecks() { return kLifeChecks; }

}  // namespace mge::conform
