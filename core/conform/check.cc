// SPDX-License-Identifier: Apache-2.0
#include "core/conform/check.h"

#include "absl/strings/cord.h"
#include "core/conform/backend_call.h"
#include "core/conform/task.h"

namespace mge::conform {

static constexpr absl::string_view kOtherCheck = "mge.conform.check";  // key of a status's payload: the name of a check

void Broken(std::string_view what) { throw EndedCheck{absl::InternalError(Absl(what))}; }

void BrokenAs(const char* check, std::string_view what) {
  absl::Status status = absl::InternalError(Absl(what));
  status.SetPayload(kOtherCheck, absl::Cord(check));
  throw EndedCheck{std::move(status)};
}

void NotOffered(std::string_view reason) { throw EndedCheck{absl::UnimplementedError(Absl(reason))}; }

bool IsNotOffered(const absl::Status& status) { return status.code() == absl::StatusCode::kUnimplemented; }

std::string OtherCheck(const absl::Status& status) {
  const auto check = status.GetPayload(kOtherCheck);
  return check ? std::string(*check) : std::string();
}

bool Apply(CheckReporter& reporter, const char* check, std::string_view where, const std::function<void()>& work) {
  reporter.Begin(check);
  const absl::Status status = StatusOf(work);
  if (std::string changed = TakeModeChange(); !changed.empty()) reporter.Found("kernel.thread_modes", where, changed);
  if (IsNotOffered(status)) return reporter.NotOffered(check, Std(status.message())), true;
  const std::string other = OtherCheck(status);
  if (other.empty()) reporter.Applied(check);
  if (!status.ok()) reporter.Found(other.empty() ? check : other, where, Std(status.message()));
  return status.ok();
}

std::span<const Check* const> AllChecks() {
  static const std::vector<const Check*>* all = [] {
    auto* list = new std::vector<const Check*>;
    for (std::span<const Check> family :
         {AbiChecks(), DeviceChecks(), MemoryChecks(), PoolChecks(), QueueChecks(), FenceChecks(), CollectiveChecks(),
          NameChecks(), KernelChecks(), ClaimChecks(), LifeChecks()}) {
      for (const Check& check : family) list->push_back(&check);
    }
    return list;
  }();
  return *all;
}

}  // namespace mge::conform
