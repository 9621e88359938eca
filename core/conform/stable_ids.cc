// SPDX-License-Identifier: Apache-2.0
// Checks that the ids of candidates are the same in two independent processes. Caches on disk name candidates by id, and
// later processes read them.
#include <map>
#include <string>
#include <vector>

#include "core/conform/kernel_checks.h"
#include "core/conform/task.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

constexpr double kSeconds = 10;  // time limit of one process

using Ids = std::map<std::string, std::string>;  // operator -> ids

// Records the offered candidates of each case. Failures are ignored, because other checks report them.
void Tell(BackendUnderTest& tested, const std::vector<Case>& cases) {
  if (!tested.Prepare(Needs::kDevice).ok()) return;
  for (const Case& c : cases) {
    absl::StatusOr<Offers> offers = Enumerate(tested, c);
    if (!offers.ok() || offers->offered.empty()) continue;
    std::vector<std::string> ids;
    for (const Candidate& k : offers->offered) ids.push_back(k.id);
    tested.reporter().Support(c.def->name, DTypeName(c.dtype), true, fmt::format("{}", fmt::join(ids, ", ")));
  }
}

}  // namespace

absl::Status CheckStableIds(BackendUnderTest& s) {
  std::vector<Case> cases;
  for (const OpDef* def : CheckableOps()) {
    absl::StatusOr<Case> c = MakeCase(*def, TypesOf(*def).front(), SpecsFor(*def).front());
    if (c.ok()) cases.push_back(*std::move(c));
  }
  auto body = [&](CheckReporter& w) {
    BackendUnderTest tested(s.path(), s.given(), w);
    Tell(tested, cases);
  };
  Ids first, second;
  const std::vector<Task> tasks = {{"first", "", body, kSeconds}, {"second", "", body, kSeconds}};
  MGE_RETURN_IF_ERROR(RunTasks(
      tasks, 2,
      [&](const Task& task, const CheckRecord& r) {
        if (r.kind == RecordKind::kSupported) (&task == &tasks[0] ? first : second)[r.check] = r.what;
      },
      [](const Task&, double) {}));
  if (first.empty() || second.empty()) return NotOffered("no process is offered a candidate");
  for (const auto& [op, ids] : first) {
    auto other = second.find(op);
    if (other == second.end() || other->second == ids) continue;
    return Broken(
        "for {} one process is offered '{}', another one '{}'; use the same ids in every process, "
        "because caches on disk contain them",
        op, ids, other->second);
  }
  return absl::OkStatus();
}

}  // namespace mge::conform
