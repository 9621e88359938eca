// SPDX-License-Identifier: Apache-2.0
// A check: one row of a table. What it answers:
//   OK            the backend keeps the promise
//   Broken()      it does not; the text says what was seen
//   NotOffered()  there is nothing to check, and why
// A check runs in a process of its own, with the backend loaded, and as far as `needs` says, started and opened.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace mge::conform {

class Subject;

// kLives: as kTable; the check starts the backend and opens devices by itself. kProcesses: as kFile; it does all that, and loads,
// in processes of its own.
enum class Needs { kFile, kProcesses, kTable, kLives, kStarted, kDevice };

struct Check {
  const char* name;    // "queue.order"
  const char* proves;  // one sentence
  Needs needs = Needs::kDevice;
  absl::Status (*run)(Subject&) = nullptr;  // nullptr: judged operator by operator, see kernel_checks.h
};

absl::Status Broken(std::string_view what);
absl::Status NotOffered(std::string_view reason);
bool IsNotOffered(const absl::Status& status);

// All rows: those of each family, in the order of the report.
std::span<const Check* const> AllChecks();

std::span<const Check> AbiChecks();
std::span<const Check> OutStructChecks();
std::span<const Check> DeviceChecks();
std::span<const Check> MemoryChecks();
std::span<const Check> PoolChecks();
std::span<const Check> QueueChecks();
std::span<const Check> FenceChecks();
std::span<const Check> PolicyChecks();
std::span<const Check> RowChecks();
std::span<const Check> KernelChecks();
std::span<const Check> ClaimChecks();
std::span<const Check> LifeChecks();

}  // namespace mge::conform
