// SPDX-License-Identifier: Apache-2.0
// Checks of start and stop: leaks, restart, state of the host process, process exit, lost devices.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include "core/conform/device_memory.h"
#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

void NoChildIsLeft() {
  siginfo_t child = {};
  if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0) Broken("stop() leaves a child process");
}

void CheckStop(BackendUnderTest& s) {
  // The first start may create permanent objects, such as threads of a driver. It must not leave a process.
  const auto begin = std::chrono::steady_clock::now();
  InThreads(1, [&](int) { LiveOnce(s); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  NoChildIsLeft();
  constexpr int kSpans = 27;  // largest number of spans in MeasureLeaks(), including the time that some of them wait
  int64_t used = 0;
  int lives = 0;
  ProcessCounts before;
  LeakCheck plan = {.first = 1,
                    .rounds = std::max(1, s.reporter().Fit(4 * kSpans, seconds) / kSpans),
                    .round = {},
                    .began = [&] { lives = 0, before = ProcessCounts::Now(); },
                    .device_used = [&] { return used; }};
  auto live = [&](Until until) { return [&, until] { ++lives, LiveOnce(s, &used, until); }; };
  std::string lost = FindLeak(plan, "start and stop",
                              {{"start or stop", live(Until::kStart)},
                               {"the device's open or close", live(Until::kOpen)},
                               {"slab_acquire or slab_release", live(Until::kMemory)},
                               {"the slots of queues and fences", live(Until::kQueue)},
                               {"the slots of kernels", live(Until::kKernel)}});
  NoChildIsLeft();
  if (std::string more = ProcessCounts::Now().MoreThan(before); !more.empty())
    Broken("after {} lives there are {}", lives, more);
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

// A copy of the process-wide state that belongs to the host: name -> value.
using HostState = std::map<std::string, std::string>;

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

HostState HostStateNow() {
  HostState parts;
  sigset_t blocked;
  sigemptyset(&blocked);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  for (int i = 1; i < NSIG; ++i) {
    struct sigaction action = {};
    if (sigaction(i, nullptr, &action) != 0) continue;  // reserved by the C library
    const auto handler = action.sa_handler;
    parts["the handler of " + SignalName(i)] = handler == SIG_DFL   ? "the default"
                                               : handler == SIG_IGN ? "ignored"
                                                                    : fmt::format("{}", reinterpret_cast<void*>(handler));
    parts["the mask of " + SignalName(i)] = sigismember(&blocked, i) ? "blocked" : "not blocked";
  }
  parts["the locale"] = std::setlocale(LC_ALL, nullptr);
  std::error_code code;
  parts["the working folder"] = std::filesystem::current_path(code).string();
  for (char** at = environ; *at; ++at) {
    const std::string_view variable = *at;
    const size_t name = std::min(variable.find('='), variable.size());
    parts[fmt::format("the variable {}", variable.substr(0, name))] = variable.substr(std::min(name + 1, variable.size()));
  }
  for (int i = 0; i < static_cast<int>(RLIMIT_NLIMITS); ++i) {
    rlimit limit = {};
    getrlimit(static_cast<__rlimit_resource>(i), &limit);
    parts[fmt::format("limit {} of setrlimit", i)] = fmt::format("{} of {}", limit.rlim_cur, limit.rlim_max);
  }
  const mode_t mask = umask(0);
  umask(mask);
  parts["the umask"] = fmt::format("{:03o}", mask);
  return parts;
}

// Returns the differences, such as "the locale (was C, is C.UTF-8)", or "".
std::string Changes(const HostState& before, const HostState& now) {
  auto value = [](const HostState& state, const std::string& name) {
    auto at = state.find(name);
    return at == state.end() ? std::string("not set") : at->second;
  };
  HostState all = now;
  all.insert(before.begin(), before.end());
  std::string out;
  for (const auto& [name, ignored] : all) {
    std::string was = value(before, name), is = value(now, name);
    if (was != is) out += fmt::format("{}{} (was {}, is {})", out.empty() ? "" : ", ", name, was, is);
  }
  return out;
}

void CheckHostKept(BackendUnderTest& s) {
  const HostState before = HostStateNow();
  auto kept = [&](std::string_view what) {
    std::string changed = Changes(before, HostStateNow());
    if (!changed.empty()) Broken("{} changes state that belongs to the host: {}; do not change it", what, changed);
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
     Needs::kNothing},
    {"life.leaks", "A stop leaves no memory, thread, process or open file, and the backend starts and works again after it.",
     CheckStop, Needs::kLives},
    {"life.exit", "A process that has loaded, used and stopped the backend can exit.", CheckExit, Needs::kLives},
    {"life.device_lost", "A lost device stays lost, and other devices keep working.", CheckLost},
};

}  // namespace

std::span<const Check> LifeChecks() { return kLifeChecks; }

}  // namespace mge::conform
