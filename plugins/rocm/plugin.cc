// SPDX-License-Identifier: Apache-2.0
// The parts of the ROCm backend, which it shares with other drivers of GPUs (plugins/gpu/runtime). Pool, reserve policy and
// strategy are the host's.
#include <vector>

#include "convolutions.h"
#include "device.h"
#include "mge/plugin/native_streams.hpp"
#include "mge_kernel_set.h"
#include "plugins/gpu/launch.h"
#include "plugins/gpu/runtime/collectives.h"
#include "plugins/gpu/runtime/compiled_chains.h"
#include "plugins/gpu/runtime/memory.h"
#include "plugins/gpu/runtime/native_streams.h"
#include "plugins/gpu/runtime/queue.h"
#include "plugins/gpu/runtime/rows.h"
#include "products.h"
#include "vendor.h"

namespace mge::rocm {
namespace {

struct AllRows {
  static const KernelRow* const* Rows(uint64_t* count) {
    static const std::vector<const KernelRow*> all = gpu::RowsWith({mge_kernels_products, mge_kernels_convolutions});
    *count = all.size();
    return all.data();
  }
};

struct Backend : BackendDefaults {
  static constexpr std::string_view kName = "rocm";
  static constexpr std::string_view kVersion = MGE_ROCM_VERSION;
  static constexpr std::string_view kClasses = "rocm,gpu";
  static constexpr std::string_view kKernelSet = MGE_KERNEL_SET;

  static constexpr const mge_setting* kSettings[] = {&kDriver,  &kComputeQueues, &kHiprtc,     &kRccl,
                                                     &kRocblas, &kMiopen,        &kMemoryRate, &kComputeRate};
  using Device = rocm::Device;
  using Memory = gpu::Memory;
  using Queue = gpu::Queue;
  using Fence = gpu::Fence;
  using Record = gpu::Graph;
  using Stamp = gpu::Stamp;
  using Communicator = gpu::Communicator;
  using Kernels = AllRows;
  using Claims = mge::Claims<gpu::FindClaims, gpu::OfferCompiledChains>;

  static Result Start() { return gpu::LoadDriver(); }
  static bool AllowRewrite(Device&, std::string_view) { return true; }
  static const void* Extension(std::string_view name, uint32_t min_version) {
    return NativeStreams<Device, Fence, gpu::UserStreams>(name, min_version);
  }
};

}  // namespace
}  // namespace mge::rocm

MGE_BACKEND(mge::rocm::Backend);
