// SPDX-License-Identifier: Apache-2.0
// Tensors of the C++ API; part of mge.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/context.hpp"
#include "mge/float16.hpp"
#include "mge/mge.h"
#include "mge/namespace.hpp"
#include "mge/result.hpp"
#include "mge/runtime.hpp"
#include "mge/span.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

template <typename T>
inline constexpr mge_dtype kDtypeOf = MGE_DTYPE_UNDEFINED;
template <>
inline constexpr mge_dtype kDtypeOf<float> = MGE_DTYPE_F32;
template <>
inline constexpr mge_dtype kDtypeOf<double> = MGE_DTYPE_F64;
template <>
inline constexpr mge_dtype kDtypeOf<int8_t> = MGE_DTYPE_I8;
template <>
inline constexpr mge_dtype kDtypeOf<int16_t> = MGE_DTYPE_I16;
template <>
inline constexpr mge_dtype kDtypeOf<int32_t> = MGE_DTYPE_I32;
template <>
inline constexpr mge_dtype kDtypeOf<int64_t> = MGE_DTYPE_I64;
template <>
inline constexpr mge_dtype kDtypeOf<uint8_t> = MGE_DTYPE_U8;
template <>
inline constexpr mge_dtype kDtypeOf<uint16_t> = MGE_DTYPE_U16;
template <>
inline constexpr mge_dtype kDtypeOf<uint32_t> = MGE_DTYPE_U32;
template <>
inline constexpr mge_dtype kDtypeOf<uint64_t> = MGE_DTYPE_U64;
template <>
inline constexpr mge_dtype kDtypeOf<bool> = MGE_DTYPE_BOOL;
template <>
inline constexpr mge_dtype kDtypeOf<F16> = MGE_DTYPE_F16;
template <>
inline constexpr mge_dtype kDtypeOf<BF16> = MGE_DTYPE_BF16;

// A dense tensor in host memory or on a device, or a sequence, optional or map of tensors. An empty one has no value.
class Tensor : public internal::Owner<mge_tensor, mge_tensor_release> {
 public:
  using Owner::Owner;
  using Dims = Span<const int64_t>;

  // ---- in host memory

  static Result<Tensor> Create(mge_dtype dtype, Dims dims) {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_tensor_create(dtype, dims.data(), dims.size(), t); });
  }
  // Creates a tensor that uses the caller's memory, which must outlive it.
  static Result<Tensor> Wrap(mge_dtype dtype, Dims dims, void* data, uint64_t bytes) {
    return internal::Take<Tensor>(
        [&](mge_tensor** t) { return mge_tensor_wrap(dtype, dims.data(), dims.size(), data, bytes, t); });
  }
  // Creates a tensor with a copy of the values. Fails with E0305 if their number does not match the shape.
  template <typename T>
  static Result<Tensor> Of(Dims dims, Span<const T> values) {
    static_assert(kDtypeOf<T> != MGE_DTYPE_UNDEFINED, "T is not the C++ type of an element type");
    // The view checks that the number of values matches the shape.
    const auto view = Wrap(kDtypeOf<T>, dims, const_cast<T*>(values.data()), values.size_bytes());
    if (!view.ok()) return view.status();
    auto out = Create(kDtypeOf<T>, dims);
    if (out.ok() && !values.empty()) std::memcpy(out->raw_data(), values.data(), values.size_bytes());
    return out;
  }
  static Result<Tensor> OfStrings(Dims dims, Span<const std::string> values) {
    std::string all;
    std::vector<uint64_t> ends;
    for (const std::string& value : values) ends.push_back((all += value).size());
    return internal::Take<Tensor>(
        [&](mge_tensor** t) { return mge_tensor_create_strings(dims.data(), dims.size(), all.data(), ends.data(), t); });
  }
  // Reads a .npy, .npz ("file.npz:name") or .pb file.
  static Result<Tensor> Read(const std::string& path) {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_tensor_read(path.c_str(), t); });
  }
  static Result<Tensor> ReadNpyBytes(const void* data, uint64_t size) {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_tensor_read_npy_bytes(data, size, t); });
  }

  // ---- at a place, such as "gpu0", "cpu_pinned(0)" or gpu(1); see mge.h on each

  // Creates a tensor: of zeros if the host can access them, else of undefined elements.
  static Result<Tensor> CreateOn(const Runtime& runtime, const std::string& place, mge_dtype dtype, Dims dims) {
    return internal::Take<Tensor>([&](mge_tensor** t) {
      return mge_tensor_create_on(runtime.get(), place.c_str(), dtype, dims.data(), dims.size(), t);
    });
  }
  static Result<Tensor> CreateOn(const Runtime& runtime, const Context& context, mge_dtype dtype, Dims dims) {
    return CreateOn(runtime, context.ToString(), dtype, dims);
  }
  // The same on the device of the thread; see ContextScope.
  static Result<Tensor> CreateOn(const Runtime& runtime, mge_dtype dtype, Dims dims) {
    return internal::Take<Tensor>(
        [&](mge_tensor** t) { return mge_tensor_create_on(runtime.get(), nullptr, dtype, dims.data(), dims.size(), t); });
  }
  // Creates a tensor that uses the caller's memory. `release` is called once when nothing uses the memory any more, also if this
  // function fails.
  static Result<Tensor> WrapOn(const Runtime& runtime, const std::string& place, mge_dtype dtype, Dims dims, void* address,
                               uint64_t bytes, std::function<void()> release = nullptr) {
    return internal::Take<Tensor>([&](mge_tensor** t) {
      return mge_tensor_wrap_on(runtime.get(), place.c_str(), dtype, dims.data(), dims.size(), address, bytes,
                                internal::CallOnce, new std::function<void()>(std::move(release)), t);
    });
  }
  // The same for memory that has a handle of the driver, such as cl_mem. The elements begin at `offset`.
  static Result<Tensor> WrapHandle(const Runtime& runtime, const std::string& device, mge_dtype dtype, Dims dims,
                                   void* handle, uint64_t offset, uint64_t bytes, std::function<void()> release = nullptr) {
    return internal::Take<Tensor>([&](mge_tensor** t) {
      return mge_tensor_wrap_handle(runtime.get(), device.c_str(), dtype, dims.data(), dims.size(), handle, offset, bytes,
                                    internal::CallOnce, new std::function<void()>(std::move(release)), t);
    });
  }
  // Takes over a tensor of another library, except on failure: in host memory, or on the device that is named. The struct is that
  // of DLPack 1, or the one before.
  static Result<Tensor> FromDlpack(DLManagedTensorVersioned* managed) {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_tensor_from_dlpack(nullptr, nullptr, managed, t); });
  }
  static Result<Tensor> FromDlpack(const Runtime& runtime, const std::string& device, DLManagedTensorVersioned* managed) {
    return internal::Take<Tensor>(
        [&](mge_tensor** t) { return mge_tensor_from_dlpack(runtime.get(), device.c_str(), managed, t); });
  }
  static Result<Tensor> FromDlpack(DLManagedTensor* managed) {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_tensor_from_old_dlpack(nullptr, nullptr, managed, t); });
  }
  static Result<Tensor> FromDlpack(const Runtime& runtime, const std::string& device, DLManagedTensor* managed) {
    return internal::Take<Tensor>(
        [&](mge_tensor** t) { return mge_tensor_from_old_dlpack(runtime.get(), device.c_str(), managed, t); });
  }
  // Shares the tensor. The caller owns the result, and calls its deleter.
  Result<DLManagedTensorVersioned*> ToDlpack() const {
    DLManagedTensorVersioned* out = nullptr;
    if (Status s(mge_tensor_to_dlpack(get(), &out)); !s.ok()) return s;
    return out;
  }
  Result<DLManagedTensor*> ToOldDlpack() const {
    DLManagedTensor* out = nullptr;
    if (Status s(mge_tensor_to_old_dlpack(get(), &out)); !s.ok()) return s;
    return out;
  }

  // ---- what it is

  mge_dtype dtype() const { return mge_tensor_dtype(get()); }
  Dims dims() const { return {mge_tensor_dims(get()), mge_tensor_rank(get())}; }
  uint64_t elements() const { return mge_tensor_elements(get()); }
  uint64_t bytes() const { return mge_tensor_bytes(get()); }
  std::string_view device() const { return mge_tensor_device(get()); }  // "" for plain host memory
  bool page_locked() const { return mge_tensor_page_locked(get()) != 0; }
  bool read_only() const { return mge_tensor_read_only(get()) != 0; }
  void SetReadOnly() { mge_tensor_set_read_only(get()); }  // for good
  Context context() const { return Context(mge_tensor_context(get())); }

  // ---- its elements

  // The address for the host; nullptr for strings, and if the host cannot access the memory.
  void* raw_data() const { return mge_tensor_data(get()); }
  void* address() const { return mge_tensor_address(get()); }  // on its device
  // Returns the elements as T, or nothing if T is not the C++ type of dtype() or the host cannot access them.
  template <typename T>
  Span<T> data() const {
    if (dtype() != kDtypeOf<T> || !raw_data()) return {};
    return Span<T>(static_cast<T*>(raw_data()), static_cast<size_t>(elements()));
  }
  // Returns the address for the host, or why it cannot access the memory.
  Result<void*> Map() const {
    void* out = nullptr;
    if (Status s(mge_tensor_map(get(), &out)); !s.ok()) return s;
    return out;
  }
  std::string_view string(uint64_t index) const {
    const mge_text text = mge_tensor_string(get(), index);
    return {text.data, static_cast<size_t>(text.size)};
  }
  Status SetString(uint64_t index, std::string_view text) {
    return Status(mge_tensor_set_string(get(), index, text.data(), text.size()));
  }
  // Returns copies of all strings.
  Result<std::vector<std::string>> Strings() const {
    std::vector<uint64_t> ends(static_cast<size_t>(elements()) + 1);  // one more, so that there is memory for none
    if (Status s(mge_tensor_read_strings(get(), ends.data(), nullptr, 0)); !s.ok()) return s;
    std::string all(elements() ? static_cast<size_t>(ends[ends.size() - 2]) : 0, '\0');
    if (Status s(mge_tensor_read_strings(get(), ends.data(), all.data(), all.size())); !s.ok()) return s;
    std::vector<std::string> out;
    for (size_t i = 0, begin = 0; i + 1 < ends.size(); begin = static_cast<size_t>(ends[i++])) {
      out.push_back(all.substr(begin, static_cast<size_t>(ends[i]) - begin));
    }
    return out;
  }
  // Copies the elements to a tensor of the same type and shape; both may lie anywhere.
  Status CopyTo(Tensor& destination) const { return Status(mge_tensor_copy(get(), destination.get())); }
  // Copies the elements to a new tensor in plain host memory.
  Result<Tensor> ToHost() const {
    auto out = Create(dtype(), dims());
    if (!out.ok()) return out;
    if (Status s = CopyTo(*out); !s.ok()) return s;
    return out;
  }
  Status WriteNpy(const std::string& path) const { return Status(mge_tensor_write_npy(get(), path.c_str())); }

  // ---- sequences, optionals and maps

  // Creates a value of the kind (MGE_VALUE_...) from its parts; see mge_value_create.
  static Result<Tensor> OfParts(int kind, Span<const Tensor* const> parts) {
    std::vector<mge_tensor*> raw;
    for (const Tensor* part : parts) raw.push_back(part->get());
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_value_create(kind, raw.data(), raw.size(), t); });
  }
  int kind() const { return mge_tensor_kind(get()); }  // MGE_VALUE_...
  size_t part_count() const { return mge_tensor_part_count(get()); }
  Result<Tensor> Part(size_t index) const {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_tensor_part(get(), index, t); });
  }
  // Returns a sequence of n maps with the same m keys as keys[m] and values[n,m]; see mge_value_table.
  struct KeysAndValues;
  inline Result<KeysAndValues> Table() const;
};

struct Tensor::KeysAndValues {
  Tensor keys, values;
};

Result<Tensor::KeysAndValues> Tensor::Table() const {
  mge_tensor *keys = nullptr, *values = nullptr;
  if (Status s(mge_value_table(get(), &keys, &values)); !s.ok()) return s;
  return KeysAndValues{Tensor(keys), Tensor(values)};
}

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
