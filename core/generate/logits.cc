// SPDX-License-Identifier: Apache-2.0
#include "core/generate/logits.h"

#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge {
namespace {

template <typename T>
void CopyNumbers(const Tensor& from, int64_t first, int64_t count, std::vector<float>& out) {
  for (const T x : from.Data<T>().subspan(static_cast<size_t>(first), static_cast<size_t>(count))) {
    out.push_back(static_cast<float>(x));
  }
}

void ReadNumbers(const Tensor& from, int64_t first, int64_t count, std::vector<float>& out) {
  out.clear();
  out.reserve(static_cast<size_t>(count));
  switch (from.dtype()) {
    case DType::kF16: CopyNumbers<Half>(from, first, count, out); break;
    case DType::kBF16: CopyNumbers<BFloat16>(from, first, count, out); break;
    case DType::kF64: CopyNumbers<double>(from, first, count, out); break;
    default: CopyNumbers<float>(from, first, count, out); break;
  }
}

absl::Status UnusableLogits(const Tensor& logits, std::string_view expected) {
  return Fail(errors::kUnsupportedFeature, "the model's logits are not usable",
              {.what = fmt::format("they are {}{}, floating-point numbers {} are expected", DTypeName(logits.dtype()),
                                   ShapeText(logits.shape()), expected)});
}

}  // namespace

absl::Status ReadLastLogits(const Tensor& from, std::vector<float>& out) {
  MGE_ASSIGN_OR_RETURN(const Tensor logits, ToHost(from));
  const int64_t vocabulary = logits.rank() > 0 ? logits.shape().back() : 0;
  if (logits.elements() == 0 || !kFloating.Contains(logits.dtype()))
    return UnusableLogits(logits, "[batch, tokens, vocabulary]");
  ReadNumbers(logits, logits.elements() - vocabulary, vocabulary, out);
  return absl::OkStatus();
}

absl::Status ReadLogitsOfRows(const Tensor& from, size_t rows, std::vector<std::vector<float>>& out) {
  MGE_ASSIGN_OR_RETURN(const Tensor logits, ToHost(from));
  const int64_t vocabulary = logits.rank() > 0 ? logits.shape().back() : 0;
  if (logits.elements() == 0 || !kFloating.Contains(logits.dtype()) ||
      logits.elements() != vocabulary * static_cast<int64_t>(rows)) {
    return UnusableLogits(logits, fmt::format("[{}, 1, vocabulary]", rows));
  }
  out.resize(rows);
  for (size_t b = 0; b < rows; ++b) ReadNumbers(logits, static_cast<int64_t>(b) * vocabulary, vocabulary, out[b]);
  return absl::OkStatus();
}

}  // namespace mge
