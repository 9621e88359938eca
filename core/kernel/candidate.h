// SPDX-License-Identifier: Apache-2.0
// Candidates of a problem: the kernels that a backend offers, copied into objects of the core, and its reasons for refusals.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/kernel/layout.h"
#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

// A copy of mge_candidate that owns its arrays.
struct OwnedCandidate {
  std::string id;
  int32_t rank = 0;
  uint64_t attributes = 0;
  uint64_t workspace = 0;           // upper bound, bytes
  double cost_us = -1;              // negative: unknown
  double measured_us = -1;          // negative: not timed, or it failed
  std::string fault;                // the reason why it was not timed, or why its results were not checked
  uint64_t token = 0;               // the backend's own number
  std::vector<mge_layout> inputs;   // one per input of the problem
  std::vector<mge_layout> outputs;  // one per output of the problem
  std::vector<mge_in_place> in_place;

  // The candidate as the struct of the plugin ABI. It points into the OwnedCandidate, which must outlive it.
  struct Abi {
    std::vector<const mge_layout*> inputs, outputs;
    mge_candidate candidate;
  };
  Abi ToAbi() const;
};

// A kernel that cannot be used, with the reason.
struct Refusal {
  std::string id;
  std::string reason;
};

// The offers and refusals of a backend for one problem.
struct CandidateList {
  std::vector<OwnedCandidate> offered;
  std::vector<Refusal> refused;
};

// Copies a candidate for a problem to `*out`. Reads no byte beyond given->struct_size; `given` may be null. Returns "", or the
// first violation of the contract: of the struct, the id, the in-place pairs, the attribute bits, the cost or the layouts.
// `*out` has layouts only if the struct, the id and the pairs are valid.
std::string ReadCandidate(const mge_candidate* given, const mge_problem& problem, OwnedCandidate* out);

// Returns the candidates of the device's backend. Checks each offer: attribute bits, constraints, in-place pairs, layouts
// and sizes. An invalid offer becomes a refusal. Fails if the backend fails.
absl::StatusOr<CandidateList> EnumerateCandidates(Device& device, const mge_problem& problem,
                                                  const mge_constraints& constraints);

// Returns the indices of the candidates, best first. Uses the backend's own strategy if it has one, else the host's
// (core/plugin/strategy.h). The strategy receives measured times only in the mode MGE_SELECT_PROFILE. If the strategy fails
// or does not return each index once, uses the host's order and writes the reason, a sentence, to `*fault`. Fails if the
// strategy has no memory or its device is lost.
absl::StatusOr<std::vector<int>> OrderCandidates(Device& device, const mge_problem& problem,
                                                 const std::vector<OwnedCandidate>& candidates, int32_t mode,
                                                 std::string* fault);

// Returns true if a problem's input can have that layout. A constant must be plain, since constants are always passed plain.
bool CanBeGiven(const mge_value& input, const mge_layout& layout);

}  // namespace mge
