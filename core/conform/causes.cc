// SPDX-License-Identifier: Apache-2.0
#include "core/conform/causes.h"

#include <algorithm>
#include <set>
#include <string>

namespace mge::conform {
namespace {

// The parts of a backend by the beginnings of their checks. A part uses those before it.
constexpr std::string_view kParts[] = {"abi.",
                                       "life.start",
                                       "device.enumerate",
                                       "device.open_close",
                                       "memory.slabs",
                                       "queue.copies",
                                       "queue.order",
                                       "fence.several",
                                       "fence.wait",
                                       "fence.",
                                       "queue.",
                                       "profile.",
                                       "memory.",
                                       "pool.",
                                       "kernel.offers",
                                       "kernel.prepare",
                                       "kernel.workspace",
                                       "kernel.bounds",
                                       "kernel.numerics",
                                       "kernel.prepack",
                                       "kernel.",
                                       "layout.",
                                       "graph."};

size_t PartOf(std::string_view check) {
  const auto at = std::ranges::find_if(kParts, [&](std::string_view part) { return check.starts_with(part); });
  return static_cast<size_t>(at - std::begin(kParts));
}

// Returns the operators in whose cases a check found something.
std::set<std::string> OperatorsOf(const CheckResult& check) {
  std::set<std::string> ops;
  for (const Finding& f : check.findings) ops.insert(f.where.substr(0, f.where.find_first_of("(@")));
  return ops;
}

bool OfKernels(std::string_view check) {
  return check.starts_with("kernel.") || check.starts_with("layout.") || check.starts_with("graph.");
}

// Returns whether a fault that `cause` finds can let `check` fail.
bool MayCause(const CheckResult& cause, const CheckResult& check) {
  if (PartOf(cause.name) >= PartOf(check.name)) return false;
  if (!OfKernels(cause.name)) {
    const bool of_queues = cause.name.starts_with("queue.") || cause.name.starts_with("fence.");
    return !of_queues || OfKernels(check.name) || check.name.starts_with("pool.") || check.name.starts_with("memory.") ||
           check.name.starts_with("queue.") || check.name.starts_with("fence.");
  }
  // A fault of a kernel shows in other checks of the same operators, and of groups that contain them.
  return check.name.starts_with("graph.") || std::ranges::includes(OperatorsOf(cause), OperatorsOf(check));
}

}  // namespace

std::vector<FailedCheck> FailedByCause(const Report& report) {
  std::vector<const CheckResult*> failed;
  for (const CheckResult& c : report.checks) {
    if (c.outcome == Outcome::kFailed) failed.push_back(&c);
  }
  std::ranges::stable_sort(failed, {}, [](const CheckResult* c) { return PartOf(c->name); });
  std::vector<FailedCheck> out;
  while (!failed.empty()) {
    const CheckResult& first = *failed[0];
    out.push_back({&first, nullptr});
    std::erase_if(failed, [&](const CheckResult* c) {
      if (c != &first && MayCause(first, *c)) out.push_back({c, &first});
      return out.back().check == c;
    });
  }
  return out;
}

}  // namespace mge::conform
