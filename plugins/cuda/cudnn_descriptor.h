// SPDX-License-Identifier: Apache-2.0
// Descriptors, the objects of cuDNN's graph interface.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cudnn_library.h"

namespace mge::cuda {

// The library's number of a C++ type.
template <typename T>
inline constexpr cudnnBackendAttributeType_t kAttributeType;
template <>
inline constexpr auto kAttributeType<int64_t> = CUDNN_TYPE_INT64;
template <>
inline constexpr auto kAttributeType<int32_t> = CUDNN_TYPE_INT32;
template <>
inline constexpr auto kAttributeType<bool> = CUDNN_TYPE_BOOLEAN;
template <>
inline constexpr auto kAttributeType<float> = CUDNN_TYPE_FLOAT;
template <>
inline constexpr auto kAttributeType<double> = CUDNN_TYPE_DOUBLE;
template <>
inline constexpr auto kAttributeType<char> = CUDNN_TYPE_CHAR;
template <>
inline constexpr auto kAttributeType<void*> = CUDNN_TYPE_VOID_PTR;
template <>
inline constexpr auto kAttributeType<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
inline constexpr auto kAttributeType<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
inline constexpr auto kAttributeType<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
inline constexpr auto kAttributeType<cudnnPointwiseMode_t> = CUDNN_TYPE_POINTWISE_MODE;
template <>
inline constexpr auto kAttributeType<cudnnResampleMode_t> = CUDNN_TYPE_RESAMPLE_MODE;
template <>
inline constexpr auto kAttributeType<cudnnPaddingMode_t> = CUDNN_TYPE_PADDING_MODE;
template <>
inline constexpr auto kAttributeType<cudnnNanPropagation_t> = CUDNN_TYPE_NAN_PROPOGATION;
template <>
inline constexpr auto kAttributeType<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
inline constexpr auto kAttributeType<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
inline constexpr auto kAttributeType<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;

// Finds the library's number of an element type. Returns false if it computes with no such elements.
bool FindType(mge_dtype type, cudnnDataType_t* out);

// A descriptor. After a call that failed, further ones do nothing: the caller checks result() once.
class Descriptor {
 public:
  Descriptor(const Cudnn& library, cudnnBackendDescriptorType_t type) : library_(&library) {
    Keep(library.create_descriptor(type, &raw_), "cudnnBackendCreateDescriptor");
  }
  ~Descriptor() {
    if (raw_) library_->destroy_descriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept
      : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)), result_(std::move(other.result_)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  template <typename T>
  Descriptor& Set(cudnnBackendAttributeName_t name, const T& value) {
    return SetRaw(name, kAttributeType<T>, 1, &value);
  }
  template <typename T>
  Descriptor& SetList(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return SetRaw(name, kAttributeType<T>, static_cast<int64_t>(values.size()), values.data());
  }
  // Refers to other descriptors, which must live as long as this one. Takes over the first error among them.
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    if (result_.ok()) result_ = other.result_;
    return SetRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.raw_);
  }
  Descriptor& SetAll(cudnnBackendAttributeName_t name, std::span<Descriptor* const> others);
  // Describes a tensor. `strides`: in elements. `id`: the number by which plans know it.
  Descriptor& SetTensor(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides, int64_t id,
                        bool is_virtual = false);
  Descriptor& SetText(cudnnBackendAttributeName_t name, std::string_view text) {
    return SetList(name, std::span<const char>(text));
  }
  Descriptor& Finalize() {
    if (result_.ok()) Keep(library_->finalize(raw_), "cudnnBackendFinalize");
    return *this;
  }

  // Return the value of an attribute; on an error, what T() is.
  template <typename T>
  T Get(cudnnBackendAttributeName_t name) {
    const std::vector<T> values = GetList<T>(name, 1);
    return values.empty() ? T() : values[0];
  }
  template <typename T>
  std::vector<T> GetList(cudnnBackendAttributeName_t name, int64_t most) {
    std::vector<T> values(static_cast<size_t>(most));
    int64_t count = 0;
    if (result_.ok()) {
      Keep(library_->get_attribute(raw_, name, kAttributeType<T>, most, &count, values.data()), "cudnnBackendGetAttribute");
    }
    values.resize(result_.ok() ? static_cast<size_t>(count < most ? count : most) : 0);
    return values;
  }
  std::string GetText(cudnnBackendAttributeName_t name);
  // Copies a descriptor to `to`. Takes over its error.
  Descriptor& GetInto(cudnnBackendAttributeName_t name, Descriptor& to);
  // Appends up to `most` descriptors of a type.
  void GetAll(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type, int64_t most,
              std::vector<Descriptor>* out);

  const Result& result() const { return result_; }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  Descriptor& SetRaw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void* values) {
    if (result_.ok()) Keep(library_->set_attribute(raw_, name, type, count, values), "cudnnBackendSetAttribute");
    return *this;
  }
  void Keep(cudnnStatus_t status, const char* function) {
    if (status != CUDNN_STATUS_SUCCESS) result_ = library_->ResultOf(status, function);
  }

  const Cudnn* library_;
  cudnnBackendDescriptor_t raw_ = nullptr;
  Result result_;
};

}  // namespace mge::cuda
