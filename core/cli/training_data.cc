// SPDX-License-Identifier: Apache-2.0
#include "core/cli/training_data.h"

#include <algorithm>
#include <cstring>

#include "core/base/nearest.h"
#include "fmt/format.h"

namespace mge::cli {

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
