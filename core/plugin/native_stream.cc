// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/native_stream.h"

#include "core/base/errors.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/ask.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns the functions by which the backend uses streams of its driver, or nullptr.
const mge_native_streams_api* StreamsOf(const Backend& backend) {
  const void* table = nullptr;
  mge_error ignored;
  CallBackend(ignored, [&](mge_error*) {
    if (auto extension = backend.plugin().extension) table = extension(MGE_NATIVE_STREAMS_EXTENSION, 1);
    return MGE_OK;
  });
  const auto* api = static_cast<const mge_native_streams_api*>(table);
  return api && Covers(api, &mge_native_streams_api::wait) && api->signal && api->wait ? api : nullptr;
}

}  // namespace

absl::StatusOr<NativeStream> NativeStream::On(Device& device, void* handle) {
  MGE_RETURN_IF_ERROR(device.Open());
  const bool queues = device.queue_api() != nullptr;
  const mge_native_streams_api* api = queues ? StreamsOf(device.backend()) : nullptr;
  if (api) return NativeStream(device, handle, api);
  return Fail(errors::kDeviceUnusable,
              fmt::format("device {} cannot be ordered with a stream of the application", device.name()),
              {.what = queues ? fmt::format("backend '{}' does not offer the extension " MGE_NATIVE_STREAMS_EXTENSION,
                                            device.backend().name())
                              : "it has no queues: a run has ended when its call returns",
               .fix = "wait for the work on the stream before the run, and leave native_stream out"});
}

absl::Status NativeStream::Signal(mge_fence* fence, uint64_t value) const {
  return QueryDevice(*device_, "signalling a fence on a stream of the application",
                     [&](mge_error* e) { return api_->signal(device_->handle(), handle_, fence, value, e); });
}

absl::Status NativeStream::Wait(mge_fence* fence, uint64_t value) const {
  return QueryDevice(*device_, "waiting for a fence on a stream of the application",
                     [&](mge_error* e) { return api_->wait(device_->handle(), handle_, fence, value, e); });
}

}  // namespace mge
