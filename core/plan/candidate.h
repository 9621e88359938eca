// SPDX-License-Identifier: Apache-2.0
// Candidates of a problem: what a backend offers, copied, with the reasons of what it refused.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/devices.h"
#include "mge/plugin.h"

namespace mge {

// Of a constant's packed form, a workspace, a tensor in an opaque layout: more than any model needs. Above it is a wild number.
inline constexpr uint64_t kMaxAskedBytes = uint64_t{1} << 40;

struct OwnedCandidate {
  std::string id;
  int32_t rank = 0;
  uint64_t attributes = 0;
  uint64_t workspace = 0;  // upper bound, bytes
  double cost_us = -1;     // negative: unknown
  double measured_us = -1; // negative: not timed, or it failed
  std::string fault;       // why it could not be timed, or its results not be checked
  uint64_t token = 0;
  std::vector<mge_layout> inputs;   // per operand of the problem
  std::vector<mge_layout> outputs;
  std::vector<mge_in_place> in_place;

  // The same in the backend's form; points into this object.
  struct Abi {
    std::vector<const mge_layout*> inputs, outputs;
    mge_candidate candidate;
  };
  Abi ToAbi() const;
};

struct Refusal {
  std::string id;
  std::string reason;
};

struct CandidateList {
  std::vector<OwnedCandidate> offered;
  std::vector<Refusal> refused;
};

// Asks the device's backend. Unknown attribute bits, wrong in-place pairs, layouts that it does not describe or that a constant
// cannot have, and wild sizes are the backend's fault: such an offer is dropped and stands among the refusals.
absl::StatusOr<CandidateList> EnumerateCandidates(Device& device, const mge_problem& problem,
                                                  const mge_constraints& constraints);

// The order of the candidates, best first: by the backend's own strategy, else by the host's (core/plugin/strategy.h). The
// backend sees measured times with PROFILE only. kKernelFailed if it answers what is no order of them.
absl::StatusOr<std::vector<int>> OrderCandidates(Device& device, const mge_problem& problem,
                                                 const std::vector<OwnedCandidate>& candidates, int32_t mode);

// "nchw"-like words for messages: "plain", "perm(0,2,3,1)", "any", "opaque(3)".
std::string LayoutText(const mge_layout& layout);
// The same, an opaque layout by the name that its backend gives it.
std::string LayoutText(Device& device, const mge_layout& layout, DType dtype, std::span<const int64_t> dims);

inline bool IsPlain(const mge_layout& layout) { return layout.kind == MGE_LAYOUT_PLAIN; }
bool SameLayout(const mge_layout& a, const mge_layout& b);
mge_layout PlainLayout();

// Whether a problem's input can be given in that layout: constants are always given plain.
bool CanBeGiven(const mge_value& input, const mge_layout& layout);

// Bytes of a tensor in that layout: blocked dimensions are padded, to a multiple of both blocks if both are of one. kKernelFailed
// if the layout does not fit the rank or says that it takes more than kMaxAskedBytes, kInvalidTensor if the size overflows.
absl::StatusOr<int64_t> LayoutBytes(const mge_layout& layout, int64_t element_bytes, std::span<const int64_t> dims);

}  // namespace mge
