// SPDX-License-Identifier: Apache-2.0
// Streams that the application implements: they signal and wait for the events of this backend in work of their own.
#include "mge/plugin/native_streams.hpp"

#include <memory>
#include <string>
#include <utility>

#include "backend.h"
#include "mge/virtual_stream.h"

namespace mge::virtual_gpu {
namespace {

struct Point {
  std::shared_ptr<software::Event> event;
  uint64_t value;
};

// Appends work(point) to the stream, which then owns the point.
Result Append(void* stream, Point point, void (*work)(void*)) {
  const auto& s = *static_cast<const mge_virtual_stream*>(stream);
  if (s.struct_size < sizeof(s)) {
    return {MGE_INVALID_ARGUMENT, "struct_size of the mge_virtual_stream is " + std::to_string(s.struct_size) +
                                      "; call mge_virtual_stream_init() first"};
  }
  if (!s.append) return {MGE_INVALID_ARGUMENT, "the stream's function append is NULL"};
  auto argument = std::make_unique<Point>(std::move(point));
  if (const int32_t code = s.append(s.state, work, argument.get())) {
    return {MGE_UNAVAILABLE, "the stream's function append returned " + std::to_string(code)};
  }
  (void)argument.release();
  return {};
}

struct UserStreams {
  static Result Signal(Device& device, void* stream, Fence& fence, uint64_t value) {
    if (Result r = device.Health(); !r.ok()) return r;
    if (Result r = fence.event()->CheckSignal(value); !r.ok()) return r;
    Result r = Append(stream, {fence.event(), value}, [](void* argument) {
      const std::unique_ptr<Point> point(static_cast<Point*>(argument));
      point->event->Signal(point->value, nullptr, {});
    });
    if (r.ok()) fence.event()->Announce(value);
    return r;
  }
  static Result Wait(Device&, void* stream, Fence& fence, uint64_t value) {
    if (Result r = fence.event()->CheckWait(value); !r.ok()) return r;
    return Append(stream, {fence.event(), value}, [](void* argument) {
      const std::unique_ptr<Point> point(static_cast<Point*>(argument));
      point->event->Wait(point->value);
    });
  }
};

}  // namespace

const void* NativeStreamsExtension(std::string_view name, uint32_t min_version) {
  return NativeStreams<Device, Fence, UserStreams>(name, min_version);
}

}  // namespace mge::virtual_gpu
