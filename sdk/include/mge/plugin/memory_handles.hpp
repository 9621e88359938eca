// SPDX-License-Identifier: Apache-2.0
// Memory that an application has allocated with the driver and wraps by its handle (mge_tensor_wrap_handle). A backend whose
// memory has handles offers it as an extension:
//
//   struct UserMemory {
//     // Makes the memory behind `handle` a slab of class MGE_MEMORY_DEVICE.
//     static mge::Result Wrap(Device& device, void* handle, uint64_t bytes, mge_slab* out);
//     // Ends the slab. The memory stays the application's.
//     static void Unwrap(Device& device, const mge_slab& slab);
//   };
//   static const void* Extension(std::string_view name, uint32_t min_version) {   // in the backend's struct
//     return mge::MemoryHandles<Device, UserMemory>(name, min_version);
//   }
#pragma once

#include <cstdint>
#include <string_view>

#include "mge/memory_handles.h"
#include "mge/plugin/error.hpp"
#include "mge/plugin/structs.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {
namespace internal {

template <typename D, typename M>
struct MemoryHandlesTable {
  static mge_code Wrap(mge_device* device, void* handle, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
    return FillOut(error, out, [&](mge_slab* slab) { return M::Wrap(As<D>(device), handle, bytes, slab); });
  }
  static void Unwrap(mge_device* device, const mge_slab* slab) noexcept {
    Quietly([&] { M::Unwrap(As<D>(device), Whole(*slab)); });
  }
  static constexpr mge_memory_handles_api kApi = Table<mge_memory_handles_api>([](auto& t) {
    t.wrap = Wrap;
    t.unwrap = Unwrap;
  });
};

}  // namespace internal

// Returns the table of the extension if it has this name and version, else NULL.
template <typename Device, typename UserMemory>
const void* MemoryHandles(std::string_view name, uint32_t min_version) {
  constexpr uint32_t kVersion = 1;
  const bool asked = name == MGE_MEMORY_HANDLES_EXTENSION && min_version <= kVersion;
  return asked ? &internal::MemoryHandlesTable<Device, UserMemory>::kApi : nullptr;
}

}  // namespace MGE_HIDDEN
