// SPDX-License-Identifier: Apache-2.0
#include "core/conform/check.h"

#include "core/conform/backend_call.h"
#include "core/conform/task.h"

namespace mge::conform {

void Broken(std::string_view what) { throw EndedCheck{absl::InternalError(Absl(what))}; }

void NotOffered(std::string_view reason) { throw EndedCheck{absl::UnimplementedError(Absl(reason))}; }

bool IsNotOffered(const absl::Status& status) { return status.code() == absl::StatusCode::kUnimplemented; }

bool Apply(CheckReporter& reporter, const Check& check, std::string_view where, const std::function<void()>& work) {
  reporter.Begin(check.name);
  EndedCheck ended;
  try {
    work();
  } catch (const EndedCheck& e) {
    ended = e;
  }
  if (std::string changed = TakeModeChange(); !changed.empty()) reporter.Found("kernel.thread_modes", where, changed);
  const absl::Status& status = ended.status;
  if (IsNotOffered(status)) return reporter.NotOffered(check.name, Std(status.message())), true;
  if (!ended.check) reporter.Applied(check.name);
  if (!status.ok()) reporter.Found(ended.check ? ended.check : check.name, where, Std(status.message()));
  return status.ok();
}

std::span<const Check* const> AllChecks() {
  static const std::vector<const Check*>* all = [] {
    auto* list = new std::vector<const Check*>;
    for (std::span<const Check> family : {AbiChecks(), MemoryChecks(), PoolChecks(), QueueChecks(), NameChecks(),
                                          KernelChecks(), SetChecks(), ClaimChecks(), LifeChecks()}) {
      for (const Check& check : family) list->push_back(&check);
    }
    return list;
  }();
  return *all;
}

}  // namespace mge::conform
