// SPDX-License-Identifier: Apache-2.0
// Checks: one table row per check. A check runs in its own process. The backend is loaded, started and its device opened as
// far as `needs` says. A check returns if the backend obeys the contract. Else it ends early by throwing a status:
//   Broken()      the backend does not obey the contract; the text says what was observed
//   NotOffered()  there is nothing to check; the text says why
#pragma once

#include <functional>
#include <future>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "fmt/format.h"

namespace mge::conform {

class BackendUnderTest;
class CheckReporter;

// The state of the backend that a check needs. kLives is like kFile, but the check itself loads and starts the backend and
// opens devices.
enum class Needs { kFile, kTable, kStarted, kDevice, kLives };
inline constexpr const char* kNoQueues = "the backend has no queues: its steps run in the calling thread";

struct Check {
  const char* name;                          // "queue.order"
  const char* proves;                        // the rule that the check proves, one sentence
  void (*run)(BackendUnderTest&) = nullptr;  // nullptr: checked operator by operator, see kernel_checks.h
  Needs needs = Needs::kDevice;
};

// Thrown by a check to end. It is a type of its own, so that nothing that a backend throws is taken for it.
struct EndedCheck {
  absl::Status status;
  const char* check = nullptr;  // of BrokenAs(), else NULL
};

[[noreturn]] void Broken(std::string_view what);
template <typename... Args>
[[noreturn]] void Broken(fmt::format_string<Args...> what, Args&&... args) {
  Broken(std::string_view(fmt::format(what, std::forward<Args>(args)...)));
}
// Throws a Broken() that is a finding of `check`, and not of the check that is being applied.
template <typename... Args>
[[noreturn]] void BrokenAs(const Check& check, fmt::format_string<Args...> what, Args&&... args) {
  throw EndedCheck{absl::InternalError(fmt::format(what, std::forward<Args>(args)...)), check.name};
}
[[noreturn]] void NotOffered(std::string_view reason);
bool IsNotOffered(const absl::Status& status);

// Returns the status with which f() ends early, or OK. Exceptions of other types, which are the backend's, pass through.
template <typename F>
absl::Status StatusOf(F&& f) {
  try {
    f();
    return absl::OkStatus();
  } catch (const EndedCheck& ended) {
    return ended.status;
  }
}
// Throws the status unless it is OK.
inline void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw EndedCheck{status};
}
// Returns the value, or throws the status.
template <typename T>
T OrThrow(absl::StatusOr<T> result) {
  ThrowIfError(result.status());
  return *std::move(result);
}

// Applies a check: does the work and records its result. Returns false if it found a fault. `where` is the place of a
// finding.
bool Apply(CheckReporter& reporter, const Check& check, std::string_view where, const std::function<void()>& work);

// Calls f(0), f(1), ... in `count` new threads at once. When all have ended, throws what the first one has thrown. If no
// more threads can be started, the calling thread makes the other calls after that.
template <typename F>
void InThreads(int count, F&& f) {
  std::vector<std::future<void>> calls;
  for (int i = 0; i < count; ++i) calls.push_back(std::async([&f, i] { f(i); }));
  for (std::future<void>& call : calls) call.wait();
  for (std::future<void>& call : calls) call.get();
}

// Returns the rows of all families in the order of the report.
std::span<const Check* const> AllChecks();

std::span<const Check> AbiChecks();
std::span<const Check> MemoryChecks();
std::span<const Check> PoolChecks();
std::span<const Check> QueueChecks();
std::span<const Check> NameChecks();
std::span<const Check> KernelChecks();
std::span<const Check> ClaimChecks();
std::span<const Check> SetChecks();
std::span<const Check> LifeChecks();

}  // namespace mge::conform
