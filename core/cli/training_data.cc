// SPDX-License-Identifier: Apache-2.0
#include "core/cli/training_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "core/base/nearest.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr int64_t kLabelsAtOnce = 1 << 16;  // examples

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
  const bool in_folder = std::filesystem::is_directory(archive);
  out->arrays_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (paths[i].empty() && !archive.empty()) paths[i] = in_folder ? archive : archive + ":" + names[i];
    if (paths[i].empty()) {
      *usage = ReportUsage(
          globals, fmt::format("there is no data for the input '{}'", names[i]),
          fmt::format("give --data FILE.npz with the arrays {}, or --input {}=FILE", fmt::join(names, ", "), names[i]));
      return {};
    }
    Array& array = out->arrays_[i];
    std::string problem;
    if (Status s = ReadArray(session, i, paths[i], &array, &problem); !s.ok()) return s;
    if (!problem.empty()) {
      *usage =
          ReportUsage(globals, problem,
                      fmt::format("a folder of --data has the files {0}.npy or {0}-*.npy, whose first dimensions count the "
                                  "examples; np.ascontiguousarray(array) and np.save write them",
                                  names[i]));
      return {};
    }
    const std::vector<int64_t> dims = array.dims();
    const int64_t examples = dims.empty() ? 0 : dims[0];
    if (i == 0) out->examples_ = examples;
    if (array.dtype() == MGE_DTYPE_STRING || examples != out->examples_ || examples == 0) {
      *usage =
          ReportUsage(globals,
                      fmt::format("'{}' is {}[{}], '{}' has {} examples", names[i], mge_dtype_name(array.dtype()),
                                  fmt::join(dims, ","), names[0], out->examples_),
                      "the first dimension of all arrays counts the examples and must be equal; texts are not supported");
      return {};
    }
  }
  return {};
}

std::vector<int64_t> TrainingData::Array::dims() const {
  if (tensor) return {tensor.dims().begin(), tensor.dims().end()};
  std::vector<int64_t> out = {files.rows()};
  out.insert(out.end(), files.row_dims().begin(), files.row_dims().end());
  return out;
}

Status TrainingData::ReadArray(const Session& session, size_t input, const std::string& path, Array* out,
                               std::string* problem) {
  const bool wide = session.input(input).dtype() == MGE_DTYPE_I64;
  if (std::filesystem::is_directory(path)) {
    const std::string name(session.input(input).name());
    const std::vector<std::string> files = FilesOfArray(path, name);
    if (files.empty()) {
      *problem = fmt::format("--data {}: it has no files of the input '{}'", path, name);
      return {};
    }
    out->widens = wide;
    return RowFiles::Open(files, &out->files, problem);
  }
  if (Status s = session.ReadInput(input, path).MoveTo(out->tensor); !s.ok()) return s;
  return wide ? ToInt64(out->tensor) : Status();
}

std::vector<int64_t> TrainingData::label_dims() const { return arrays_.back().dims(); }

Status TrainingData::ForEachLabels(const std::function<bool(const Tensor& labels)>& visit) const {
  const Array& labels = arrays_.back();
  if (labels.tensor) {
    visit(labels.tensor);
    return {};
  }
  for (int64_t begin = 0; begin < examples_; begin += kLabelsAtOnce) {
    std::vector<int64_t> numbers(static_cast<size_t>(std::min(kLabelsAtOnce, examples_ - begin)));
    std::iota(numbers.begin(), numbers.end(), begin);
    Tensor some;
    if (Status s = Rows(labels, numbers, 0, std::ssize(numbers), &some); !s.ok()) return s;
    if (!visit(some)) return {};
  }
  return {};
}

Status TrainingData::Rows(const Array& array, std::span<const int64_t> numbers, int64_t first, int64_t count,
                          Tensor* out) const {
  std::vector<int64_t> dims = array.dims();
  dims[0] = count;
  if (Status s = Tensor::Create(array.dtype(), dims).MoveTo(*out); !s.ok()) return s;
  const bool in_files = !array.tensor;
  const size_t row =
      in_files ? array.files.row_bytes() : static_cast<size_t>(array.tensor.bytes()) / static_cast<size_t>(examples_);
  auto* to = static_cast<char*>(out->raw_data()) + static_cast<size_t>(first) * row;
  if (in_files) {
    if (Status s = array.files.Copy(numbers, to); !s.ok()) return s;
    return array.widens ? ToInt64(*out) : Status();
  }
  const auto* from = static_cast<const char*>(array.tensor.raw_data());
  for (const int64_t number : numbers) {
    std::memcpy(to, from + static_cast<size_t>(number) * row, row);
    to += row;
  }
  return {};
}

Status TrainingData::Batch(std::span<const int64_t> numbers, const Session::Part& part, std::vector<Tensor>* out) const {
  out->clear();
  out->resize(arrays_.size());
  const auto own = numbers.subspan(static_cast<size_t>(part.first), static_cast<size_t>(part.count));
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (Status s = Rows(arrays_[i], own, part.first, std::ssize(numbers), &(*out)[i]); !s.ok()) return s;
  }
  return {};
}

}  // namespace mge::cli
