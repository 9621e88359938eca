// SPDX-License-Identifier: Apache-2.0
// A kernel of a candidate: prepared and bound, its backend's answers held against the contract.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/plan/candidate.h"
#include "core/plugin/device.h"
#include "mge/plugin.h"

namespace mge {

// More than a kernel with hundreds of thousands of operands needs for its arguments. What lies above is a wild number, as are
// packed constants and workspaces above kMaxAskedBytes.
inline constexpr uint64_t kMaxArgsBytes = uint64_t{16} << 20;

inline constexpr uint64_t kMaxFormBytes = 4096;  // of the name of a packed form

struct KernelDeleter {
  const mge_kernel_api* api = nullptr;
  void operator()(mge_kernel* kernel) const { api->destroy(kernel); }
};
using KernelHandle = std::unique_ptr<mge_kernel, KernelDeleter>;

// "" or a sentence: why nobody can work with what prepare() wrote. What the candidate promised is not looked at.
std::string WhyUnsound(const mge_kernel_api& api, const mge_prepared& answer, uint64_t input_count);

// Makes the kernel and fills `out`, which names it too. Errors are those of the backend, and kKernelFailed if it asks for
// what it may not have.
absl::StatusOr<KernelHandle> PrepareKernel(Device& device, const mge_problem& problem, const OwnedCandidate& candidate,
                                           mge_prepared& out);

// Has a prepared kernel write its arguments, and answers the function that takes them.
absl::StatusOr<mge_step_fn> BindKernel(Device& device, const OwnedCandidate& candidate, mge_kernel* kernel,
                                       const mge_binding& binding, void* args);

}  // namespace mge
