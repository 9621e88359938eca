// SPDX-License-Identifier: Apache-2.0
// Tensors at places: devices, page-locked memory, plain host memory.
#include "core/plugin/device_tensor.h"

#include <cstring>
#include <functional>
#include <utility>

#include "core/api/callback.h"
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/plugin/context.h"
#include "fmt/format.h"

using mge::DeviceMemory;
using mge::DType;
using mge::Shape;
using mge::Tensor;
using mge::api::CallAtEnd;
using mge::api::Misuse;
using mge::api::NewTensor;
using mge::api::Wrap;

namespace {

absl::Status CheckType(std::string_view function, mge_dtype dtype) {
  if (mge::api::IsElementType(dtype)) return absl::OkStatus();
  return mge::Fail(mge::errors::kApiMisuse, fmt::format("{}: dtype {} is not an element type", function, dtype));
}

// Where a tensor lies.
struct Place {
  mge::Device* device = nullptr;  // opened; nullptr: plain host memory
  int32_t memory_class = MGE_MEMORY_DEVICE;
};

// Returns the name in "cpu_pinned(NAME)", or "" for any other text: "cpu_pinned(0)" has the number of a GPU.
std::string_view LockingDevice(std::string_view place) {
  constexpr std::string_view kOpen = "cpu_pinned(";
  if (!place.starts_with(kOpen) || !place.ends_with(')')) return {};
  const std::string_view name = place.substr(kOpen.size(), place.size() - kOpen.size() - 1);
  return name.find_first_not_of("0123456789 -+") == std::string_view::npos ? std::string_view() : name;
}

// Returns the one device with that name, opened.
absl::StatusOr<mge::Device*> DeviceOf(mge::Runtime& runtime, std::string_view name) {
  MGE_ASSIGN_OR_RETURN(mge::Resolution found, runtime.devices().Resolve(name));
  if (found.devices.size() == 1) return found.devices.front().device;
  return mge::Fail(mge::errors::kBadDeviceName, fmt::format("'{}' is not the name of one device", name),
                   {.fix = "name one device, such as gpu0"});
}

// Returns the place with that text, or the one of the thread's context if it is NULL. See mge_tensor_create_on.
absl::StatusOr<Place> PlaceOf(mge::Runtime& runtime, const char* text) {
  std::string place;
  if (text) {
    place = text;
  } else {
    MGE_ASSIGN_OR_RETURN(const mge::Context current, mge::api::CurrentContextOf(runtime));
    place = current.ToString();
  }
  if (const std::string_view name = LockingDevice(place); !name.empty()) {
    MGE_ASSIGN_OR_RETURN(mge::Device* const device, DeviceOf(runtime, name));
    return Place{device, MGE_MEMORY_PINNED};
  }
  const absl::StatusOr<mge::DeviceName> name = mge::ParseDeviceName(place);
  if (name.ok() && name->cls == "cpu" && (name->context || name->number < 0)) return Place();
  if (name.ok() && name->cls == "cpu_pinned") {
    MGE_ASSIGN_OR_RETURN(mge::DeviceUse use, mge::PinnedDevice(runtime.devices(), name->number));
    return Place{use.device, MGE_MEMORY_PINNED};
  }
  MGE_ASSIGN_OR_RETURN(mge::Device* const device, DeviceOf(runtime, place));
  return Place{device, MGE_MEMORY_DEVICE};
}

absl::StatusOr<Tensor> CreateAt(const Place& place, DType dtype, Shape shape, const std::shared_ptr<mge::Runtime>& runtime) {
  absl::StatusOr<Tensor> tensor =
      place.device ? DeviceMemory::Create(*place.device, place.memory_class, dtype, std::move(shape), runtime)
                   : Tensor::Create(dtype, std::move(shape));
  if (tensor.ok() && dtype != DType::kString && tensor->bytes() && DeviceMemory::OnHost(*tensor)) {
    std::memset(tensor->mutable_data(), 0, static_cast<size_t>(tensor->bytes()));
  }
  return tensor;
}

}  // namespace

mge_status* mge_tensor_create_on(mge_runtime* runtime, const char* place, mge_dtype dtype, const int64_t* dims, size_t rank,
                                 mge_tensor** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"dims", rank == 0 || dims != nullptr}, {"out", out});
  MGE_API_RETURN_IF_ERROR(CheckType("mge_tensor_create_on", dtype));
  MGE_API_ASSIGN_OR_RETURN(const Place at, PlaceOf(*runtime->runtime, place));
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor,
                           CreateAt(at, static_cast<DType>(dtype), Shape(dims, dims + rank), runtime->runtime));
  *out = NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_wrap_on(mge_runtime* runtime, const char* place, mge_dtype dtype, const int64_t* dims, size_t rank,
                               void* address, uint64_t bytes, mge_release_fn release, void* state, mge_tensor** out) try {
  const std::shared_ptr<void> released = CallAtEnd(release, state);
  MGE_API_NEEDS({"runtime", runtime}, {"place", place}, {"dims", rank == 0 || dims != nullptr},
                {"address", bytes == 0 || address != nullptr}, {"out", out});
  MGE_API_RETURN_IF_ERROR(CheckType("mge_tensor_wrap_on", dtype));
  MGE_API_ASSIGN_OR_RETURN(const Place at, PlaceOf(*runtime->runtime, place));
  if (!at.device) {
    return Misuse("mge_tensor_wrap_on",
                  fmt::format("'{}' is plain host memory here; wrap it with mge_tensor_wrap, or name a device", place));
  }
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, DeviceMemory::Wrap(
                                              *at.device, at.memory_class, static_cast<DType>(dtype),
                                              Shape(dims, dims + rank), address, bytes, [released] {}, runtime->runtime));
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
  MGE_API_RETURN_IF_ERROR(CheckType("mge_tensor_wrap_handle", dtype));
  MGE_API_ASSIGN_OR_RETURN(mge::Device* const on, DeviceOf(*runtime->runtime, device));
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
  if (destination->read_only) return Misuse("mge_tensor_copy", "the destination must not be written (mge_tensor_read_only)");
  return Wrap(mge::CopyTensor(source->value.tensor, destination->value.tensor));
}
MGE_API_CATCH

const char* mge_tensor_device(const mge_tensor* tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor->value.tensor);
  return memory ? memory->device().name().c_str() : "";
}

int32_t mge_tensor_page_locked(const mge_tensor* tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor->value.tensor);
  return memory && memory->pinned() ? 1 : 0;
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
                                                "with mge_tensor_copy, or create it at cpu_pinned(0)",
                                                DeviceMemory::Of(t)->device().name()));
  }
  if (t.dtype() == DType::kString) return Misuse("mge_tensor_map", "the elements are strings; use mge_tensor_string");
  *out = mge_tensor_data(tensor);
  return nullptr;
}
MGE_API_CATCH
