// SPDX-License-Identifier: Apache-2.0
// Kernels: calls prepare() and bind() of a backend for a candidate, and checks the results against the plugin contract.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"
#include "core/kernel/candidate.h"
#include "core/plugin/device.h"
#include "mge/plugin.h"

namespace mge {

// Size limit of a kernel's arguments, in bytes: enough for hundreds of thousands of operands.
inline constexpr uint64_t kMaxArgsBytes = uint64_t{16} << 20;

inline constexpr uint64_t kMaxFormBytes = 4096;  // size limit of the name of a packed form

// Destroys a kernel of a backend.
struct KernelDeleter {
  const mge_kernel_api* api = nullptr;
  void operator()(mge_kernel* kernel) const { api->destroy(kernel); }
};
// Owns a kernel of a backend, created with a KernelDeleter. The backend must outlive it.
using KernelHandle = std::shared_ptr<mge_kernel>;

// Checks the result of prepare() on its own, without the candidate's promises. Returns the fault as a sentence, or "" if the
// result is valid.
std::string WhyUnsound(const mge_kernel_api& api, const mge_prepared& answer, uint64_t input_count);

// Creates the kernel and fills `out`; out.kernel points to the same kernel. Fails with the backend's error, or with
// kKernelFailed if the result is invalid or needs more workspace than the candidate promised.
absl::StatusOr<KernelHandle> PrepareKernel(Device& device, const mge_problem& problem, const OwnedCandidate& candidate,
                                           mge_prepared& out);

// Creates a kernel for a problem that differs from the one of `kernel` in shapes only, by the slot `rebind`. Returns nullptr
// if the backend cannot. Fails like PrepareKernel().
absl::StatusOr<KernelHandle> RebindKernel(Device& device, mge_kernel* kernel, const mge_problem& problem,
                                          const OwnedCandidate& candidate, mge_prepared& out);

// Binds a prepared kernel: the backend writes its arguments to `args`. Returns the function to call with them. `args` has
// mge_prepared::args_bytes and must live as long as the function is called. Fails like PrepareKernel().
absl::StatusOr<mge_step_fn> BindKernel(Device& device, const OwnedCandidate& candidate, mge_kernel* kernel,
                                       const mge_binding& binding, void* args);

}  // namespace mge
