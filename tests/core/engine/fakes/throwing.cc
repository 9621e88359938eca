// SPDX-License-Identifier: Apache-2.0
// A backend whose Relu throws across the boundary if the first element is negative.
//
// It throws a std::exception for -1, and an int for other negative numbers. THROWING_QUEUES gives the backend queues that
// run everything in the calling thread.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "mge/plugin.hpp"
#include "test_device.h"

namespace {

struct Relu {
  static constexpr const char* kOp = "Relu";
  static constexpr const char* kId = THROWING_NAME ".relu";
  static mge::Support Supports(const mge::Problem& p) {
    return p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_F32 ? mge::Yes() : mge::No("only a Relu of float32");
  }
  explicit Relu(const mge::Problem& p) : count(p.input(0).elements()) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<float>(run, x);
    if (from[0] == -1) throw std::runtime_error("the step exploded");
    if (from[0] < 0) throw 7;
    std::transform(from, from + count, mge::At<float>(run, y), [](float f) { return std::max(f, 0.0f); });
    return MGE_OK;
  }
  uint64_t count;
  mge::Slot x, y;
};
constexpr mge::KernelRow kRelu = mge::Row<Relu>();

#if defined(THROWING_QUEUES)
struct Fence {
  explicit Fence(Device&) {}
  mge::Result HostWait(uint64_t wanted, uint64_t) {
    return value >= wanted ? mge::Result() : mge::Result(MGE_DEADLINE_EXCEEDED, "not yet");
  }
  uint64_t value = 0;
};
struct Queue {
  Queue(Device&, int32_t) {}
  mge::Result Copy(void* to, const void* from, uint64_t bytes) { return std::memcpy(to, from, bytes), mge::Result(); }
  mge::Result Signal(Fence& fence, uint64_t value) { return fence.value = value, mge::Result(); }
  mge::Result Wait(Fence&, uint64_t) { return {}; }
};
#endif

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = THROWING_NAME, kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kRelu>;
#if defined(THROWING_QUEUES)
  using Queue = ::Queue;
  using Fence = ::Fence;
#endif
};

// Binds the kernel as the SDK does, but without the guard that catches exceptions.
mge_code Bind(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* step, mge_error* error) {
  mge_code code = mge::internal::Tables<Backend>::kKernel.bind(kernel, binding, args, step, error);
  *step = [](const void* a, const mge_run* run) { return static_cast<const Relu*>(a)->Launch(run); };
  return code;
}
constexpr mge_kernel_api kKernels = [] {
  mge_kernel_api api = mge::internal::Tables<Backend>::kKernel;
  api.bind = Bind;
  return api;
}();
constexpr mge_plugin kPlugin = [] {
  mge_plugin plugin = mge::internal::Tables<Backend>::kPlugin;
  plugin.kernel = &kKernels;
  return plugin;
}();

}  // namespace

MGE_PLUGIN_ENTRY(kPlugin)
MGE_BACKEND_NOTE(Backend);
