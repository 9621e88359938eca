// SPDX-License-Identifier: Apache-2.0
// Streams of the driver that an application has created, and with which it orders runs (native_stream of mge_run_options). A
// backend with queues offers them as an extension:
//
//   struct UserStreams {
//     // Sets the fence to `value` when all work that is now on the stream is done.
//     static mge::Result Signal(Device& device, void* stream, Fence& fence, uint64_t value);
//     // Delays later work of the stream until the fence has reached `value`, whose signal was enqueued.
//     static mge::Result Wait(Device& device, void* stream, Fence& fence, uint64_t value);
//   };
//   static const void* Extension(std::string_view name, uint32_t min_version) {   // in the backend's struct
//     return mge::NativeStreams<Device, Fence, UserStreams>(name, min_version);
//   }
#pragma once

#include <cstdint>
#include <string_view>

#include "mge/native_streams.h"
#include "mge/plugin/error.hpp"
#include "mge/plugin/structs.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {
namespace internal {

template <typename D, typename F, typename S>
struct NativeStreamsTable {
  static mge_code Signal(mge_device* device, void* stream, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return S::Signal(As<D>(device), stream, As<F>(fence), value); });
  }
  static mge_code Wait(mge_device* device, void* stream, mge_fence* fence, uint64_t value, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> Result { return S::Wait(As<D>(device), stream, As<F>(fence), value); });
  }
  static constexpr mge_native_streams_api kApi = Table<mge_native_streams_api>([](auto& t) {
    t.signal = Signal;
    t.wait = Wait;
  });
};

}  // namespace internal

// Returns the table of the extension if it has this name and version, else NULL.
template <typename Device, typename Fence, typename UserStreams>
const void* NativeStreams(std::string_view name, uint32_t min_version) {
  constexpr uint32_t kVersion = 1;
  const bool asked = name == MGE_NATIVE_STREAMS_EXTENSION && min_version <= kVersion;
  return asked ? &internal::NativeStreamsTable<Device, Fence, UserStreams>::kApi : nullptr;
}

}  // namespace MGE_HIDDEN
