// SPDX-License-Identifier: Apache-2.0
#include "core/kernel/kernel.h"

#include <utility>

#include "core/base/errors.h"
#include "core/plugin/ask.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status Unusable(const Device& device, const OwnedCandidate& candidate, std::string why) {
  return Fail(
      errors::kKernelFailed, fmt::format("kernel {} of device {} cannot be used", candidate.id, device.name()),
      {.what = std::move(why),
       .fix = fmt::format("report it to the author of backend {}, or choose another device", device.backend().name())});
}

}  // namespace

std::string WhyUnsound(const mge_kernel_api& api, const mge_prepared& answer, uint64_t input_count) {
  if (!answer.kernel) return "prepare returned MGE_OK, but no kernel";
  if (answer.args_bytes > kMaxArgsBytes) {
    return fmt::format("it asks for {} bytes of arguments; the limit is {}", answer.args_bytes, kMaxArgsBytes);
  }
  if (answer.workspace_bytes > kMaxAskedBytes) {
    return fmt::format("it asks for {} bytes of workspace; the limit is {}", answer.workspace_bytes, kMaxAskedBytes);
  }
  for (uint64_t i = 0; answer.prepack_bytes && i < input_count; ++i) {
    const uint64_t bytes = answer.prepack_bytes[i];
    if (bytes > kMaxAskedBytes) {
      return fmt::format("it asks for {} bytes for the packed form of input {}; the limit is {}", bytes, i, kMaxAskedBytes);
    }
    if (bytes && !api.prepack) {
      return fmt::format(
          "it asks for {} bytes for the packed form of input {}, but slot 'prepack' of table 'kernel' is "
          "NULL",
          bytes, i);
    }
  }
  for (uint64_t i = 0; answer.prepack_forms && i < input_count; ++i) {
    const mge_text& form = answer.prepack_forms[i];
    if (form.size > kMaxFormBytes || (form.size && !form.data)) {
      return fmt::format("the name of the packed form of input {} is missing or longer than {} bytes", i, kMaxFormBytes);
    }
  }
  if (answer.has_state && !api.state_create) return "it has state, but slot 'state_create' of table 'kernel' is NULL";
  return {};
}

namespace {

// Takes the kernel in `out`, and checks the rest.
absl::StatusOr<KernelHandle> Take(const Device& device, const mge_problem& problem, const OwnedCandidate& candidate,
                                  const mge_prepared& out) {
  const mge_kernel_api& api = device.kernel_api();
  KernelHandle kernel = out.kernel ? KernelHandle(out.kernel, KernelDeleter{&api}) : nullptr;
  std::string why = WhyUnsound(api, out, problem.graph->input_count);
  if (why.empty() && out.workspace_bytes > candidate.workspace) {
    why =
        fmt::format("it asks for {} bytes of workspace, but promised {} at most", out.workspace_bytes, candidate.workspace);
  }
  if (!why.empty()) return Unusable(device, candidate, std::move(why));
  return kernel;
}

}  // namespace

absl::StatusOr<KernelHandle> PrepareKernel(Device& device, const mge_problem& problem, const OwnedCandidate& candidate,
                                           mge_prepared& out) {
  const mge_kernel_api& api = device.kernel_api();
  OwnedCandidate::Abi abi = candidate.ToAbi();
  out = {};
  out.struct_size = sizeof(out);
  MGE_RETURN_IF_ERROR(QueryDevice(device, "preparing " + candidate.id, [&](mge_error* e) {
    return api.prepare(device.handle(), &problem, &abi.candidate, &out, e);
  }));
  return Take(device, problem, candidate, out);
}

absl::StatusOr<KernelHandle> RebindKernel(Device& device, mge_kernel* kernel, const mge_problem& problem,
                                          const OwnedCandidate& candidate, mge_prepared& out) {
  const mge_kernel_api& api = device.kernel_api();
  out = {};
  out.struct_size = sizeof(out);
  absl::Status status =
      QueryDevice(device, "rebinding " + candidate.id, [&](mge_error* e) { return api.rebind(kernel, &problem, &out, e); });
  if (status.code() == absl::StatusCode::kUnimplemented) return KernelHandle();
  MGE_RETURN_IF_ERROR(status);
  return Take(device, problem, candidate, out);
}

absl::StatusOr<mge_step_fn> BindKernel(Device& device, const OwnedCandidate& candidate, mge_kernel* kernel,
                                       const mge_binding& binding, void* args) {
  mge_step_fn fn = nullptr;
  MGE_RETURN_IF_ERROR(QueryDevice(device, "binding " + candidate.id,
                                  [&](mge_error* e) { return device.kernel_api().bind(kernel, &binding, args, &fn, e); }));
  if (!fn) return Unusable(device, candidate, "bind returned MGE_OK, but no function");
  return fn;
}

}  // namespace mge
