// SPDX-License-Identifier: Apache-2.0
// The parts of the virtual GPU. Pool, reserve policy and strategy are the host's.
#include <optional>

#include "backend.h"
#include "mge_kernel_set.h"
#include "plugins/gpu/launch.h"

namespace mge::virtual_gpu {
namespace {

std::optional<Options>& TheOptions() {
  static std::optional<Options> options;
  return options;
}

struct Backend : BackendDefaults {
  static constexpr std::string_view kName = "virtual";
  static constexpr std::string_view kVersion = MGE_VIRTUAL_VERSION;
  static constexpr std::string_view kClasses = "virtual,gpu";
  static constexpr std::string_view kKernelSet = MGE_KERNEL_SET;

  static constexpr const mge_setting* kSettings[] = {
      &kDevices, &kGpu,         &kMemory,      &kMaxAllocation, &kBufferAlignment, &kComputeQueues,
      &kLinks,   &kBandwidth,   &kLatency,     &kLaunchLatency, &kFault,           &kPoison,
      &kWarp,    &kThreadOrder, &kWrongKernel, &kReopen,        &kCompileTime,     &kForbidRewrites};
  using Device = virtual_gpu::Device;
  using Memory = virtual_gpu::Memory;
  using Queue = virtual_gpu::Queue;
  using Fence = virtual_gpu::Fence;
  using Record = virtual_gpu::Record;
  using Stamp = virtual_gpu::Stamp;
  using Kernels = virtual_gpu::Kernels;
  using Claims = mge::Claims<gpu::FindClaims>;
  using Communicator = virtual_gpu::Communicator;

  static Result Start() {
    const Options& o = TheOptions().emplace(ReadOptions());
    // With devices, each of them reports the problem.
    if (o.devices == 0 && !o.problem.ok()) Log(MGE_LOG_WARNING, o.problem.text());
    return {};
  }
  static void Stop() { TheOptions().reset(); }
  static bool AllowRewrite(Device&, std::string_view name) {
    return CurrentOptions().forbidden.find("," + std::string(name) + ",") == std::string::npos;
  }
  static const void* Extension(std::string_view name, uint32_t min_version) {
    const void* faults = FaultsExtension(name, min_version);
    return faults ? faults : NativeStreamsExtension(name, min_version);
  }
};

}  // namespace

const Options& CurrentOptions() { return *TheOptions(); }

}  // namespace mge::virtual_gpu

MGE_BACKEND(mge::virtual_gpu::Backend);
