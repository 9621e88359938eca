// SPDX-License-Identifier: Apache-2.0
// The backend of the template (plugins/null), whose queues wait in the calling thread, with its own pool.
// With FORGETS_FENCES the pool ignores the fence of the last use.
#include "backend.h"
#include "kernels/kernels.h"

namespace backend {
namespace {

struct OwnPool : mge::ReadyPool {
  OwnPool(Device& device, int32_t memory_class, const mge::SlabSource& slabs)
      : ReadyPool("naive", device, memory_class, slabs) {}
#ifdef FORGETS_FENCES
  void Release(const mge_reservation& reservation, const mge_fence_point*) { ReadyPool::Release(reservation, nullptr); }
#endif
};

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "template", kVersion = "1.0";
  using Device = backend::Device;
  using Memory = backend::Memory;
  using Pool = OwnPool;
  using Queue = backend::Queue;
  using Fence = backend::Fence;
  using Kernels = backend::Kernels;
};

}  // namespace
}  // namespace backend

MGE_BACKEND(backend::Backend);
