// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/file_lock.h"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::chrono::seconds kLockPatience{10};

}  // namespace

absl::Status LockFile(const Fd& fd, const std::string& path, const StopControl* stop) {
  auto fail = [&](std::string what, std::string fix) {
    return Fail(errors::kFileWrite, fmt::format("cannot lock '{}'", path), {.what = std::move(what), .fix = std::move(fix)});
  };
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail(fmt::format("'{}': {}", path, ErrnoText(errno)), "keep it on a file system that has locks");
    }
    if (stop) MGE_RETURN_IF_ERROR(stop->CheckStop());
    if (std::chrono::steady_clock::now() > end) {
      return fail(fmt::format("another process has held '{}' for {} s", path, kLockPatience.count()),
                  fmt::format("see which does: fuser '{}'", path));
    }
    std::this_thread::sleep_for(kStopSlice);
  }
  return absl::OkStatus();
}

}  // namespace mge
