// SPDX-License-Identifier: Apache-2.0
#include "cudnn_descriptor.h"

#include <algorithm>

namespace mge::cuda {

bool FindType(mge_dtype type, cudnnDataType_t* out) {
  switch (type) {
    case MGE_DTYPE_F32: return *out = CUDNN_DATA_FLOAT, true;
    case MGE_DTYPE_F64: return *out = CUDNN_DATA_DOUBLE, true;
    case MGE_DTYPE_F16: return *out = CUDNN_DATA_HALF, true;
    case MGE_DTYPE_BF16: return *out = CUDNN_DATA_BFLOAT16, true;
    default: return false;
  }
}

Descriptor& Descriptor::SetAll(cudnnBackendAttributeName_t name, std::span<Descriptor* const> others) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor* other : others) {
    if (result_.ok()) result_ = other->result_;
    raw.push_back(other->raw_);
  }
  return SetRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

Descriptor& Descriptor::SetTensor(cudnnDataType_t type, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                                  int64_t id, bool is_virtual) {
  constexpr int64_t kAlignment = 16;  // of operands that are views of others
  return Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .SetList(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes)
      .SetList(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual)
      .Finalize();
}

std::string Descriptor::GetText(cudnnBackendAttributeName_t name) {
  int64_t bytes = 0;
  if (result_.ok()) {
    Keep(library_->get_attribute(raw_, name, CUDNN_TYPE_CHAR, 0, &bytes, nullptr), "cudnnBackendGetAttribute");
  }
  const std::vector<char> text = GetList<char>(name, bytes);
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

Descriptor& Descriptor::GetInto(cudnnBackendAttributeName_t name, Descriptor& to) {
  int64_t count = 0;
  if (result_.ok()) result_ = to.result_;
  if (result_.ok()) {
    Keep(library_->get_attribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &to.raw_),
         "cudnnBackendGetAttribute");
  }
  return *this;
}

void Descriptor::GetAll(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type, int64_t most,
                        std::vector<Descriptor>* out) {
  std::vector<Descriptor> found;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < most && result_.ok(); ++i) {
    raw.push_back(found.emplace_back(*library_, type).raw_);
    result_ = found.back().result_;
  }
  int64_t count = 0;
  if (result_.ok()) {
    Keep(library_->get_attribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count, raw.data()),
         "cudnnBackendGetAttribute");
  }
  if (!result_.ok()) return;
  for (int64_t i = 0; i < std::min(count, most); ++i) out->push_back(std::move(found[static_cast<size_t>(i)]));
}

}  // namespace mge::cuda
