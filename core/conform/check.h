// SPDX-License-Identifier: Apache-2.0
// Checks: one table row per check. A check returns one of:
//   OK            the backend obeys the contract
//   Broken()      it does not; the text says what was observed
//   NotOffered()  there is nothing to check; the text says why
// A check runs in its own process. The backend is loaded, started and its device opened as far as `needs` says.
#pragma once

#include <span>
#include <string_view>

#include "core/base/status.h"
#include "fmt/format.h"

namespace mge::conform {

class BackendUnderTest;

// The state of the backend that a check needs. kLives is like kTable, but the check itself starts the backend and opens
// devices. kProcesses is like kFile, but the check loads, starts and opens the backend in child processes.
enum class Needs { kFile, kProcesses, kTable, kLives, kStarted, kDevice };
inline constexpr const char* kNoQueues = "the backend has no queues: its steps run in the calling thread";

struct Check {
  const char* name;                                  // "queue.order"
  const char* proves;                                // the rule that the check proves, one sentence
  absl::Status (*run)(BackendUnderTest&) = nullptr;  // nullptr: checked operator by operator, see kernel_checks.h
  Needs needs = Needs::kDevice;
};

absl::Status Broken(std::string_view what);
template <typename... Args>
absl::Status Broken(fmt::format_string<Args...> what, Args&&... args) {
  return Broken(std::string_view(fmt::format(what, std::forward<Args>(args)...)));
}
absl::Status NotOffered(std::string_view reason);
bool IsNotOffered(const absl::Status& status);

// Returns the rows of all families in the order of the report.
std::span<const Check* const> AllChecks();

std::span<const Check> AbiChecks();
std::span<const Check> DeviceChecks();
std::span<const Check> MemoryChecks();
std::span<const Check> PoolChecks();
std::span<const Check> QueueChecks();
std::span<const Check> FenceChecks();
std::span<const Check> CollectiveChecks();
std::span<const Check> NameChecks();
std::span<const Check> KernelChecks();
std::span<const Check> ClaimChecks();
std::span<const Check> LifeChecks();

}  // namespace mge::conform
