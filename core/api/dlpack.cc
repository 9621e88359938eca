// SPDX-License-Identifier: Apache-2.0
// The exchange of tensors through DLPack. The structs are those of dlpack.h: of version 1 (DLManagedTensorVersioned), and of the
// versions before (DLManagedTensor).
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/api/callback.h"
#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

extern "C" {
struct DLDevice {
  int32_t device_type, device_id;
};
struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;  // strides in elements; NULL: dense and row-major
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};
struct DLPackVersion {
  uint32_t major, minor;
};
struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};
}

using mge::DeviceMemory;
using mge::DType;
using mge::Shape;
using mge::Tensor;
using mge::api::Misuse;

namespace {

constexpr DLPackVersion kVersion = {1, 1};
constexpr uint64_t kReadOnly = 1;  // a bit of the flags

// Values of DLDeviceType.
constexpr int32_t kCpu = 1, kExtDev = 12;
struct DeviceTypeRow {
  std::string_view class_name;  // of the device
  int32_t memory, page_locked;
};
constexpr DeviceTypeRow kDeviceTypes[] = {{"cpu", kCpu, kCpu}, {"cuda", 2, 3}, {"rocm", 10, 11}};

// Values of DLDataTypeCode, with the bits of the type.
struct DataTypeRow {
  DType dtype;
  uint8_t code, bits;
};
constexpr uint8_t kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6;
constexpr DataTypeRow kDataTypes[] = {
    {DType::kF32, kFloat, 32}, {DType::kF64, kFloat, 64}, {DType::kF16, kFloat, 16}, {DType::kBF16, kBfloat, 16},
    {DType::kI8, kInt, 8},     {DType::kI16, kInt, 16},   {DType::kI32, kInt, 32},   {DType::kI64, kInt, 64},
    {DType::kU8, kUInt, 8},    {DType::kU16, kUInt, 16},  {DType::kU32, kUInt, 32},  {DType::kU64, kUInt, 64},
    {DType::kBool, kBool, 8},
};

DLDevice DlDeviceOf(const Tensor& tensor) {
  const DeviceMemory* memory = DeviceMemory::Of(tensor);
  if (!memory) return {kCpu, 0};
  const mge::Device& device = memory->device();
  for (const DeviceTypeRow& row : kDeviceTypes) {
    if (row.class_name == device.class_name()) return {memory->pinned() ? row.page_locked : row.memory, device.number()};
  }
  return memory->on_host() ? DLDevice{kCpu, 0} : DLDevice{kExtDev, device.number()};
}

// Returns the class of memory of a tensor of DLPack that lies on `device`. Fails if it lies elsewhere.
absl::StatusOr<int32_t> MemoryClassOn(const mge::Device& device, const DLDevice& at) {
  DeviceTypeRow types = {device.class_name(), device.Is(MGE_DEVICE_HOST_ACCESSIBLE) ? kCpu : kExtDev, kCpu};
  for (const DeviceTypeRow& row : kDeviceTypes) {
    if (row.class_name == device.class_name()) types = row;
  }
  const int32_t number = types.memory == kCpu ? at.device_id : device.number();
  if (at.device_id == number && at.device_type == types.memory) return MGE_MEMORY_DEVICE;
  if (at.device_id == number && at.device_type == types.page_locked && types.page_locked != kCpu) return MGE_MEMORY_PINNED;
  return mge::Fail(mge::errors::kInvalidTensor, fmt::format("the tensor does not lie on device {}", device.name()),
                   {.what = fmt::format("it lies on DLPack's device ({}, {}), and {} is ({}, {})", at.device_type,
                                        at.device_id, device.name(), types.memory, number),
                    .fix = "name the device on which it lies, and copy the tensor afterwards"});
}

// A tensor that another library uses. `Managed` is the struct of its version.
template <typename Managed>
struct Exported {
  Managed managed = {};
  Tensor tensor;
  std::vector<int64_t> dims, strides;
};

// Returns true if the elements are dense and in row-major order.
bool IsDense(const DLTensor& t) {
  if (!t.strides || std::find(t.shape, t.shape + t.ndim, 0) != t.shape + t.ndim) return true;
  int64_t step = 1;
  for (int32_t d = t.ndim; d-- > 0; step *= t.shape[d]) {
    if (t.shape[d] != 1 && t.strides[d] != step) return false;
  }
  return true;
}

absl::Status Unusable(std::string what) {
  return mge::Fail(mge::errors::kInvalidTensor, "the DLPack tensor cannot be used", {.what = std::move(what)});
}

// Checks what a tensor from DLPack must be, and returns its type.
absl::StatusOr<DType> ElementTypeOf(const DLTensor& t) {
  if (t.ndim < 0 || (t.ndim > 0 && !t.shape)) return Unusable(fmt::format("it has {} dimensions without sizes", t.ndim));
  if (std::any_of(t.shape, t.shape + t.ndim, [](int64_t n) { return n < 0; })) return Unusable("a dimension is negative");
  auto row = std::find_if(std::begin(kDataTypes), std::end(kDataTypes), [&](const DataTypeRow& r) {
    return r.code == t.dtype.code && r.bits == t.dtype.bits && t.dtype.lanes == 1;
  });
  if (row == std::end(kDataTypes)) {
    return Unusable(fmt::format("its element type (code {}, {} bits, {} lanes) has no counterpart", t.dtype.code,
                                t.dtype.bits, t.dtype.lanes));
  }
  return row->dtype;
}

// Returns a dense copy of elements with strides in host memory.
absl::StatusOr<Tensor> DenseCopy(const DLTensor& t, DType dtype, Shape shape, const void* address) {
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, std::move(shape)));
  const auto size = static_cast<size_t>(mge::ElementBytes(dtype));
  auto* to = static_cast<char*>(out.mutable_data());
  const auto* from = static_cast<const char*>(address);
  std::vector<int64_t> at(static_cast<size_t>(t.ndim), 0);
  int64_t offset = 0;  // in elements
  for (int64_t i = 0; i < out.elements(); ++i, to += size) {
    std::memcpy(to, from + offset * static_cast<int64_t>(size), size);
    for (size_t d = at.size(); d-- > 0;) {
      offset += t.strides[d];
      if (++at[d] < t.shape[d]) break;
      offset -= t.strides[d] * t.shape[d];
      at[d] = 0;
    }
  }
  return out;
}

// Marks what this library shares, in the structs that can tell it.
void SetVersion(DLManagedTensor&, bool) {}
void SetVersion(DLManagedTensorVersioned& managed, bool read_only) {
  managed.version = kVersion;
  managed.flags = read_only ? kReadOnly : 0;
}

// Checks that the struct has a layout that this library knows, and returns whether the tensor must not be written.
absl::StatusOr<bool> ReadOnly(const DLManagedTensor&) { return false; }
absl::StatusOr<bool> ReadOnly(const DLManagedTensorVersioned& managed) {
  if (managed.version.major == kVersion.major) return (managed.flags & kReadOnly) != 0;
  return Unusable(fmt::format("it is of DLPack {}.{}, and this library knows {}.x", managed.version.major,
                              managed.version.minor, kVersion.major));
}

template <typename Managed>
absl::StatusOr<Managed*> Export(const mge_tensor& tensor) {
  const Tensor& t = tensor.value.tensor;
  auto row =
      std::find_if(std::begin(kDataTypes), std::end(kDataTypes), [&](const DataTypeRow& r) { return r.dtype == t.dtype(); });
  if (tensor.value.kind != mge::ValueKind::kTensor || row == std::end(kDataTypes)) {
    return mge::Fail(mge::errors::kApiMisuse, "DLPack has no sequences, optionals and strings");
  }
  auto exported = std::make_unique<Exported<Managed>>();
  exported->tensor = t;
  exported->dims.assign(t.shape().begin(), t.shape().end());
  exported->strides.resize(exported->dims.size());
  int64_t step = 1;
  for (size_t d = exported->dims.size(); d-- > 0; step *= exported->dims[d]) exported->strides[d] = step;
  Managed& managed = exported->managed;
  SetVersion(managed, tensor.read_only);
  const DeviceMemory* memory = DeviceMemory::Of(t);
  managed.dl_tensor.data = memory && !memory->on_host() ? memory->QueueAddress(t.data()) : const_cast<void*>(t.data());
  managed.dl_tensor.device = DlDeviceOf(t);
  managed.dl_tensor.ndim = static_cast<int32_t>(exported->dims.size());
  managed.dl_tensor.dtype = {row->code, row->bits, 1};
  managed.dl_tensor.shape = exported->dims.data();
  managed.dl_tensor.strides = exported->strides.data();
  managed.manager_ctx = exported.get();
  managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager_ctx); };
  return &exported.release()->managed;
}

// Takes ownership of `managed`, except on failure. `device` is nullptr for plain host memory.
template <typename Managed>
absl::StatusOr<mge_tensor*> Import(const std::shared_ptr<mge::Runtime>& runtime, mge::Device* device, Managed* managed) {
  const DLTensor& t = managed->dl_tensor;
  auto result = std::make_unique<mge_tensor>();
  MGE_ASSIGN_OR_RETURN(result->read_only, ReadOnly(*managed));
  MGE_ASSIGN_OR_RETURN(const DType dtype, ElementTypeOf(t));
  Shape shape(t.shape, t.shape + t.ndim);
  MGE_ASSIGN_OR_RETURN(const int64_t bytes, mge::NumBytes(dtype, shape));
  void* const address = static_cast<char*>(t.data) + t.byte_offset;
  auto release = [managed] {
    if (managed->deleter) mge::api::CallApplication([&] { managed->deleter(managed); });
  };
  if (!device) {
    if (t.device.device_type != kCpu) {
      return mge::Fail(
          mge::errors::kApiMisuse,
          fmt::format("the tensor lies on a device of DLPack's type {}; name the device", t.device.device_type));
    }
    if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(mge::ElementBytes(dtype))) {
      return mge::Fail(mge::errors::kApiMisuse, "the memory is not aligned to its elements");
    }
    if (!IsDense(t)) {
      MGE_ASSIGN_OR_RETURN(result->value.tensor, DenseCopy(t, dtype, std::move(shape), address));
      release();
      return result.release();
    }
    std::shared_ptr<const void> owner(address, [release](const void*) { release(); });
    result->value.tensor = Tensor::View(dtype, std::move(shape), address, std::move(owner));
    return result.release();
  }
  if (!IsDense(t)) return Unusable("it is not dense and row-major; make a contiguous copy first");
  MGE_ASSIGN_OR_RETURN(const int32_t memory_class, MemoryClassOn(*device, t.device));
  // Ownership of `managed` must not change if this fails, so the callback is armed afterwards.
  auto armed = std::make_shared<bool>(false);
  MGE_ASSIGN_OR_RETURN(result->value.tensor,
                       DeviceMemory::Wrap(
                           *device, memory_class, dtype, std::move(shape), address, static_cast<uint64_t>(bytes),
                           [release, armed] {
                             if (*armed) release();
                           },
                           runtime));
  *armed = true;
  return result.release();
}

template <typename Managed>
mge_status* ExportTo(const char* function, const mge_tensor* tensor, Managed** out) {
  if (mge_status* null = mge::api::NullAmong(function, {{"tensor", tensor}, {"out", out}})) return null;
  MGE_API_ASSIGN_OR_RETURN(*out, Export<Managed>(*tensor));
  return nullptr;
}

template <typename Managed>
mge_status* ImportFrom(const char* function, mge_runtime* runtime, const char* device, Managed* managed, mge_tensor** out) {
  if (mge_status* null =
          mge::api::NullAmong(function, {{"managed", managed}, {"out", out}, {"runtime", !device || runtime != nullptr}})) {
    return null;
  }
  if (!device) {
    MGE_API_ASSIGN_OR_RETURN(*out, Import(nullptr, nullptr, managed));
    return nullptr;
  }
  MGE_API_ASSIGN_OR_RETURN(mge::Resolution found, runtime->runtime->devices().Resolve(std::string_view(device)));
  if (found.devices.size() != 1) return Misuse(function, fmt::format("'{}' is not the name of one device", device));
  MGE_API_ASSIGN_OR_RETURN(*out, Import(runtime->runtime, found.devices.front().device, managed));
  return nullptr;
}

}  // namespace

mge_status* mge_tensor_to_dlpack(const mge_tensor* tensor, DLManagedTensorVersioned** out) try {
  return ExportTo(__func__, tensor, out);
}
MGE_API_CATCH

mge_status* mge_tensor_to_old_dlpack(const mge_tensor* tensor, DLManagedTensor** out) try {
  if (tensor && tensor->read_only) {
    return Misuse(__func__, "the tensor must not be written, which DLPack can tell since version 1 only; copy the tensor");
  }
  return ExportTo(__func__, tensor, out);
}
MGE_API_CATCH

mge_status* mge_tensor_from_dlpack(mge_runtime* runtime, const char* device, DLManagedTensorVersioned* managed,
                                   mge_tensor** out) try {
  return ImportFrom(__func__, runtime, device, managed, out);
}
MGE_API_CATCH

mge_status* mge_tensor_from_old_dlpack(mge_runtime* runtime, const char* device, DLManagedTensor* managed,
                                       mge_tensor** out) try {
  return ImportFrom(__func__, runtime, device, managed, out);
}
MGE_API_CATCH
