// SPDX-License-Identifier: Apache-2.0
// The parts of the CUDA backend, which it shares with other drivers of GPUs (plugins/gpu/runtime). Pool, reserve policy and
// strategy are the host's.
#include <vector>

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
#ifdef MGE_CUDNN
#include "convolutions.h"
#include "pools.h"
#endif

namespace mge::cuda {
namespace {

struct AllRows {
  static const KernelRow* const* Rows(uint64_t* count) {
    static const std::vector<const KernelRow*> all = gpu::RowsWith({mge_kernels_products
#ifdef MGE_CUDNN
                                                                    ,
                                                                    mge_kernels_convolutions, mge_kernels_pools
#endif
    });
    *count = all.size();
    return all.data();
  }
};

struct Backend : BackendDefaults {
  static constexpr std::string_view kName = "cuda";
  static constexpr std::string_view kVersion = MGE_CUDA_VERSION;
  static constexpr std::string_view kClasses = "cuda,gpu";
  static constexpr std::string_view kKernelSet = MGE_KERNEL_SET;

  static constexpr const mge_setting* kSettings[] = {&kDriver, &kComputeQueues, &kCublasLt,    &kNvrtc,
                                                     &kNccl,   &kMemoryRate,    &kComputeRate, &kMatrixRate,
#ifdef MGE_CUDNN
                                                     &kCudnn
#endif
  };
  using Device = cuda::Device;
  using Memory = gpu::MemoryWithRanges;
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
}  // namespace mge::cuda

MGE_BACKEND(mge::cuda::Backend);
