// SPDX-License-Identifier: Apache-2.0
// The checks that run operator by operator: every check of the family `kernel` on every candidate of every case.
//
// Algorithm for one candidate: prepare and bind it, and place its operands between red zones (kernel_run.h). Run it on two
// sets of data, at different addresses, with different numbers of threads and different stale memory. Compare results with
// the reference evaluators, then compare all other bytes with their values before the run. Then check what the candidate
// claims: bits that do not vary, independence of the batch, in-place pairs, capture. The case with the most work is also
// used to check order on the queue, cancellation and concurrent runs: short runs show few of these faults.
#pragma once

#include "core/conform/check.h"
#include "core/conform/kernel_run.h"
#include "core/ops/op.h"

namespace mge::conform {

inline constexpr Check kOffers = {
    "kernel.offers", "Candidates are well formed and the same every time; other problems are refused with a reason."};

// The extent of the checks of an operator.
struct KernelScope {
  bool quick = false;
  bool full = false;  // lets allocations fail in every element type, else once per candidate
  std::function<bool(std::string_view check)> has = {};  // whether a check is requested
};

// Checks an operator. Must run in a child process with the device open. Findings go to the reporter of the backend. Throws
// only if it cannot continue.
void CheckOperator(BackendUnderTest& tested, const OpDef& def, const KernelScope& scope);

// Runs a kernel whose input arrives over the queue after the launch. Throws Broken() if the kernel does not wait for it,
// and NotOffered() if the backend has no queues.
void CheckQueueOrder(KernelRun& kernel_run);
// Does the same with given inputs: inputs[0] are in memory at the launch, inputs[1] arrive over the queue. `what_is_wrong`
// returns "" if a result is that of inputs[1].
void CheckQueueOrder(KernelRun& kernel_run, const std::vector<Tensor> (&inputs)[2],
                     const std::function<std::string(const std::vector<Tensor>&)>& what_is_wrong);

// Prepares and launches a candidate of a case with failing allocations; see SurvivesFailures(). `seconds` is the time limit.
inline double FailureSeconds(bool quick) { return quick ? 0.05 : 0.2; }
inline constexpr Check kKernelAllocations = {
    "kernel.allocations", "Offering, preparing, launching and destroying a kernel survive every failing allocation."};
void CheckKernelAllocations(Bench& bench, const Case& c, const Candidate& candidate, double seconds);

// Checks the groups of nodes that the backend claims, and the kernels that compute them. Findings are written to the
// reporter.
void CheckClaims(BackendUnderTest& tested, bool quick);

}  // namespace mge::conform
