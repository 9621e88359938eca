// SPDX-License-Identifier: Apache-2.0
#include "core/cli/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "core/cli/common.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr double kGraceSeconds = 5;  // a run that exceeded its limit waits for its devices before it returns

}  // namespace

Watchdog::Watchdog(const Globals& globals, const RunControl& control)
    : globals_(globals), control_(control), thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::Watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return end_; })) {
    const auto overrun = control_.Overdue();
    if (!overrun.ok() || overrun->seconds < kGraceSeconds) continue;
    const std::string& place = overrun->step;
    const int code =
        Report(globals_,
               Fail(errors::kTimeout, "the run took longer than its time limit and does not stop",
                    {.what = fmt::format("{:.0f} s after the limit it is still {}, so the process ends", overrun->seconds,
                                         place.empty() ? "running on the host" : "in a kernel that ignores its stop flag"),
                     .where = place,
                     .fix = place.empty() ? "allow more time"
                                          : "report it to the author of the backend, or use another device or kernel"}));
    std::fflush(nullptr);
    _exit(code);
  }
}

}  // namespace mge::cli
