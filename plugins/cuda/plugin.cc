// SPDX-License-Identifier: Apache-2.0
// The parts of the CUDA backend, which it shares with other drivers of GPUs (plugins/gpu/runtime). Pool, reserve policy and
// strategy are the host's.
#include "mge_kernel_set.h"
#include "plugins/gpu/launch.h"
#include "plugins/gpu/runtime/memory.h"
#include "plugins/gpu/runtime/queue.h"
#include "vendor.h"

namespace mge::cuda {
namespace {

struct Backend : BackendDefaults {
  static constexpr std::string_view kName = "cuda";
  static constexpr std::string_view kVersion = MGE_CUDA_VERSION;
  static constexpr std::string_view kClasses = "cuda,gpu";
  static constexpr std::string_view kKernelSet = MGE_KERNEL_SET;

  static constexpr const mge_setting* kSettings[] = {&kDriver, &kComputeQueues};
  using Device = gpu::Device;
  using Memory = gpu::MemoryWithRanges;
  using Queue = gpu::Queue;
  using Fence = gpu::Fence;
  using Record = gpu::Graph;
  using Stamp = gpu::Stamp;
  using Kernels = gpu::KernelRows;
  using Claims = mge::Claims<gpu::FindClaims>;

  static Result Start() { return gpu::LoadDriver(); }
};

}  // namespace
}  // namespace mge::cuda

MGE_BACKEND(mge::cuda::Backend);
