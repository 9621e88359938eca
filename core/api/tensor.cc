// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "core/api/objects.h"
#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/base/npy.h"
#include "core/onnx/tensor_file.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

using mge::DType;
using mge::Shape;
using mge::Tensor;
using mge::api::IsElementType;
using mge::api::Misuse;
using mge::api::NewTensor;
using mge::api::Wrap;

namespace {

// Splits "file.npz:name" into the path and the name, which is "" if there is none.
std::pair<std::string, std::string> SplitMember(const std::string& path) {
  size_t at = path.rfind(".npz:");
  if (at == std::string::npos) return {path, ""};
  return {path.substr(0, at + 4), path.substr(at + 5)};
}

// The formats of tensor files. The name of a file tells its format; that of a pipe does not.
enum class Format { kUnknown, kNpy, kNpz, kProto };

Format FormatOf(const std::string& path, mge::Bytes bytes) {
  if (path.ends_with(".npy")) return Format::kNpy;
  if (path.ends_with(".npz")) return Format::kNpz;
  if (path.ends_with(".pb")) return Format::kProto;
  const std::string_view text = mge::AsText(bytes);
  if (text.starts_with("\x93NUMPY")) return Format::kNpy;
  if (text.starts_with("PK\x03\x04")) return Format::kNpz;
  const bool is_pipe = path.starts_with("/dev/") || path.starts_with("/proc/");
  return is_pipe ? Format::kProto : Format::kUnknown;
}

}  // namespace

bool mge::api::IsElementType(mge_dtype dtype) { return dtype > 0 && kAnyType.Contains(static_cast<DType>(dtype)); }

mge_tensor* mge::api::NewTensor(Tensor tensor) {
  auto* out = new mge_tensor;
  out->value.tensor = std::move(tensor);
  return out;
}

namespace mge::api {

absl::StatusOr<HostValue> ReadValue(const std::string& text, ValueKind kind) {
  auto [path, member] = SplitMember(text);
  MGE_ASSIGN_OR_RETURN(const InputBytes file, ReadInput(path, kMaxArrayFileBytes));
  HostValue out;
  switch (FormatOf(path, file.bytes)) {
    case Format::kProto: {
      MGE_ASSIGN_OR_RETURN(onnx::NamedValue named,
                           onnx::ReadValueBytes(file.bytes, kind, UnlimitedHostAllocator(), file.name));
      return std::move(named.value);
    }
    case Format::kNpy: {
      MGE_ASSIGN_OR_RETURN(out.tensor, ReadNpyBytes(file.bytes, file.name, UnlimitedHostAllocator(), file.owner));
      return out;
    }
    case Format::kNpz: {
      MGE_ASSIGN_OR_RETURN(out.tensor, ReadNpzArray(file.bytes, file.name, member));
      return out;
    }
    case Format::kUnknown: break;
  }
  return Fail(errors::kBadInputFile, fmt::format("'{}' is not a tensor file by its name", path),
              {.fix = "use a file that ends in .npy, .npz or .pb"});
}

}  // namespace mge::api

mge_status* mge_tensor_create(mge_dtype dtype, const int64_t* dims, size_t rank, mge_tensor** out) try {
  MGE_API_NEEDS({"out", out}, {"dims", rank == 0 || dims != nullptr});
  if (!IsElementType(dtype)) return Misuse("mge_tensor_create", fmt::format("dtype {} is not an element type", dtype));
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(static_cast<DType>(dtype), Shape(dims, dims + rank)));
  if (tensor.dtype() != DType::kString && tensor.bytes())
    std::memset(tensor.mutable_data(), 0, static_cast<size_t>(tensor.bytes()));
  *out = NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_wrap(mge_dtype dtype, const int64_t* dims, size_t rank, void* data, uint64_t bytes,
                            mge_tensor** out) try {
  MGE_API_NEEDS({"out", out}, {"dims", rank == 0 || dims != nullptr}, {"data", bytes == 0 || data != nullptr});
  if (!IsElementType(dtype) || dtype == MGE_DTYPE_STRING) {
    return Misuse("mge_tensor_wrap", fmt::format("dtype {} is not an element type of plain bytes", dtype));
  }
  Shape shape(dims, dims + rank);
  MGE_API_ASSIGN_OR_RETURN(int64_t expected, mge::NumBytes(static_cast<DType>(dtype), shape));
  if (static_cast<uint64_t>(expected) != bytes) {
    return Wrap(mge::Fail(mge::errors::kInvalidTensor, "the size of the memory does not match the shape",
                          {.what = fmt::format("{}{} needs {} bytes, got {}", mge::DTypeName(static_cast<DType>(dtype)),
                                               mge::ShapeText(shape), expected, bytes)}));
  }
  if (reinterpret_cast<uintptr_t>(data) %
      static_cast<uintptr_t>(std::min<int64_t>(mge::ElementBytes(static_cast<DType>(dtype)), 8))) {
    return Misuse("mge_tensor_wrap", "the memory is not aligned to its elements");
  }
  *out = NewTensor(Tensor::View(static_cast<DType>(dtype), std::move(shape), data, nullptr));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_read(const char* path, mge_tensor** out) try {
  MGE_API_NEEDS({"path", path}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::HostValue value, mge::api::ReadValue(path, mge::ValueKind::kTensor));
  *out = new mge_tensor{std::move(value)};
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_read_npy_bytes(const void* data, uint64_t size, mge_tensor** out) try {
  MGE_API_NEEDS({"data", data}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(Tensor tensor, mge::ReadNpyBytes({static_cast<const std::byte*>(data), size}, "memory"));
  *out = NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_tensor_write_npy(const mge_tensor* tensor, const char* path) try {
  MGE_API_NEEDS({"tensor", tensor}, {"path", path});
  MGE_API_ASSIGN_OR_RETURN(const Tensor host, mge::ToHost(tensor->value.tensor));
  return Wrap(mge::WriteNpy(path, host));
}
MGE_API_CATCH

void mge_tensor_release(mge_tensor* tensor) { delete tensor; }

mge_dtype mge_tensor_dtype(const mge_tensor* tensor) { return static_cast<mge_dtype>(tensor->value.tensor.dtype()); }
size_t mge_tensor_rank(const mge_tensor* tensor) { return static_cast<size_t>(tensor->value.tensor.rank()); }
const int64_t* mge_tensor_dims(const mge_tensor* tensor) { return tensor->value.tensor.shape().data(); }
uint64_t mge_tensor_elements(const mge_tensor* tensor) { return static_cast<uint64_t>(tensor->value.tensor.elements()); }
uint64_t mge_tensor_bytes(const mge_tensor* tensor) { return static_cast<uint64_t>(tensor->value.tensor.bytes()); }

int32_t mge_tensor_read_only(const mge_tensor* tensor) { return tensor->read_only ? 1 : 0; }
void mge_tensor_set_read_only(mge_tensor* tensor) { tensor->read_only = true; }

void* mge_tensor_data(mge_tensor* tensor) {
  Tensor& t = tensor->value.tensor;
  return t.dtype() == DType::kString || !mge::DeviceMemory::OnHost(t) ? nullptr : t.mutable_data();
}

mge_text mge_tensor_string(const mge_tensor* tensor, uint64_t index) {
  const Tensor& t = tensor->value.tensor;
  if (t.dtype() != DType::kString || index >= static_cast<uint64_t>(t.elements())) return {"", 0};
  const std::string& s = t.Data<std::string>()[index];
  return {s.data(), s.size()};
}

mge_status* mge_tensor_set_string(mge_tensor* tensor, uint64_t index, const char* text, size_t size) try {
  MGE_API_NEEDS({"tensor", tensor});
  Tensor& t = tensor->value.tensor;
  if (tensor->read_only) return Misuse("mge_tensor_set_string", "the tensor must not be written (mge_tensor_read_only)");
  if (t.dtype() != DType::kString || index >= static_cast<uint64_t>(t.elements()) || (!text && size)) {
    return Misuse("mge_tensor_set_string", "the tensor has no strings, or the index is out of range");
  }
  t.MutableData<std::string>()[index].assign(text, size);
  return nullptr;
}
MGE_API_CATCH

const char* mge_dtype_name(mge_dtype dtype) { return mge::DTypeName(static_cast<DType>(dtype)).data(); }
