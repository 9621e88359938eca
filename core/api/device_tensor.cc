// SPDX-License-Identifier: Apache-2.0
// Tensors on devices.
#include "core/plugin/device_tensor.h"

#include <functional>
#include <utility>

#include "core/api/callback.h"
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "fmt/format.h"

using mge::DeviceMemory;
using mge::DType;
using mge::Shape;
using mge::Tensor;
using mge::api::Misuse;
using mge::api::NewTensor;
using mge::api::Wrap;

namespace {

absl::Status CheckArguments(std::string_view function, int32_t place, mge_dtype dtype) {
  auto misuse = [&](std::string what) { return mge::Fail(mge::errors::kApiMisuse, fmt::format("{}: {}", function, what)); };
  if (place != MGE_PLACE_DEVICE && place != MGE_PLACE_PAGE_LOCKED) {
    return misuse(fmt::format("place {} is not MGE_PLACE_DEVICE or MGE_PLACE_PAGE_LOCKED", place));
  }
  if (dtype <= 0 || !mge::kAnyType.Contains(static_cast<DType>(dtype))) {
    return misuse(fmt::format("dtype {} is not an element type", dtype));
  }
  return absl::OkStatus();
}

int32_t ClassOf(int32_t place) { return place == MGE_PLACE_PAGE_LOCKED ? MGE_MEMORY_PINNED : MGE_MEMORY_DEVICE; }

// Returns the one device with that name, opened.
absl::StatusOr<mge::Device*> DeviceOf(mge_runtime* runtime, const char* name) {
  MGE_ASSIGN_OR_RETURN(mge::Resolution found, runtime->runtime->devices().Resolve(std::string_view(name)));
  if (found.devices.size() == 1) return found.devices.front().device;
  return mge::Fail(mge::errors::kBadDeviceName, fmt::format("'{}' is not the name of one device", name),
                   {.fix = "name one device, such as gpu0"});
}

// Returns an object that calls `release` (nullable) when its last owner is destroyed, also if the function that creates it
// fails.
std::shared_ptr<void> CallAtEnd(mge_release_fn release, void* state) {
  return std::shared_ptr<void>(state, [release](void* s) {
    if (release) mge::api::CallApplication([&] { release(s); });
  });
}

}  // namespace

mge_status* mge_tensor_create_on(mge_runtime* runtime, const char* device, int32_t place, mge_dtype dtype,
                                 const int64_t* dims, size_t rank, mge_tensor** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"device", device}, {"dims", rank == 0 || dims != nullptr}, {"out", out});
  MGE_API_RETURN_IF_ERROR(CheckArguments("mge_tensor_create_on", place, dtype));
  MGE_API_ASSIGN_OR_RETURN(mge::Device* const on, DeviceOf(runtime, device));
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, DeviceMemory::Create(*on, ClassOf(place), static_cast<DType>(dtype),
                                                               Shape(dims, dims + rank), runtime->runtime));
  *out = NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_wrap_on(mge_runtime* runtime, const char* device, int32_t place, mge_dtype dtype, const int64_t* dims,
                               size_t rank, void* address, uint64_t bytes, mge_release_fn release, void* state,
                               mge_tensor** out) try {
  const std::shared_ptr<void> released = CallAtEnd(release, state);
  MGE_API_NEEDS({"runtime", runtime}, {"device", device}, {"dims", rank == 0 || dims != nullptr},
                {"address", bytes == 0 || address != nullptr}, {"out", out});
  MGE_API_RETURN_IF_ERROR(CheckArguments("mge_tensor_wrap_on", place, dtype));
  MGE_API_ASSIGN_OR_RETURN(mge::Device* const on, DeviceOf(runtime, device));
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, DeviceMemory::Wrap(
                                              *on, ClassOf(place), static_cast<DType>(dtype), Shape(dims, dims + rank),
                                              address, bytes, [released] {}, runtime->runtime));
  *out = NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_wrap_handle(mge_runtime* runtime, const char* device, mge_dtype dtype, const int64_t* dims,
                                   size_t rank, void* handle, uint64_t offset, uint64_t bytes, mge_release_fn release,
                                   void* state, mge_tensor** out) try {
  const std::shared_ptr<void> released = CallAtEnd(release, state);
  MGE_API_NEEDS({"runtime", runtime}, {"device", device}, {"dims", rank == 0 || dims != nullptr}, {"handle", handle},
                {"out", out});
  MGE_API_RETURN_IF_ERROR(CheckArguments("mge_tensor_wrap_handle", MGE_PLACE_DEVICE, dtype));
  MGE_API_ASSIGN_OR_RETURN(mge::Device* const on, DeviceOf(runtime, device));
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, DeviceMemory::WrapHandle(
                                              *on, static_cast<DType>(dtype), Shape(dims, dims + rank), handle, offset,
                                              bytes, [released] {}, runtime->runtime));
  *out = NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_copy(const mge_tensor* source, mge_tensor* destination) try {
  MGE_API_NEEDS({"source", source}, {"destination", destination});
  if (source->value.kind != mge::ValueKind::kTensor || destination->value.kind != mge::ValueKind::kTensor) {
    return Misuse("mge_tensor_copy", "a sequence or optional cannot be copied; copy its parts");
  }
  return Wrap(mge::CopyTensor(source->value.tensor, destination->value.tensor));
}
MGE_API_CATCH

const char* mge_tensor_device(const mge_tensor* tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor->value.tensor);
  return memory ? memory->device().name().c_str() : "";
}

int32_t mge_tensor_place(const mge_tensor* tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor->value.tensor);
  return memory && memory->pinned() ? MGE_PLACE_PAGE_LOCKED : MGE_PLACE_DEVICE;
}

void* mge_tensor_address(mge_tensor* tensor) {
  const Tensor& t = tensor->value.tensor;
  const DeviceMemory* memory = DeviceMemory::Of(t);
  return memory ? memory->QueueAddress(t.data()) : mge_tensor_data(tensor);
}

mge_status* mge_tensor_map(mge_tensor* tensor, void** out) try {
  MGE_API_NEEDS({"tensor", tensor}, {"out", out});
  const Tensor& t = tensor->value.tensor;
  if (!DeviceMemory::OnHost(t)) {
    return Misuse("mge_tensor_map", fmt::format("the tensor lies on device {}, whose memory the host cannot access; copy it "
                                                "with mge_tensor_copy, or create it with MGE_PLACE_PAGE_LOCKED",
                                                DeviceMemory::Of(t)->device().name()));
  }
  if (t.dtype() == DType::kString) return Misuse("mge_tensor_map", "the elements are strings; use mge_tensor_string");
  *out = mge_tensor_data(tensor);
  return nullptr;
}
MGE_API_CATCH
