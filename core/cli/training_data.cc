// SPDX-License-Identifier: Apache-2.0
#include "core/cli/training_data.h"

#include <algorithm>
#include <cstring>

#include "core/base/nearest.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

template <typename T>
Status CopyAsInt64(Tensor& array) {
  Tensor wide;
  const std::vector<int64_t> dims(array.dims().begin(), array.dims().end());
  if (Status s = Tensor::Create(MGE_DTYPE_I64, dims).MoveTo(wide); !s.ok()) return s;
  std::ranges::copy(array.data<T>(), wide.data<int64_t>().begin());
  array = std::move(wide);
  return {};
}

// Converts class numbers of another integer type to int64. A session would do it for each batch.
Status ToInt64(Tensor& array) {
  switch (array.dtype()) {
    case MGE_DTYPE_I8: return CopyAsInt64<int8_t>(array);
    case MGE_DTYPE_I16: return CopyAsInt64<int16_t>(array);
    case MGE_DTYPE_I32: return CopyAsInt64<int32_t>(array);
    case MGE_DTYPE_U8: return CopyAsInt64<uint8_t>(array);
    case MGE_DTYPE_U16: return CopyAsInt64<uint16_t>(array);
    case MGE_DTYPE_U32: return CopyAsInt64<uint32_t>(array);
    default: return {};
  }
}

}  // namespace

Status TrainingData::Read(const Globals& globals, const Session& session, size_t count, const std::string& archive,
                          const std::vector<std::string>& files, TrainingData* out, int* usage) {
  std::vector<std::string> names, paths(count);
  for (size_t i = 0; i < count; ++i) names.emplace_back(session.input(i).name());
  for (const std::string& text : files) {
    const size_t at = text.find('=');
    const auto name = std::ranges::find(names, text.substr(0, at));
    if (at == std::string::npos || name == names.end()) {
      *usage = ReportUsage(
          globals, fmt::format("--input {}: it does not name an input, as NAME=FILE", text),
          DidYouMeanOr(Nearest(text.substr(0, at), names), fmt::format("the inputs are: {}", fmt::join(names, ", "))));
      return {};
    }
    paths[static_cast<size_t>(name - names.begin())] = text.substr(at + 1);
  }
  out->arrays_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (paths[i].empty() && !archive.empty()) paths[i] = archive + ":" + names[i];
    if (paths[i].empty()) {
      *usage = ReportUsage(
          globals, fmt::format("there is no data for the input '{}'", names[i]),
          fmt::format("give --data FILE.npz with the arrays {}, or --input {}=FILE", fmt::join(names, ", "), names[i]));
      return {};
    }
    Tensor& array = out->arrays_[i];
    if (Status s = session.ReadInput(i, paths[i]).MoveTo(array); !s.ok()) return s;
    if (session.input(i).dtype() == MGE_DTYPE_I64) {
      if (Status s = ToInt64(array); !s.ok()) return s;
    }
    const int64_t examples = array.dims().empty() ? 0 : array.dims()[0];
    if (i == 0) out->examples_ = examples;
    if (array.dtype() == MGE_DTYPE_STRING || examples != out->examples_ || examples == 0) {
      *usage = ReportUsage(
          globals, fmt::format("'{}' is {}, '{}' has {} examples", names[i], TypeText(array), names[0], out->examples_),
          "the first dimension of all arrays counts the examples and must be equal; texts are not supported");
      return {};
    }
  }
  return {};
}

Status TrainingData::Batch(std::span<const int64_t> numbers, const Session::Part& part, std::vector<Tensor>* out) const {
  out->clear();
  out->resize(arrays_.size());
  for (size_t i = 0; i < arrays_.size(); ++i) {
    std::vector<int64_t> dims(arrays_[i].dims().begin(), arrays_[i].dims().end());
    dims[0] = static_cast<int64_t>(numbers.size());
    if (Status s = Tensor::Create(arrays_[i].dtype(), dims).MoveTo((*out)[i]); !s.ok()) return s;
    const size_t row = static_cast<size_t>(arrays_[i].bytes()) / static_cast<size_t>(examples_);
    const auto* from = static_cast<const char*>(arrays_[i].raw_data());
    auto* to = static_cast<char*>((*out)[i].raw_data()) + static_cast<size_t>(part.first) * row;
    for (const int64_t number : numbers.subspan(static_cast<size_t>(part.first), static_cast<size_t>(part.count))) {
      std::memcpy(to, from + static_cast<size_t>(number) * row, row);
      to += row;
    }
  }
  return {};
}

}  // namespace mge::cli
