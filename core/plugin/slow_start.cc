// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/slow_start.h"

#include <chrono>
#include <system_error>

namespace mge {
namespace {

constexpr std::chrono::seconds kStartPatience(6);  // above the 5 s of `mge doctor`, which reports a slow start itself

}  // namespace

SlowStart::SlowStart(const Logger& logger, const PluginFile& file) {
  try {
    thread_ = Thread([&] { Watch(logger, file); });
  } catch (const std::system_error&) {  // a limit on threads
  }
}

SlowStart::~SlowStart() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void SlowStart::Watch(const Logger& logger, const PluginFile& file) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kStartPatience, [&] { return over_; })) return;
  logger.Warning(
      "backend '{0}' ({1}) has been starting for {2} s: if it does not end, run `mge doctor` to put it into "
      "quarantine, or set MGE_PLUGIN_SKIP={0} to leave it out",
      file.name, file.path, kStartPatience.count());
}

}  // namespace mge
