// SPDX-License-Identifier: Apache-2.0
// The backend of the template (plugins/null), whose queues work in the calling thread, with its own pool.
#include "backend.h"
#include "kernels/kernels.h"

namespace backend {
namespace {

struct OwnPool : mge::ReadyPool {
  OwnPool(Device& device, int32_t memory_class, const mge::SlabSource& slabs)
      : ReadyPool("naive", device, memory_class, slabs) {}
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
