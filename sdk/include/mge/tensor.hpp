// SPDX-License-Identifier: Apache-2.0
// Statuses, contexts and tensors of the C++ API; part of mge.hpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/context.h"
#include "mge/float16.hpp"
#include "mge/mge.h"

namespace mge {
inline namespace v0 {

namespace internal {
template <typename T, void (*Release)(T*)>
struct Releaser {
  void operator()(T* p) const { Release(p); }
};
template <typename T, void (*Release)(T*)>
using Handle = std::unique_ptr<T, Releaser<T, Release>>;
}  // namespace internal

// The result of a call.
class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(mge_status* status) : status_(status) {}
  bool ok() const { return !status_; }
  mge_code code() const { return mge_status_code(status_.get()); }  // MGE_OK, MGE_INVALID_ARGUMENT, ...
  int exit_code() const { return mge_status_exit_code(status_.get()); }
  int id() const { return mge_status_id(status_.get()); }
  std::string_view text() const { return mge_status_text(status_.get()); }
  std::string_view title() const { return mge_status_title(status_.get()); }
  std::string_view what() const { return mge_status_what(status_.get()); }
  std::string_view where() const { return mge_status_where(status_.get()); }
  std::string_view fix() const { return mge_status_fix(status_.get()); }

 private:
  internal::Handle<mge_status, mge_status_release> status_;
};

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

class Runtime;

// A device type and an id, such as gpu(1). A plain value: type and device are checked when the context is used. The names are
// those of mxnet.context.
class Context {
 public:
  Context() : Context("cpu") {}
  // `device_type` is "cpu", "gpu", "cpu_pinned", or a class of devices such as "cuda".
  explicit Context(std::string_view device_type, int device_id = 0) {
    raw_.device_id = device_id;
    // No type is so long. Without it, every use of the context fails.
    if (device_type.size() < sizeof(raw_.device_type)) device_type.copy(raw_.device_type, device_type.size());
  }
  explicit Context(const mge_context& raw) : raw_(raw) {}
  // Parses "gpu(1)" or any other name of one device.
  static Status Parse(const std::string& text, Context* out) { return Status(mge_context_parse(text.c_str(), &out->raw_)); }

  std::string_view device_type() const { return raw_.device_type; }
  int device_id() const { return raw_.device_id; }
  std::string ToString() const { return raw_.device_type + ("(" + std::to_string(raw_.device_id)) + ")"; }
  // Returns memory of the device that nothing uses to its driver; see mge_device_empty_cache.
  inline Status empty_cache(Runtime& runtime) const;
  friend bool operator==(const Context& a, const Context& b) {
    return a.device_type() == b.device_type() && a.device_id() == b.device_id();
  }
  const mge_context* get() const { return &raw_; }

 private:
  mge_context raw_ = {};
};

inline Context cpu(int device_id = 0) { return Context("cpu", device_id); }
inline Context gpu(int device_id = 0) { return Context("gpu", device_id); }
// Host memory from which copies to the GPU are fast.
inline Context cpu_pinned(int device_id = 0) { return Context("cpu_pinned", device_id); }

// A dense tensor in host memory or on a device, or a sequence or optional of tensors.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(mge_tensor* tensor) : tensor_(tensor) {}

  static Status Create(mge_dtype dtype, std::span<const int64_t> dims, Tensor* out) {
    return Take(out, [&](mge_tensor** t) { return mge_tensor_create(dtype, dims.data(), dims.size(), t); });
  }
  // Creates a tensor that uses the caller's memory, which must outlive it.
  static Status Wrap(mge_dtype dtype, std::span<const int64_t> dims, void* data, uint64_t bytes, Tensor* out) {
    return Take(out, [&](mge_tensor** t) { return mge_tensor_wrap(dtype, dims.data(), dims.size(), data, bytes, t); });
  }
  // Creates a tensor at a place, such as "gpu0", "cpu_pinned(0)" or gpu(1); see mge_tensor_create_on. Its elements are zero if the
  // host can access them, else undefined.
  static inline Status CreateOn(const Runtime& runtime, const std::string& place, mge_dtype dtype,
                                std::span<const int64_t> dims, Tensor* out);
  static Status CreateOn(const Runtime& runtime, const Context& context, mge_dtype dtype, std::span<const int64_t> dims,
                         Tensor* out) {
    return CreateOn(runtime, context.ToString(), dtype, dims, out);
  }
  // The same on the device of the thread; see ContextScope.
  static inline Status CreateOn(const Runtime& runtime, mge_dtype dtype, std::span<const int64_t> dims, Tensor* out);
  // Reads a .npy, .npz ("file.npz:name") or .pb file.
  static Status Read(const std::string& path, Tensor* out) {
    return Take(out, [&](mge_tensor** t) { return mge_tensor_read(path.c_str(), t); });
  }
  // Creates a tensor with a copy of the values. Fails with E0305 and leaves *out empty if their number does not match the
  // shape.
  template <typename T>
  static Status Of(std::initializer_list<int64_t> dims, std::initializer_list<T> values, Tensor* out) {
    return OfSpan<T>({dims.begin(), dims.size()}, {values.begin(), values.size()}, out);
  }
  template <typename T>
  static Status OfSpan(std::span<const int64_t> dims, std::span<const T> values, Tensor* out) {
    static_assert(kDtypeOf<T> != MGE_DTYPE_UNDEFINED, "T is not the C++ type of an element type");
    Tensor view;  // checks that the number of values matches the shape
    if (Status s = Wrap(kDtypeOf<T>, dims, const_cast<T*>(values.data()), values.size_bytes(), &view); !s.ok()) {
      *out = Tensor();
      return s;
    }
    Status s = Create(kDtypeOf<T>, dims, out);
    if (s.ok() && !values.empty()) std::memcpy(out->raw_data(), values.data(), values.size_bytes());
    return s;
  }

  explicit operator bool() const { return tensor_ != nullptr; }
  mge_dtype dtype() const { return mge_tensor_dtype(get()); }
  std::span<const int64_t> dims() const { return {mge_tensor_dims(get()), mge_tensor_rank(get())}; }
  uint64_t elements() const { return mge_tensor_elements(get()); }
  uint64_t bytes() const { return mge_tensor_bytes(get()); }
  void* raw_data() const { return mge_tensor_data(get()); }
  // Returns the elements as T, or nothing if T is not the C++ type of dtype() or the host cannot access them.
  template <typename T>
  std::span<T> data() const {
    if (dtype() != kDtypeOf<T> || !raw_data()) return {};
    return {static_cast<T*>(raw_data()), static_cast<size_t>(elements())};
  }
  std::string_view string(uint64_t index) const {
    mge_text t = mge_tensor_string(get(), index);
    return {t.data, static_cast<size_t>(t.size)};
  }
  std::string_view device() const { return mge_tensor_device(get()); }  // "" for plain host memory
  bool page_locked() const { return mge_tensor_page_locked(get()) != 0; }
  void* address() const { return mge_tensor_address(get()); }  // on its device
  Context context() const { return Context(mge_tensor_context(get())); }
  // Copies the elements to a tensor of the same type and shape; both may lie anywhere.
  Status CopyTo(Tensor* destination) const { return Status(mge_tensor_copy(get(), destination->get())); }
  // Copies the elements to a new tensor in plain host memory.
  Status ToHost(Tensor* out) const {
    if (Status s = Create(dtype(), dims(), out); !s.ok()) return s;
    return CopyTo(out);
  }
  Status WriteNpy(const std::string& path) const { return Status(mge_tensor_write_npy(get(), path.c_str())); }

  int kind() const { return mge_tensor_kind(get()); }  // MGE_VALUE_...
  size_t part_count() const { return mge_tensor_part_count(get()); }
  Status Part(size_t index, Tensor* out) const {
    return Take(out, [&](mge_tensor** t) { return mge_tensor_part(get(), index, t); });
  }
  // Creates a sequence, optional or map (MGE_VALUE_...) from its parts; see mge_value_create.
  static Status OfParts(int kind, std::span<const Tensor* const> parts, Tensor* out) {
    std::vector<mge_tensor*> raw;
    for (const Tensor* part : parts) raw.push_back(part->get());
    return Take(out, [&](mge_tensor** t) { return mge_value_create(kind, raw.data(), raw.size(), t); });
  }
  static Status OfParts(int kind, std::initializer_list<const Tensor*> parts, Tensor* out) {
    return OfParts(kind, std::span<const Tensor* const>(parts.begin(), parts.size()), out);
  }

  mge_tensor* get() const { return tensor_.get(); }
  mge_tensor* release() { return tensor_.release(); }

 private:
  template <typename F>
  static Status Take(Tensor* out, F make) {
    mge_tensor* t = nullptr;
    Status s(make(&t));
    *out = Tensor(t);
    return s;
  }
  internal::Handle<mge_tensor, mge_tensor_release> tensor_;
};

}  // namespace v0
}  // namespace mge
